import asyncio
from dataclasses import replace

import pytest

from sidestage.envelopes.replay import (
    KEPT_AFTER_EXPIRY_MS,
    SeenEnvelope,
    SeenEnvelopes,
    check_not_replayed,
)
from sidestage.errors import EnvelopeReplayed
from tests.fakes.envelopes import DEVICE_ID, OFFER, seal_answer
from tests.fakes.seen_envelopes import FakeSeenEnvelopes

ENVELOPE = seal_answer()
SEEN = SeenEnvelope.of(ENVELOPE)


def register() -> SeenEnvelopes:
    return FakeSeenEnvelopes()


def test_a_row_is_kept_for_a_day_after_the_expiry() -> None:
    assert SEEN.keep_until_ms == OFFER.expires_at_ms + KEPT_AFTER_EXPIRY_MS
    assert KEPT_AFTER_EXPIRY_MS == 86_400_000
    assert SEEN.outcome is None


def test_an_unknown_message_is_no_replay() -> None:
    check_not_replayed(None, ENVELOPE)


def test_the_very_same_envelope_is_no_replay() -> None:
    check_not_replayed(SEEN, ENVELOPE)


def test_another_envelope_is_a_replay() -> None:
    with pytest.raises(EnvelopeReplayed):
        check_not_replayed(SEEN, seal_answer())


async def test_of_two_that_add_one_message_the_second_finds_the_first() -> None:
    seen = register()
    other = replace(SEEN, digest=bytes(32))
    rows = await asyncio.gather(seen.add(SEEN), seen.add(other))
    assert list(rows) == [SEEN, SEEN]
    assert await seen.find(DEVICE_ID, SEEN.message_id) == SEEN


async def test_one_message_id_of_two_devices_is_two_messages() -> None:
    seen = register()
    await seen.add(SEEN)
    assert await seen.find(DEVICE_ID, "another") is None
    assert await seen.find(type(DEVICE_ID)("device:2"), SEEN.message_id) is None


async def test_the_first_outcome_stays() -> None:
    seen = register()
    await seen.add(SEEN)
    await seen.settle(DEVICE_ID, SEEN.message_id, "CONTINUED")
    await seen.settle(DEVICE_ID, SEEN.message_id, "FAILED")
    await seen.settle(DEVICE_ID, "unknown", "FAILED")
    row = await seen.find(DEVICE_ID, SEEN.message_id)
    assert row is not None
    assert row.outcome == "CONTINUED"


async def test_rows_are_forgotten_when_their_time_has_passed() -> None:
    seen = register()
    await seen.add(SEEN)
    await seen.forget_before(SEEN.keep_until_ms - 1)
    assert await seen.find(DEVICE_ID, SEEN.message_id) == SEEN
    await seen.forget_before(SEEN.keep_until_ms)
    assert await seen.find(DEVICE_ID, SEEN.message_id) is None
