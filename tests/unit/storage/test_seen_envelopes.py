import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from sidestage.envelopes.replay import SeenEnvelope, check_not_replayed
from sidestage.errors import EnvelopeReplayed
from sidestage.ids import DeviceId
from sidestage.storage.database import Database
from sidestage.storage.seen_envelopes import SqlSeenEnvelopes, add_seen, set_outcome
from tests.fakes.envelopes import seal_answer

SEEN = SeenEnvelope.of(seal_answer())
DEVICE, MESSAGE = SEEN.device_id, SEEN.message_id


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "sidestage.db")
    yield database
    await database.close()


async def test_an_accepted_envelope_is_known_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "sidestage.db"
    database = await Database.open(path)
    await SqlSeenEnvelopes(database).add(SEEN)
    await database.close()
    again = await Database.open(path)
    assert await SqlSeenEnvelopes(again).find(DEVICE, MESSAGE) == SEEN
    await again.close()


async def test_a_message_of_another_device_is_another_message(
    database: Database,
) -> None:
    seen = SqlSeenEnvelopes(database)
    await seen.add(SEEN)
    assert await seen.find(DeviceId("device:2"), MESSAGE) is None


async def test_of_two_with_one_message_id_the_second_finds_the_first(
    database: Database,
) -> None:
    seen = SqlSeenEnvelopes(database)
    other = replace(SEEN, digest=bytes(32))
    kept = await asyncio.gather(seen.add(SEEN), seen.add(other))
    assert kept[0] == kept[1]
    with pytest.raises(EnvelopeReplayed):
        check_not_replayed(await seen.add(other), seal_answer())


async def test_the_first_outcome_stays(database: Database) -> None:
    seen = SqlSeenEnvelopes(database)
    await seen.settle(DEVICE, MESSAGE, "unknown yet")
    await seen.add(SEEN)
    await seen.settle(DEVICE, MESSAGE, "STARTED terminal:1")
    await seen.settle(DEVICE, MESSAGE, "FAILED")
    found = await seen.find(DEVICE, MESSAGE)
    assert found is not None
    assert found.outcome == "STARTED terminal:1"


async def test_rows_are_kept_until_their_time_and_not_longer(
    database: Database,
) -> None:
    seen = SqlSeenEnvelopes(database)
    await seen.add(SEEN)
    await seen.forget_before(SEEN.keep_until_ms - 1)
    assert await seen.find(DEVICE, MESSAGE) is not None
    await seen.forget_before(SEEN.keep_until_ms)
    assert await seen.find(DEVICE, MESSAGE) is None


async def test_an_effect_that_fails_takes_the_row_with_it(database: Database) -> None:
    seen = SqlSeenEnvelopes(database)

    async def fail_after_the_row() -> None:
        async with database.write() as db:
            await add_seen(db, SEEN)
            await set_outcome(db, DEVICE, MESSAGE, "STARTED")
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await fail_after_the_row()
    assert await seen.find(DEVICE, MESSAGE) is None
