"""For which sessions hooks may make requests and offers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidestage.audit import AuditRecord
from sidestage.errors import InvalidInput
from sidestage.projects.adoption import (
    EXCLUDED_LIMIT,
    Adoption,
    AdoptionKeeper,
    AdoptionPolicy,
)
from sidestage.storage.database import Database
from sidestage.storage.stores import SqlAdoptionStore, SqlAuditLog
from tests.fakes.principals import OWNER


class MemoryStore:
    def __init__(self) -> None:
        self.policy = AdoptionPolicy()
        self.records: list[AuditRecord] = []

    async def load(self) -> AdoptionPolicy:
        return self.policy

    async def save(self, policy: AdoptionPolicy, record: AuditRecord) -> None:
        self.policy = policy
        self.records.append(record)


@pytest.fixture
async def keeper() -> AdoptionKeeper:
    return await AdoptionKeeper.open(MemoryStore())


def _is_the_port(keeper: AdoptionKeeper) -> Adoption:
    return keeper


async def exclude(keeper: AdoptionKeeper, *paths: str) -> AdoptionPolicy:
    return await keeper.set_policy(AdoptionPolicy(excluded=paths), actor=OWNER)


async def test_every_session_is_adopted_unless_the_owner_says_otherwise(
    keeper: AdoptionKeeper,
) -> None:
    assert keeper.adopts("/a")
    assert keeper.adopts(None)
    await keeper.set_policy(AdoptionPolicy(enabled=False), actor=OWNER)
    assert not keeper.adopts("/a")
    assert not keeper.adopts(None)


async def test_each_change_of_the_policy_is_told(keeper: AdoptionKeeper) -> None:
    first = keeper.changed
    assert not first.is_set()
    await exclude(keeper, "/nowhere/a")
    assert first.is_set()
    assert not keeper.changed.is_set()


async def test_a_folder_is_covered_by_whole_components(keeper: AdoptionKeeper) -> None:
    await exclude(keeper, "/nowhere/a/b")
    assert not keeper.adopts("/nowhere/a/b")
    assert not keeper.adopts("/nowhere/a/b/c/d")
    assert not keeper.adopts("/nowhere/a/b/")
    assert keeper.adopts("/nowhere/a/bc")
    assert keeper.adopts("/nowhere/a")
    await exclude(keeper, "/")
    assert not keeper.adopts("/nowhere")


async def test_links_and_dots_do_not_get_around_it(
    keeper: AdoptionKeeper, tmp_path: Path
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    policy = await exclude(keeper, f"{tmp_path}/link/../link/")
    assert policy.excluded == (str(real),)
    assert keeper.policy == policy
    assert not keeper.adopts(f"{real}/inner")
    assert not keeper.adopts(f"{tmp_path}/other/../real/inner")
    assert not keeper.adopts(f"/{real}")


async def test_an_unknown_folder_is_not_adopted_once_any_is_excluded(
    keeper: AdoptionKeeper,
) -> None:
    await exclude(keeper, "/nowhere")
    assert not keeper.adopts(None)
    assert not keeper.adopts("relative")


async def test_a_change_counts_at_once_and_back(keeper: AdoptionKeeper) -> None:
    assert keeper.adopts("/nowhere/a")
    await exclude(keeper, "/nowhere/a")
    assert not keeper.adopts("/nowhere/a")
    await exclude(keeper)
    assert keeper.adopts("/nowhere/a")


@pytest.mark.parametrize(
    "path", ["", "a", "~", "/a\0", "/a\nb", "/\ud800", "/" + "a" * 4096]
)
async def test_what_is_no_path_is_refused(keeper: AdoptionKeeper, path: str) -> None:
    with pytest.raises(InvalidInput):
        await exclude(keeper, path)
    assert keeper.policy == AdoptionPolicy()


async def test_a_loop_of_links_is_refused(
    keeper: AdoptionKeeper, tmp_path: Path
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InvalidInput):
        await exclude(keeper, f"{tmp_path}/loop")


async def test_folders_over_the_limit_are_refused(keeper: AdoptionKeeper) -> None:
    with pytest.raises(InvalidInput):
        await exclude(keeper, *(f"/{n}" for n in range(EXCLUDED_LIMIT + 1)))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "sidestage.db")
    yield database
    await database.close()


async def test_the_policy_outlives_a_restart_and_is_audited(database: Database) -> None:
    store = SqlAdoptionStore(database)
    keeper = await AdoptionKeeper.open(store)
    assert keeper.policy == AdoptionPolicy()
    await exclude(keeper, "/nowhere/a b", "/nowhere/ü")
    policy = AdoptionPolicy(False, ("/nowhere/ü",))
    assert await keeper.set_policy(policy, actor=OWNER) == policy
    assert (await AdoptionKeeper.open(store)).policy == policy
    [newest, *_] = await SqlAuditLog(database).list_entries(limit=5)
    assert newest.record.action == "adoption.set"
    assert newest.record.detail == "enabled=False excluded=1"


async def test_who_waits_for_a_change_is_woken_once_it_is_in_force(
    keeper: AdoptionKeeper,
) -> None:
    waiting = asyncio.create_task(keeper.wait_change())
    await asyncio.to_thread(lambda: None)
    await keeper.set_policy(AdoptionPolicy(enabled=False), actor=OWNER)
    async with asyncio.timeout(5):
        await waiting
    assert not keeper.policy.enabled
