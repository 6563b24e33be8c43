"""Agents in memory: prompt boxes, dialogs, a registry, and forks of them."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sidestage.devices.model import Principal
from sidestage.envelopes.envelope import Envelope
from sidestage.errors import HostUnavailable, SidestageError, TerminalNotFound
from sidestage.feeds import Feed
from sidestage.ids import ConversationId, SessionId, TerminalId
from sidestage.projects.adoption import AdoptionPolicy
from sidestage.sessions.lineage import AgentStatuses, Lineage, ToldStatus
from sidestage.sessions.model import Process, SessionState
from sidestage.sessions.transcript import EntryKind, TranscriptEntry
from sidestage.terminals.forks import Fork, Forks
from sidestage.terminals.model import Terminal, TerminalState
from sidestage.terminals.typist import Keyboard, Typist
from tests.fakes.sessions import FakeSessions
from tests.fakes.transcripts import FakeTranscripts
from tests.fakes.values import START, a_session, a_terminal

RULE = "─" * 60
DIALOG = f"""{RULE}
 Bash command
 Do you want to proceed?
 ❯ 1. Yes
   2. No
"""
_PASTE = re.compile(b"\x1b\\[200~(.*?)\x1b\\[201~", re.DOTALL)
FOLDED_FROM_CHARACTERS = 800
FOLDED_FROM_LINES = 4
ROWS = 30


def _is_folded(piece: str) -> bool:
    return (
        len(piece) > FOLDED_FROM_CHARACTERS
        or piece.count("\n") + 1 >= FOLDED_FROM_LINES
    )


@dataclass
class FakeClock:
    """A clock that a test moves."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **amount: float) -> None:
        self.now += timedelta(**amount)


@dataclass
class FakeAgents:
    """Every agent of a machine, as typists, registries and forks meet it."""

    sessions: FakeSessions
    transcripts: FakeTranscripts
    clock: FakeClock
    terminals: Feed[Terminal] = field(
        default_factory=lambda: Feed[Terminal](lambda it: it.id)
    )
    statuses: dict[SessionId, ToldStatus] = field(default_factory=dict)
    folded: set[TerminalId] = field(default_factory=set)
    """Whose boxes show a folded paste."""
    boxes: dict[TerminalId, str] = field(default_factory=dict)
    dialogs: set[TerminalId] = field(default_factory=set)
    approved: list[TerminalId] = field(default_factory=list)
    """Dialogs that an Enter approved."""
    ran: list[str] = field(default_factory=list)
    """What a shell ran."""
    forks: list[Fork] = field(default_factory=list)
    fails_with: SidestageError | None = None
    is_lost: bool = False
    """The host started, but did not answer."""
    opens_dialog: bool = False
    """Whether a fork shows a dialog before it registers."""
    on_paste: Callable[[TerminalId], None] | None = None
    on_enter: Callable[[TerminalId], None] | None = None
    loses_enters: int = 0
    continues: dict[ConversationId, SessionId] = field(default_factory=dict)
    handed_off: dict[SessionId, datetime] = field(default_factory=dict)

    # The registry.

    async def told_status(self, session_id: SessionId) -> ToldStatus | None:
        return self.statuses.get(session_id)

    def tell(self, session_id: SessionId, state: SessionState) -> None:
        """Let the session's process say what it does, from now on."""
        self.clock.forward(milliseconds=1)
        process = Process(4711, "1")
        self.statuses[session_id] = ToldStatus(process, state, self.clock())
        row = self.sessions.find(session_id)
        if row is not None:
            row = replace(row, state=state, state_since=self.clock())
            self.sessions.feed.upsert(row)

    # Lineage.

    def session_id(self, conversation_id: ConversationId) -> SessionId:
        return SessionId("outside:" + conversation_id.replace("-", ""))

    def set_continues(
        self, conversation_id: ConversationId, parent_id: SessionId
    ) -> None:
        self.continues[conversation_id] = parent_id

    def set_handed_off(self, session_id: SessionId, at: datetime | None) -> None:
        if at is None:
            self.handed_off.pop(session_id, None)
        else:
            self.handed_off[session_id] = at

    # Transcripts.

    def say(
        self, session_id: SessionId, kind: EntryKind, text: str, uuid: str | None = None
    ) -> TranscriptEntry:
        """Write an entry into the session's transcript."""
        self.clock.forward(milliseconds=1)
        number = len(self.transcripts.entries.get(session_id, ()))
        hex_ = session_id.partition(":")[2]
        entry = TranscriptEntry(
            id=f"entry:{hex_}:{uuid or f'uuid{number}'}:0",
            order=f"{number:012x}.0000",
            kind=kind,
            at=self.clock(),
            text=text,
            truncated=False,
        )
        self.transcripts.put(session_id, entry)
        row = self.sessions.find(session_id)
        if row is not None:
            self.sessions.feed.upsert(replace(row, last_activity_at=self.clock()))
        return entry

    # Forks.

    async def fork(self, fork: Fork, *, actor: Principal) -> Terminal:
        known = self.terminals.get(fork.terminal_id)
        if known is not None:
            return known
        if self.fails_with is not None:
            raise self.fails_with
        self.forks.append(fork)
        terminal = self._begin(fork)
        if self.is_lost:
            raise HostUnavailable("The terminal host does not answer.")
        return terminal

    async def fate(self, terminal_id: TerminalId) -> Terminal | None:
        return self.terminals.get(terminal_id)

    def _begin(self, fork: Fork) -> Terminal:
        child = self.session_id(fork.conversation_id)
        terminal = a_terminal(id=fork.terminal_id, session_id=child)
        self.terminals.upsert(terminal)
        self.boxes[terminal.id] = ""
        if self.opens_dialog:
            self.dialogs.add(terminal.id)
        else:
            self.register(terminal)
        return terminal

    def register(self, terminal: Terminal) -> None:
        """Let the agent in *terminal* get to its prompt."""
        assert terminal.session_id is not None
        self.dialogs.discard(terminal.id)
        self.transcripts.entries.setdefault(terminal.session_id, [])
        row = a_session(id=terminal.session_id, terminal_id=terminal.id)
        self.sessions.feed.upsert(row)
        self.tell(terminal.session_id, SessionState.IDLE)

    def end(self, terminal_id: TerminalId) -> None:
        """Let the terminal's program end."""
        terminal = self.terminals.get(terminal_id)
        assert terminal is not None
        self.terminals.upsert(replace(terminal, state=TerminalState.EXITED))

    # Keyboards.

    @asynccontextmanager
    async def open_keyboard(
        self, terminal_id: TerminalId
    ) -> AsyncIterator["FakeKeyboard"]:
        if terminal_id not in self.boxes:
            raise TerminalNotFound("no such terminal")
        yield FakeKeyboard(self, terminal_id)

    def session_in(self, terminal_id: TerminalId) -> SessionId:
        terminal = self.terminals.get(terminal_id)
        assert terminal is not None
        assert terminal.session_id is not None
        return terminal.session_id


@dataclass
class FakeKeyboard:
    """The prompt box of one fake agent, as Claude Code 2.1.328 behaves."""

    agents: FakeAgents
    terminal_id: TerminalId

    async def write(self, data: bytes) -> None:
        pieces = _PASTE.findall(data)
        if pieces and _PASTE.sub(b"", data) == b"":
            self._paste([piece.decode() for piece in pieces])
        elif data == b"\r":
            self._enter()
        elif data == b"\x15\x7f":
            lines = self.agents.boxes[self.terminal_id].split("\n")
            self.agents.boxes[self.terminal_id] = "\n".join(lines[:-1])
            self.agents.folded.discard(self.terminal_id)
        else:
            raise AssertionError(f"nobody types that: {data!r}")

    def _paste(self, pieces: list[str]) -> None:
        if self.terminal_id not in self.agents.dialogs:
            self.agents.boxes[self.terminal_id] += "".join(pieces)
            if any(map(_is_folded, pieces)):
                self.agents.folded.add(self.terminal_id)
        if self.agents.on_paste is not None:
            self.agents.on_paste(self.terminal_id)

    def _enter(self) -> None:
        agents = self.agents
        if agents.on_enter is not None:
            agents.on_enter(self.terminal_id)
        if self.terminal_id in agents.dialogs:
            agents.approved.append(self.terminal_id)
            return
        if agents.loses_enters:
            agents.loses_enters -= 1
            return
        if agents.boxes[self.terminal_id].endswith("\\"):
            agents.boxes[self.terminal_id] = agents.boxes[self.terminal_id][:-1] + "\n"
            return
        text, agents.boxes[self.terminal_id] = agents.boxes[self.terminal_id], ""
        session_id = agents.session_in(self.terminal_id)
        if text.startswith("!"):
            agents.ran.append(text)
        elif text:
            if self.terminal_id in agents.folded:
                agents.folded.discard(self.terminal_id)
                text = (
                    f'\n\n<pasted_content id="1e59">\n{text}\n'
                    '</pasted_content id="1e59">\n'
                )
            text = text.removesuffix("\\ ") + "\\" if text.endswith("\\ ") else text
            agents.say(session_id, EntryKind.PROMPT, text.replace("\t", "    "))
            agents.tell(session_id, SessionState.RUNNING)

    async def screen(self) -> str:
        if self.terminal_id in self.agents.dialogs:
            return DIALOG
        text = self.agents.boxes[self.terminal_id]
        if self.terminal_id in self.agents.folded and text:
            text = f"[Pasted text #1 +{text.count(chr(10))} lines]"
        shown = text.replace("\n", "\n  ")
        above = "said before\n" * (ROWS - 5 - shown.count("\n"))
        return f"{above}{RULE}\n❯ {shown}\n{RULE}\n  ⏸ manual mode on"

    async def wait_output(self, *, seconds: float) -> None:
        await asyncio.to_thread(lambda: None)


def as_ports(agents: FakeAgents) -> tuple[Typist, AgentStatuses, Lineage, Forks]:
    """Hold the stand-in to the ports' types."""
    keyboard: Keyboard = FakeKeyboard(agents, TerminalId(""))
    del keyboard
    return agents, agents, agents, agents


@dataclass
class FakeAdoption:
    """A policy that a test changes."""

    policy: AdoptionPolicy = field(default_factory=AdoptionPolicy)

    def adopts(self, directory: str | None) -> bool:
        if not self.policy.enabled or directory is None:
            return self.policy.enabled
        return directory not in self.policy.excluded

    async def set_policy(
        self, policy: AdoptionPolicy, *, actor: Principal
    ) -> AdoptionPolicy:
        self.policy = policy
        return policy


@dataclass
class FakeOpenRequests:
    """What sessions wait for."""

    waiting: set[SessionId] = field(default_factory=set)

    def open_of(self, session_id: SessionId) -> tuple[object, ...]:
        return (session_id,) if session_id in self.waiting else ()


@dataclass
class FakePush:
    """Remembers what it was told."""

    told: list[tuple[str, str]] = field(default_factory=list)

    def reaches_anyone(self) -> bool:
        return True

    def waiting(self, subject_id: str, session_id: str) -> None:
        self.told.append(("waiting", subject_id))

    def settled(self, subject_id: str) -> None:
        self.told.append(("settled", subject_id))


def copy_of(envelope: Envelope) -> Envelope:
    """Return the same envelope, as it comes a second time."""
    return Envelope.from_fields(envelope.to_fields())
