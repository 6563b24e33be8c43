"""Offers on disk: everything comes back, and what belongs together is one write."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.errors import EnvelopeReplayed
from sidestage.handover.model import (
    Accepted,
    Continuation,
    Handoff,
    OfferBlock,
    OfferState,
)
from sidestage.handover.store import Changes, OfferStore, Outcome, Stored
from sidestage.ids import ConversationId, DeviceId, TerminalId
from sidestage.storage.database import Database
from sidestage.storage.offer_store import SqlOfferStore
from sidestage.storage.seen_envelopes import SqlSeenEnvelopes
from sidestage.storage.stores import SqlAuditLog
from tests.fakes.envelopes import seal_answer
from tests.fakes.handovers import an_offer
from tests.fakes.values import START, session_id

ENVELOPE = seal_answer()
ACCEPTED = Accepted(
    envelope=ENVELOPE,
    device_id=DeviceId("device:1"),
    message_id=ENVELOPE.header.message_id,
    at=START,
    terminal_id=TerminalId("terminal:1"),
    conversation_id=ConversationId("11111111-2222-4333-8444-555555555555"),
    is_fresh=True,
    sent_at=START + timedelta(seconds=1),
)
RECORD = AuditRecord("device:1", "handover.answer", "offer:1", AuditOutcome.BEGUN)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "sidestage.db")
    yield database
    await database.close()


async def test_everything_comes_back(database: Database) -> None:
    store: OfferStore = SqlOfferStore(database)
    first = an_offer(1).with_envelopes({DeviceId("device:1"): ENVELOPE})
    second = an_offer(
        2,
        state=OfferState.ANSWERING,
        accepted=ACCEPTED,
        blocked_by=OfferBlock.DIALOG,
        last_failure="START_FAILED",
        continuation_id=session_id(9),
    )
    handoff = Handoff(session_id(1), START, "000000000001.0000")
    continuation = Continuation(ACCEPTED.conversation_id, session_id(1), START)
    await store.write(
        Changes(offers=(second, first), handoff=handoff, continuation=continuation)
    )
    assert await store.load() == Stored((first, second), (handoff,), (continuation,))


async def test_a_later_write_replaces_row_and_envelopes(database: Database) -> None:
    store = SqlOfferStore(database)
    offer = an_offer(accepted=ACCEPTED).with_envelopes({DeviceId("device:1"): ENVELOPE})
    await store.write(Changes(offers=(offer,)))
    later = replace(offer, state=OfferState.CONTINUED, accepted=None)
    later = later.with_envelopes({DeviceId("device:2"): ENVELOPE})
    await store.write(Changes(offers=(later,)))
    assert (await store.load()).offers == (later,)
    await store.write(Changes(removed=(offer.id,), taken_back=session_id(1)))
    assert await store.load() == Stored()


async def test_an_answer_its_seen_row_and_its_record_are_one_write(
    database: Database,
) -> None:
    store, seen = SqlOfferStore(database), SqlSeenEnvelopes(database)
    offer = an_offer()
    await store.write(Changes(offers=(offer,)))
    row = SeenEnvelope.of(ENVELOPE)
    answering = replace(offer, state=OfferState.ANSWERING, accepted=ACCEPTED)
    await store.write(Changes(offers=(answering,), seen=row, records=(RECORD,)))
    assert await seen.find(row.device_id, row.message_id) == row

    other = replace(row, digest=b"x" * 32)
    with pytest.raises(EnvelopeReplayed):
        await store.write(Changes(offers=(offer,), seen=other, records=(RECORD,)))
    assert (await store.load()).offers == (answering,)
    assert len(await SqlAuditLog(database).list_entries(limit=5)) == 1

    outcome = Outcome(row.device_id, row.message_id, "CONTINUED")
    await store.write(Changes(outcome=outcome))
    settled = await seen.find(row.device_id, row.message_id)
    assert settled is not None
    assert settled.outcome == "CONTINUED"


async def test_a_handoff_is_taken_back(database: Database) -> None:
    store = SqlOfferStore(database)
    handoff = Handoff(session_id(1), START, "a")
    await store.write(Changes(handoff=handoff))
    await store.write(Changes(handoff=replace(handoff, order="b")))
    assert (await store.load()).handoffs == (replace(handoff, order="b"),)
    await store.write(Changes(taken_back=session_id(1)))
    assert (await store.load()).handoffs == ()
