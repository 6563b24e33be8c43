import asyncio
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidestage.audit import AuditOutcome
from sidestage.devices.keeper import TokenKeeper
from sidestage.devices.login_failures import FAILURES_PER_MINUTE
from sidestage.devices.model import (
    ADMIN_SCOPES,
    Principal,
    PrincipalKind,
    Scope,
)
from sidestage.devices.tokens import mint_token, parse_token
from sidestage.errors import (
    InvalidInput,
    RateLimited,
    StateFolderUnsafe,
    Unauthenticated,
)
from sidestage.storage.database import Database
from sidestage.storage.stores import SqlAuditLog, SqlTokenStore

LOCAL = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "local:1")


@dataclass
class Clock:
    now: datetime = field(default=datetime(2026, 11, 30, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Kept:
    """A keeper with its clock, its log and its token file."""

    keeper: TokenKeeper
    clock: Clock
    audit: SqlAuditLog
    file: Path
    database: Database

    async def admin(self) -> str:
        await self.keeper.ensure_admin(self.file)
        return self.file.read_text().strip()


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    database = await Database.open(tmp_path / "sidestage.db")
    clock = Clock()
    audit = SqlAuditLog(database, clock=clock)
    keeper = TokenKeeper(SqlTokenStore(database), audit, clock=clock)
    await keeper.load()
    yield Kept(keeper, clock, audit, tmp_path / "admin.token", database)
    await keeper.close()
    await database.close()


async def test_the_admin_token_opens_everything_but_answers(kept: Kept) -> None:
    principal = await kept.keeper.authenticate(await kept.admin(), address="::1")
    assert principal.kind is PrincipalKind.ADMIN
    assert principal.actor == "admin"
    assert principal.scopes == set(Scope) - {Scope.ANSWER}
    assert kept.keeper.is_current(principal)


async def test_the_token_file_is_for_its_owner_alone(kept: Kept) -> None:
    await kept.admin()
    assert stat.S_IMODE(kept.file.stat().st_mode) == 0o600


async def test_the_database_holds_no_secret(kept: Kept, tmp_path: Path) -> None:
    text = await kept.admin()
    await kept.keeper.close()
    await kept.database.close()
    shown = parse_token(text)
    assert shown is not None
    held = b"".join(path.read_bytes() for path in tmp_path.glob("sidestage.db*"))
    assert shown.id.encode() in held
    assert shown.secret not in held
    assert text.encode() not in held


async def test_a_second_start_keeps_the_token(kept: Kept) -> None:
    text = await kept.admin()
    again = TokenKeeper(SqlTokenStore(kept.database), kept.audit, clock=kept.clock)
    await again.load()
    assert await again.ensure_admin(kept.file) is False
    assert kept.file.read_text().strip() == text


async def test_a_lost_token_file_is_made_anew_and_the_old_token_is_void(
    kept: Kept,
) -> None:
    old = await kept.admin()
    kept.file.unlink()
    assert await kept.admin() != old
    with pytest.raises(Unauthenticated):
        await kept.keeper.authenticate(old, address=None)


async def test_a_token_file_that_others_can_read_is_refused(kept: Kept) -> None:
    await kept.admin()
    kept.file.chmod(0o640)
    with pytest.raises(StateFolderUnsafe, match="chmod 600"):
        await kept.keeper.ensure_admin(kept.file)


async def test_a_token_file_that_is_a_link_is_refused(
    kept: Kept, tmp_path: Path
) -> None:
    kept.file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateFolderUnsafe):
        await kept.keeper.ensure_admin(kept.file)


async def test_rotation_voids_the_old_token_and_tells_who_watches(kept: Kept) -> None:
    old = await kept.admin()
    principal = await kept.keeper.authenticate(old, address=None)
    watch = kept.keeper.watch_revocations()
    told = asyncio.ensure_future(anext(watch))
    await asyncio.to_thread(lambda: None)
    await kept.keeper.rotate_admin(kept.file, actor=LOCAL)
    assert await asyncio.wait_for(told, 5) == principal.token_id
    assert not kept.keeper.is_current(principal)
    with pytest.raises(Unauthenticated):
        await kept.keeper.authenticate(old, address=None)
    await kept.keeper.authenticate(kept.file.read_text().strip(), address=None)


async def test_a_token_may_be_narrow_and_short_lived(kept: Kept) -> None:
    text = await kept.keeper.create(
        name="wall",
        scopes=frozenset({Scope.VIEW}),
        lifetime=timedelta(hours=1),
        actor=LOCAL,
    )
    principal = await kept.keeper.authenticate(text, address=None)
    assert principal.scopes == {Scope.VIEW}
    kept.clock.now += timedelta(hours=1)
    assert not kept.keeper.is_current(principal)
    with pytest.raises(Unauthenticated, match="expired"):
        await kept.keeper.authenticate(text, address=None)


@pytest.mark.parametrize(
    ("name", "scopes"),
    [
        ("", {Scope.VIEW}),
        ("x" * 65, {Scope.VIEW}),
        ("answers", {Scope.VIEW, Scope.ANSWER}),
        ("nothing", set()),
    ],
)
async def test_a_token_cannot_be_made_nameless_powerless_or_answering(
    kept: Kept, name: str, scopes: set[Scope]
) -> None:
    with pytest.raises(InvalidInput):
        await kept.keeper.create(
            name=name, scopes=frozenset(scopes), lifetime=None, actor=LOCAL
        )


async def test_a_revoked_token_is_told_once(kept: Kept) -> None:
    text = await kept.keeper.create(
        name="wall", scopes=frozenset({Scope.VIEW}), lifetime=None, actor=LOCAL
    )
    shown = parse_token(text)
    assert shown is not None
    assert await kept.keeper.revoke(shown.id, actor=LOCAL) is True
    assert await kept.keeper.revoke(shown.id, actor=LOCAL) is False


async def test_many_wrong_tokens_have_to_wait_and_the_right_one_never(
    kept: Kept,
) -> None:
    right = await kept.admin()
    for _ in range(FAILURES_PER_MINUTE):
        with pytest.raises(Unauthenticated):
            await kept.keeper.authenticate("sst_wrong", address="10.0.0.9")
    with pytest.raises(RateLimited) as caught:
        await kept.keeper.authenticate("sst_wrong", address="10.0.0.9")
    assert 0 < caught.value.retry_after_ms <= 60_000
    with pytest.raises(Unauthenticated):
        await kept.keeper.authenticate("sst_wrong", address="10.0.0.8")
    await kept.keeper.authenticate(right, address="10.0.0.9")
    kept.clock.now += timedelta(minutes=1)
    with pytest.raises(Unauthenticated):
        await kept.keeper.authenticate("sst_wrong", address="10.0.0.9")


async def test_a_flood_of_wrong_tokens_is_one_row_with_a_count(kept: Kept) -> None:
    for _ in range(25):
        with pytest.raises((Unauthenticated, RateLimited)):
            await kept.keeper.authenticate("no", address="10.0.0.9")
    await kept.keeper.close()
    [entry] = await kept.audit.list_entries(limit=10)
    assert entry.record.action == "login.refused"
    assert entry.record.outcome is AuditOutcome.REFUSED
    assert entry.record.address == "10.0.0.9"
    assert entry.record.detail == "count=25"


async def test_a_right_id_with_a_wrong_secret_is_refused(kept: Kept) -> None:
    text = await kept.admin()
    shown = parse_token(text)
    other, _ = mint_token(
        PrincipalKind.ADMIN, ADMIN_SCOPES, name="x", created_at=kept.clock()
    )
    assert shown is not None
    with pytest.raises(Unauthenticated):
        await kept.keeper.authenticate(
            f"sst_{shown.id}_{other.rsplit('_', 1)[0][-1]}{other[-42:]}", address=None
        )


@given(st.text())
def test_any_text_is_a_token_or_it_is_not(text: str) -> None:
    """A non-ASCII letter once reached the comparison, which raised TypeError."""
    assert parse_token(text) is None


@pytest.mark.parametrize("suffix", ["\n", " ", "=", "ä", "A"])
def test_a_token_with_something_behind_it_is_none(suffix: str) -> None:
    text, _ = mint_token(
        PrincipalKind.ADMIN, ADMIN_SCOPES, name="x", created_at=datetime.now(UTC)
    )
    assert parse_token(text) is not None
    assert parse_token(text + suffix) is None


def test_a_token_has_one_spelling_only() -> None:
    """43 characters carry two bits more than the secret: they must be zero."""
    text, _ = mint_token(
        PrincipalKind.ADMIN, ADMIN_SCOPES, name="x", created_at=datetime.now(UTC)
    )
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    good = [letter for letter in alphabet if parse_token(text[:-1] + letter)]
    assert len(good) == 16
    assert text[-1] in good
