"""The requests with everything round them in memory: an agent asks, a phone answers."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final

from sidestage.devices.model import (
    ADMIN_SCOPES,
    Device,
    Principal,
    PrincipalKind,
    Scope,
)
from sidestage.devices.push import Push
from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.ids import ConversationId, DeviceId
from sidestage.projects.adoption import Adoption, AdoptionPolicy
from sidestage.requests.desk import RequestDesk
from sidestage.requests.intake import RequestIntake
from sidestage.requests.ledger import RequestLedger
from sidestage.requests.model import AgentRequest
from sidestage.requests.parts import LedgerParts
from sidestage.requests.watch import RequestWatch
from sidestage.sessions.hooks import HookEvent, HookKind
from sidestage.sessions.model import (
    EvidenceSource,
    OpenCall,
    Process,
    Session,
    SessionState,
    StateEvidence,
)
from tests.fakes.agent_requests import RUN
from tests.fakes.devices import FakeDevices, a_device
from tests.fakes.hooks import FakeHold
from tests.fakes.request_store import FakeRequestStore
from tests.fakes.seals import FakeSeals, seal_by_device
from tests.fakes.sessions import FakeSessions
from tests.fakes.values import START, a_session, session_id

SESSION: Final = session_id(1)
ADMIN: Final = Principal(PrincipalKind.ADMIN, ADMIN_SCOPES, "admin", token_id="t1")


class FakeAdoption(Adoption):
    """Adopts every folder but those a test excludes."""

    def __init__(self) -> None:
        self.excluded: set[str | None] = set()

    @property
    def policy(self) -> AdoptionPolicy:
        return AdoptionPolicy()

    def adopts(self, directory: str | None) -> bool:
        return directory not in self.excluded

    async def set_policy(
        self, policy: AdoptionPolicy, *, actor: Principal
    ) -> AdoptionPolicy:
        raise AssertionError((policy, actor))


class FakePush(Push):
    """Remembers what it was to say."""

    def __init__(self) -> None:
        self.has_endpoint = False
        self.said: list[tuple[str, str]] = []

    def reaches_anyone(self) -> bool:
        return self.has_endpoint

    def waiting(self, subject_id: str, session_id: str) -> None:
        self.said.append(("waiting", subject_id))

    def settled(self, subject_id: str) -> None:
        self.said.append(("settled", subject_id))


@dataclass
class FakePresence:
    """The devices a test connects."""

    connected: set[DeviceId] = field(default_factory=set)

    def connected_devices(self) -> frozenset[DeviceId]:
        return frozenset(self.connected)


@dataclass
class Requesting:
    """One session that asks, two phones that may answer, one of them connected."""

    store: FakeRequestStore = field(default_factory=FakeRequestStore)
    holds_headless: bool = False
    now: datetime = START
    row: Session = field(default_factory=lambda: asking_row(since=START))

    def __post_init__(self) -> None:
        self.phone, self.tablet = a_device(1), a_device(2)
        self.devices = FakeDevices(self.phone, self.tablet)
        self.sessions = FakeSessions(self.row)
        self.adoption = FakeAdoption()
        self.push = FakePush()
        self.presence = FakePresence({self.phone.id})
        parts = LedgerParts(
            sessions=self.sessions,
            adoption=self.adoption,
            devices=self.devices,
            presence=self.presence,
            push=self.push,
            store=self.store,
            holds_headless=self.holds_headless,
            clock=lambda: self.now,
        )
        self.ledger = RequestLedger(parts)
        self.watch = RequestWatch(self.ledger)
        self.intake = RequestIntake(self.ledger, self.watch)
        seals = FakeSeals(self.devices, self.store.seen, lambda: self.now)
        self.desk = RequestDesk(self.ledger, self.watch, seals, self.store.audit)
        self._numbers = count(1)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Let it run, as the server does."""
        await self.ledger.load()
        async with self.watch.running():
            yield
            await self.desk.close()

    def restarted(self) -> "Requesting":
        """Return what a new server makes of the same rows and the same session."""
        return Requesting(store=self.store, row=self.row, now=self.now)

    def pass_time(self, seconds: float = 1.0) -> datetime:
        """Let some time pass on the server's clock."""
        self.now += timedelta(seconds=seconds)
        return self.now

    # The agent.

    def event(self, kind: HookKind, **payload: Any) -> HookEvent:
        """Return an event of the session, now."""
        return HookEvent(
            kind=kind,
            session_id=SESSION,
            conversation_id=ConversationId("c"),
            run=RUN,
            at=self.pass_time(),
            terminal_id=None,
            is_from_subagent="agent_id" in payload,
            was_spooled=False,
            payload={"prompt_id": "prompt-1", **payload},
        )

    async def hear(self, kind: HookKind, **payload: Any) -> None:
        """Let the agent tell an event."""
        await self.intake.heard(self.event(kind, **payload))

    async def ask(
        self,
        tool_name: str = "Bash",
        tool_input: Mapping[str, Any] | None = None,
        *,
        hold: FakeHold | None = None,
        call_id: str | None = "toolu_1",
        **payload: Any,
    ) -> FakeHold:
        """Let the agent ask, its call's own event first; return the hook that waits."""
        number = next(self._numbers)
        value = {"command": "ls"} if tool_input is None else dict(tool_input)
        values = {"tool_name": tool_name, "tool_input": value, **payload}
        if call_id is not None:
            await self.hear(HookKind.TOOL_STARTING, tool_use_id=call_id, **values)
        hold = hold or FakeHold(bytes([number]) * 32, bytes([100 + number]) * 32)
        event = self.event(HookKind.PERMISSION_REQUEST, **values)
        await self.intake.held(event, hold)
        return hold

    def waiting(self) -> AgentRequest:
        """Return the one request that is open."""
        (request,) = self.ledger.open_of(SESSION)
        return request

    def last(self) -> AgentRequest:
        """Return the request that came last, open or not."""
        return self.ledger.feed.values()[-1]

    def set_row(self, **changes: Any) -> None:
        """Change the session's row."""
        self.row = replace(self.row, **changes)
        self.sessions.feed.upsert(self.row)

    def set_state(
        self,
        state: SessionState,
        source: EvidenceSource = EvidenceSource.REGISTRY,
        *,
        since: datetime | None = None,
    ) -> None:
        """Let the session be in *state* from now on."""
        since = since or self.pass_time()
        self.set_row(
            state=state, state_since=since, state_evidence=StateEvidence(source, since)
        )

    def set_open_calls(self, *ids: str, tool_name: str = "Bash") -> None:
        """Let the transcript hold these calls without a result."""
        calls = tuple(OpenCall(id_, tool_name) for id_ in ids)
        self.set_row(origin=replace(self.row.origin, open_calls=calls))

    def set_processes(
        self, *processes: Process, headless: frozenset[Process] = frozenset()
    ) -> None:
        """Let these processes be on the session."""
        origin = replace(self.row.origin, processes=processes, headless=headless)
        self.set_row(origin=origin)

    # The phone.

    def seal(
        self,
        request: AgentRequest,
        decision: str = "allow",
        selections: Any = (),
        *,
        note: str = "",
        shown: str | None = None,
        device: Device | None = None,
        subject: Subject | None = None,
    ) -> Envelope:
        """Return an answer to *request* as a device seals it."""
        device = device or self.phone
        content = {
            "decision": decision,
            "note": note,
            "selections": list(selections),
            "shown": request.digest if shown is None else shown,
        }
        return seal_by_device(
            device,
            int(device.id.removeprefix("device:")),
            purpose=Purpose.REQUEST_ANSWER,
            subject=subject or request.subject,
            content=content,
        )

    async def send(
        self,
        envelope: Envelope,
        request: AgentRequest,
        *,
        actor: Principal | None = None,
    ) -> AgentRequest:
        """Send a sealed answer, as the phone unless told else."""
        actor = actor or actor_of(self.phone)
        return await self.desk.answer(request.id, envelope, actor=actor)

    def audited(self) -> list[tuple[str, str | None]]:
        """Return outcome and code of every entry of the audit log."""
        records = [entry.record for entry in self.store.audit.entries]
        return [(each.outcome.value, each.code) for each in records]


def actor_of(device: Device, *more: Scope) -> Principal:
    """Return *device* as a caller."""
    scopes = device.scopes | set(more)
    return Principal(PrincipalKind.DEVICE, scopes, device.id, device.id, "t2", "::1")


def asking_row(*, since: datetime) -> Session:
    """Return a session that asks, on one process."""
    session = a_session(
        1,
        state=SessionState.ASKING,
        state_since=since,
        state_evidence=StateEvidence(EvidenceSource.REGISTRY, since),
    )
    return replace(session, origin=replace(session.origin, processes=(RUN,)))
