import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from sidestage.devices.host_keys import HostKeys
from sidestage.devices.model import Device, Principal, PrincipalKind
from sidestage.devices.sealing_desk import SealingDesk
from sidestage.envelopes.envelope import Envelope, Purpose
from sidestage.envelopes.keys import PublicKey
from sidestage.envelopes.sealing import Parties, seal_envelope, unseal_envelope
from sidestage.handover.model import Offer, OfferState
from sidestage.handover.pace import Pace
from sidestage.handover.parts import HandoverParts
from sidestage.handover.service import Handover
from sidestage.ids import ConversationId, HostId, SessionId
from sidestage.sessions.hooks import HookEvent, HookKind
from sidestage.sessions.model import Session, SessionState
from sidestage.sessions.transcript import EntryKind
from sidestage.storage.database import Database
from sidestage.storage.offer_store import SqlOfferStore
from sidestage.storage.seen_envelopes import SqlSeenEnvelopes
from sidestage.storage.stores import SqlAuditLog
from tests.fakes.devices import FakeDevices, a_device, device_key
from tests.fakes.handover import (
    FakeAdoption,
    FakeAgents,
    FakeClock,
    FakeOpenRequests,
    FakePush,
)
from tests.fakes.sessions import FakeSessions
from tests.fakes.transcripts import FakeTranscripts
from tests.fakes.values import SECRET_CONVERSATION, a_session, a_terminal, session_id

HOST = HostId("host:1")
MACHINE_SECRET = b"machine secret of the tests....."
PARENT = session_id(1)
QUESTION = "Both work.\n\nWhich one would you like me to implement?"
QUICK = Pace(
    flush_seconds=0.05,
    shown_seconds=0.02,
    leaves_seconds=0.02,
    patience_seconds=0.2,
    look_again_seconds=0.01,
)
FINAL = frozenset(OfferState) - {OfferState.PENDING, OfferState.ANSWERING}


def an_actor(device: Device) -> Principal:
    """Return the caller that shows the device's token."""
    return Principal(
        PrincipalKind.DEVICE, device.scopes, device.id, device.id, f"token:{device.id}"
    )


@dataclass
class Bench:
    """A handover over a database, with agents in memory."""

    handover: Handover
    database: Database
    agents: FakeAgents
    sessions: FakeSessions
    transcripts: FakeTranscripts
    devices: FakeDevices
    keys: HostKeys
    adoption: FakeAdoption
    requests: FakeOpenRequests
    push: FakePush
    audit: SqlAuditLog
    clock: FakeClock
    parts: HandoverParts
    running: "asyncio.Task[None] | None" = None

    # Sessions.

    def add_parent(self, **changes: Any) -> Session:
        """List the session that will ask, idle at its keyboard."""
        row = a_session(1, **changes)
        self.sessions.feed.upsert(row)
        self.transcripts.entries.setdefault(row.id, [])
        self.agents.tell(row.id, SessionState.RUNNING)
        return row

    def add_own_terminal(self) -> Session:
        """List the session that will ask, in a terminal of ours."""
        terminal = a_terminal(7, session_id=PARENT)
        self.agents.terminals.upsert(terminal)
        self.agents.boxes[terminal.id] = ""
        return self.add_parent(terminal_id=terminal.id)

    def ask(self, question: str = QUESTION) -> None:
        """End the parent's turn with a question."""
        self.agents.say(PARENT, EntryKind.PROMPT, "look at the project")
        self.agents.say(PARENT, EntryKind.MESSAGE, question)
        self.agents.tell(PARENT, SessionState.IDLE)

    async def hear(
        self,
        kind: HookKind = HookKind.STOPPED,
        *,
        is_from_subagent: bool = False,
        **payload: object,
    ) -> None:
        """Tell of a hook event of the parent."""
        self.clock.forward(milliseconds=1)
        await self.handover.listener.heard(
            HookEvent(
                kind=kind,
                session_id=PARENT,
                conversation_id=SECRET_CONVERSATION,
                run=None,
                at=self.clock(),
                terminal_id=None,
                is_from_subagent=is_from_subagent,
                was_spooled=False,
                payload=payload,
            )
        )

    async def offer(self, question: str = QUESTION) -> Offer:
        """Let the parent ask; return the offer."""
        self.ask(question)
        await self.hear(last_assistant_message=question)
        offer = self.handover.open_of(PARENT)
        assert offer is not None
        return offer

    def offers(self) -> list[Offer]:
        return list(self.handover.feed.values())

    # Devices.

    def open(self, envelope: Envelope, number: int = 1) -> dict[str, Any]:
        """Open what was sealed for a device, as that device."""
        return unseal_envelope(
            envelope,
            recipient=device_key(number),
            sender=self.keys.current.public,
        )

    def seal(
        self,
        offer: Offer,
        answer: str = "The second one",
        number: int = 1,
        **changes: str,
    ) -> Envelope:
        """Seal an answer, as a device does."""
        device = a_device(number)
        return seal_envelope(
            {
                "answer": answer,
                "question": QUESTION,
                "summary": "You: look at the project",
                **changes,
            },
            purpose=Purpose.HANDOVER_ANSWER,
            parties=Parties(
                HOST, self.keys.current.public, device.id, PublicKey(device.key)
            ),
            subject=offer.subject,
            sender=device_key(number),
            sealed_at_ms=0,
        )

    async def answer(
        self, offer: Offer, envelope: Envelope | None = None, number: int = 1
    ) -> Offer:
        """Send an answer from a device; return the offer as it is told then."""
        actor = an_actor(a_device(number))
        sealed = envelope or self.seal(offer, number=number)
        return await self.handover.answer(offer.id, sealed, actor=actor)

    async def until(self, offer: Offer, *states: OfferState) -> Offer:
        """Wait until the offer is in one of *states*."""
        return await self.until_is(offer, lambda now: now.state in states)

    async def until_is(self, offer: Offer, holds: Callable[[Offer], object]) -> Offer:
        """Wait until *holds* is true of the offer."""
        feed = self.handover.feed
        last: Offer | None = None
        try:
            async with asyncio.timeout(5):
                while True:
                    seq = feed.seq
                    last = feed.get(offer.id)
                    if last is not None and holds(last):
                        return last
                    await feed.wait_beyond(seq)
        except TimeoutError:
            raise AssertionError(f"it never came; the offer is {last}") from None

    def prompts(self, session_id: SessionId) -> list[str]:
        """Return what the session was prompted."""
        return [
            entry.text
            for entry in self.transcripts.entries.get(session_id, ())
            if entry.kind is EntryKind.PROMPT
        ]

    def child(self, index: int = -1) -> SessionId:
        """Return the session of a fork."""
        conversation: ConversationId = self.agents.forks[index].conversation_id
        return self.agents.session_id(conversation)

    async def actions(self) -> list[tuple[str, str, str | None]]:
        """Return the audit log: action, outcome, code; oldest first."""
        entries = await self.audit.list_entries(limit=100)
        return [
            (it.record.action, it.record.outcome.value, it.record.code)
            for it in reversed(entries)
        ]

    # Servers.

    def begin(self) -> None:
        """Let the handover run."""
        self.running = asyncio.create_task(self.handover.run())

    async def stop(self) -> None:
        """Stop it, as at the server's end."""
        if self.running is not None:
            self.running.cancel()
            with suppress(asyncio.CancelledError):
                await self.running

    async def restart(self) -> None:
        """Let another server take over from what is on disk."""
        await self.stop()
        self.handover = Handover(self.parts)
        await self.handover.load()
        self.begin()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    database = await Database.open(tmp_path / "sidestage.db")
    made = await make_bench(database, tmp_path)
    made.begin()
    yield made
    await made.stop()
    await database.close()


async def make_bench(database: Database, folder: Path) -> Bench:
    """Make a handover; the caller runs it."""
    clock = FakeClock()
    keys = HostKeys(folder / "host-key", HOST, clock=clock)
    await keys.load()
    sessions, transcripts = FakeSessions(), FakeTranscripts()
    devices = FakeDevices(a_device(1), a_device(2))
    agents = FakeAgents(sessions, transcripts, clock)
    audit = SqlAuditLog(database, clock=clock)
    seals = SealingDesk(keys, devices, SqlSeenEnvelopes(database), audit, clock=clock)
    parts = HandoverParts(
        sessions=sessions,
        transcripts=transcripts,
        statuses=agents,
        lineage=agents,
        terminals=agents.terminals,
        forks=agents,
        typist=agents,
        store=SqlOfferStore(database, clock=clock),
        devices=devices,
        seals=seals,
        push=(push := FakePush()),
        adoption=(adoption := FakeAdoption()),
        requests=(requests := FakeOpenRequests()),
        audit=audit,
        machine_secret=MACHINE_SECRET,
        clock=clock,
        pace=QUICK,
    )
    handover = Handover(parts)
    await handover.load()
    return Bench(
        handover=handover,
        database=database,
        agents=agents,
        sessions=sessions,
        transcripts=transcripts,
        devices=devices,
        keys=keys,
        adoption=adoption,
        requests=requests,
        push=push,
        audit=audit,
        clock=clock,
        parts=parts,
    )


def deleted_transcript(row: Session) -> Session:
    """Return the row of a session whose transcript was deleted."""
    return replace(row, origin=replace(row.origin, transcript=None))
