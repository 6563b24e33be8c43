"""The table of what agents ask, and the store on it."""

from typing import Any

import orjson
from sqlalchemy import (
    Boolean,
    Column,
    Integer,
    LargeBinary,
    Row,
    Table,
    Text,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.audit import AuditRecord
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.errors import EnvelopeReplayed
from sidestage.ids import SessionId, TerminalId
from sidestage.requests.model import (
    AgentRequest,
    Question,
    QuestionOption,
    RequestEnd,
    RequestId,
    RequestKind,
    RequestOrigin,
    RequestState,
    RequestVerdict,
    Suggestion,
)
from sidestage.sessions.model import Process
from sidestage.storage import audit
from sidestage.storage.database import Database
from sidestage.storage.schema import UtcTime, metadata
from sidestage.storage.seen_envelopes import add_seen, set_outcome
from sidestage.storage.stores import Clock, utc_now

requests = Table(
    "requests",
    metadata,
    Column("id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("terminal_id", Text),
    Column("kind", Text, nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("input_json", Text, nullable=False),
    Column("offered", Text, nullable=False),
    Column("plan", Text),
    Column("state", Text, nullable=False),
    Column("state_since", UtcTime, nullable=False),
    Column("has_timed_out", Boolean, nullable=False),
    Column("settled_by", Text),
    Column("verdict", Text),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("pid", Integer),
    Column("start_ticks", Text),
    Column("tool_use_id", Text),
    Column("prompt_id", Text),
    Column("claim", LargeBinary, nullable=False),
    Column("event_digest", LargeBinary, nullable=False),
    Column("is_headless", Boolean, nullable=False),
)
"""`offered`: suggestions and questions, as JSON."""


class SqlRequestStore:
    """`sidestage.requests.store.RequestStore` on the database."""

    def __init__(self, database: Database, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    async def load(self) -> tuple[AgentRequest, ...]:
        """Return every request, oldest first."""
        order = (requests.c.created_at, requests.c.id)
        async with self._database.read() as db:
            rows = await db.execute(select(requests).order_by(*order))
            return tuple(_request(row) for row in rows)

    async def add(self, request: AgentRequest) -> None:
        """Insert the row."""
        async with self._database.write() as db:
            await db.execute(insert(requests).values(_values(request)))

    async def save(self, request: AgentRequest) -> None:
        """Write *request* over its row."""
        async with self._database.write() as db:
            await _save(db, request)

    async def begin_answer(
        self, request: AgentRequest, seen: SeenEnvelope, record: AuditRecord
    ) -> SeenEnvelope:
        """Write that an answer was accepted; raise `EnvelopeReplayed` for a replay."""
        async with self._database.write() as db:
            kept = await add_seen(db, seen)
            if kept.digest != seen.digest:
                raise EnvelopeReplayed(
                    "This message id came before, in another envelope."
                )
            await _save(db, request)
            await audit.append_entry(db, record, at=self._clock())
            return kept

    async def finish_answer(
        self,
        request: AgentRequest,
        seen: SeenEnvelope,
        outcome: str,
        record: AuditRecord,
    ) -> None:
        """Write what became of an accepted answer."""
        async with self._database.write() as db:
            await _save(db, request)
            await set_outcome(db, seen.device_id, seen.message_id, outcome)
            await audit.append_entry(db, record, at=self._clock())

    async def forget(self, request_id: RequestId) -> None:
        """Delete the row."""
        async with self._database.write() as db:
            await db.execute(delete(requests).where(requests.c.id == request_id))


async def _save(db: AsyncConnection, request: AgentRequest) -> None:
    statement = update(requests).where(requests.c.id == request.id)
    await db.execute(statement.values(_values(request)))


def _values(request: AgentRequest) -> dict[str, object]:
    origin = request.origin
    return {
        "id": request.id,
        "session_id": request.session_id,
        "terminal_id": request.terminal_id,
        "kind": request.kind.value,
        "tool_name": request.tool_name,
        "input_json": request.input_json,
        "offered": _dump_offered(request),
        "plan": request.plan,
        "state": request.state.value,
        "state_since": request.state_since,
        "has_timed_out": request.has_timed_out,
        "settled_by": request.settled_by,
        "verdict": request.verdict,
        "created_at": request.created_at,
        "expires_at": request.expires_at,
        "pid": origin.run and origin.run.pid,
        "start_ticks": origin.run and origin.run.start_ticks,
        "tool_use_id": origin.tool_use_id,
        "prompt_id": origin.prompt_id,
        "claim": origin.claim,
        "event_digest": origin.event_digest,
        "is_headless": origin.is_headless,
    }


def _dump_offered(request: AgentRequest) -> str:
    offered = {
        "suggestions": request.suggestions,
        "questions": request.questions,
    }
    return orjson.dumps(offered).decode()


def _request(row: Row[tuple[object, ...]]) -> AgentRequest:
    offered = orjson.loads(row.offered)
    settled_by, verdict = row.settled_by, row.verdict
    return AgentRequest(
        id=RequestId(row.id),
        session_id=SessionId(row.session_id),
        terminal_id=row.terminal_id and TerminalId(row.terminal_id),
        kind=RequestKind(row.kind),
        tool_name=row.tool_name,
        input_json=row.input_json,
        suggestions=tuple(Suggestion(**each) for each in offered["suggestions"]),
        questions=tuple(_question(each) for each in offered["questions"]),
        plan=row.plan,
        state=RequestState(row.state),
        created_at=row.created_at,
        expires_at=row.expires_at,
        state_since=row.state_since,
        has_timed_out=row.has_timed_out,
        settled_by=None if settled_by is None else RequestEnd(settled_by),
        verdict=None if verdict is None else RequestVerdict(verdict),
        origin=_origin(row),
    )


def _origin(row: Row[tuple[object, ...]]) -> RequestOrigin:
    return RequestOrigin(
        run=None if row.pid is None else Process(row.pid, row.start_ticks),
        tool_use_id=row.tool_use_id,
        prompt_id=row.prompt_id,
        claim=row.claim,
        event_digest=row.event_digest,
        is_headless=row.is_headless,
    )


def _question(value: dict[str, Any]) -> Question:
    options = tuple(QuestionOption(**option) for option in value["options"])
    return Question(**{**value, "options": options})
