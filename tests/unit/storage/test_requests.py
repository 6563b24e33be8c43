from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.errors import EnvelopeReplayed
from sidestage.requests.model import (
    Question,
    QuestionOption,
    RequestEnd,
    RequestKind,
    RequestState,
    RequestVerdict,
    Suggestion,
)
from sidestage.storage.database import Database
from sidestage.storage.requests import SqlRequestStore
from sidestage.storage.seen_envelopes import SqlSeenEnvelopes
from sidestage.storage.stores import SqlAuditLog
from tests.fakes.agent_requests import a_request
from tests.fakes.envelopes import seal_answer

REQUEST = a_request(
    kind=RequestKind.QUESTION,
    suggestions=(Suggestion('{"a":1}', "session", is_forbidden=False),),
    questions=(
        Question(
            "Which?", "Pick", (QuestionOption("A", "the first"),), multi_select=True
        ),
    ),
    plan="# Plan",
)
SEEN = SeenEnvelope.of(seal_answer())
BEGUN = AuditRecord("device:1", "request.answer", REQUEST.id, AuditOutcome.BEGUN)
DONE = replace(BEGUN, outcome=AuditOutcome.DONE)
ANSWERING = replace(
    REQUEST, state=RequestState.ANSWERING, verdict=RequestVerdict.ANSWER
)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "sidestage.db")
    yield database
    await database.close()


async def test_a_request_is_read_as_it_was_written(database: Database) -> None:
    store = SqlRequestStore(database)
    bare = a_request(2, origin=replace(REQUEST.origin, run=None, tool_use_id=None))
    await store.add(bare)
    await store.add(REQUEST)
    assert await store.load() == (REQUEST, bare)
    over = replace(
        REQUEST,
        state=RequestState.WITHDRAWN,
        settled_by=RequestEnd.KEYBOARD,
        has_timed_out=True,
    )
    await store.save(over)
    assert await store.load() == (over, bare)
    await store.forget(REQUEST.id)
    assert await store.load() == (bare,)


async def test_an_answer_its_envelope_and_the_audit_are_written_as_one(
    database: Database,
) -> None:
    store, seen = SqlRequestStore(database), SqlSeenEnvelopes(database)
    await store.add(REQUEST)
    assert await store.begin_answer(ANSWERING, SEEN, BEGUN) == SEEN
    assert await seen.find(SEEN.device_id, SEEN.message_id) == SEEN
    over = replace(ANSWERING, state=RequestState.ANSWERED, settled_by=RequestEnd.DEVICE)
    await store.finish_answer(over, SEEN, "ANSWERED", DONE)
    known = await seen.find(SEEN.device_id, SEEN.message_id)
    assert known == replace(SEEN, outcome="ANSWERED")
    assert await store.load() == (over,)
    entries = await SqlAuditLog(database).list_entries(limit=9)
    assert [entry.record for entry in entries] == [DONE, BEGUN]


async def test_of_a_replay_nothing_is_written(database: Database) -> None:
    store = SqlRequestStore(database)
    await store.add(REQUEST)
    await SqlSeenEnvelopes(database).add(replace(SEEN, digest=b"another"))
    with pytest.raises(EnvelopeReplayed):
        await store.begin_answer(ANSWERING, SEEN, BEGUN)
    assert await store.load() == (REQUEST,)
    assert await SqlAuditLog(database).list_entries(limit=9) == ()
