"""Stand-ins for what the desk of terminals works with: a host, links, a preparer."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from sidestage.errors import (
    HostUnavailable,
    OutsideSessionResumed,
    SidestageError,
    TerminalNotFound,
)
from sidestage.ids import ConversationId, SessionId, TerminalId, session_id
from sidestage.terminals.launch import PreparedAgent
from sidestage.terminals.model import (
    AgentFiles,
    CreateTerminal,
    HostEvent,
    HostEventKind,
    HostTerminal,
    SandboxReport,
    TerminalHost,
    TerminalState,
)
from sidestage.terminals.screens import (
    ScreenMatch,
    ScreenMatches,
    StyledLine,
    StyledRun,
)

STARTED_AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECRET = b"machine secret of the tests....."
REPORT = SandboxReport(
    enabled=True, kind="bubblewrap", signals_confined=True, project_writable=True
)


def host_terminal(request: CreateTerminal) -> HostTerminal:
    return HostTerminal(
        terminal_id=request.terminal_id,
        state=TerminalState.RUNNING,
        cols=request.cols,
        rows=request.rows,
        pid=4321,
        exit_status=None,
        title=None,
        started_at=STARTED_AT,
        ended_at=None,
        last_output_at=None,
        last_input_at=None,
        bell_at=None,
        attached_clients=0,
        sandbox=REPORT,
        conversation_id=request.conversation_id,
    )


@dataclass
class FakeHost:
    """A `TerminalHost` without processes; `gate` holds a create until it is set."""

    terminals: dict[TerminalId, HostTerminal] = field(default_factory=dict)
    created: list[CreateTerminal] = field(default_factory=list)
    ended: list[tuple[TerminalId, str | None]] = field(default_factory=list)
    typed_into: set[TerminalId] = field(default_factory=set)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    fails_with: SidestageError | None = None
    answers: bool = True
    connected: bool = True
    events: "asyncio.Queue[HostEvent]" = field(default_factory=asyncio.Queue)

    def __post_init__(self) -> None:
        self.gate.set()

    async def create(self, request: CreateTerminal) -> HostTerminal:
        self.created.append(request)
        await self.gate.wait()
        if self.fails_with is not None:
            raise self.fails_with
        for other in self.terminals.values():
            if (
                request.conversation_id is not None
                and other.conversation_id == request.conversation_id
                and other.state is TerminalState.RUNNING
            ):
                raise OutsideSessionResumed("held", terminal_id=other.terminal_id)
        terminal = host_terminal(request)
        self.terminals[terminal.terminal_id] = terminal
        if not self.answers:
            raise HostUnavailable("The terminal host does not answer.")
        return terminal

    async def list_terminals(self) -> tuple[HostTerminal, ...]:
        if not self.answers:
            raise HostUnavailable("The terminal host does not answer.")
        return tuple(self.terminals.values())

    async def resize(self, terminal_id: TerminalId, *, cols: int, rows: int) -> None:
        self.change(terminal_id, cols=cols, rows=rows)

    async def rename(self, terminal_id: TerminalId, name: str) -> None:
        if not self.answers:
            raise HostUnavailable("The terminal host does not answer.")
        self.change(terminal_id, name=name)

    async def end(self, terminal_id: TerminalId, *, reason: str | None = None) -> None:
        self.ended.append((terminal_id, reason))
        self.change(terminal_id, state=TerminalState.EXITED, exit_status=129)

    async def remove(self, terminal_id: TerminalId) -> None:
        if self.terminals.pop(terminal_id, None) is None:
            raise TerminalNotFound("no such terminal")

    async def hold_conversation(
        self, terminal_id: TerminalId, conversation_id: ConversationId
    ) -> None:
        self.change(terminal_id, conversation_id=conversation_id)

    async def had_input(self, terminal_id: TerminalId) -> bool:
        return terminal_id in self.typed_into

    async def screen_text(self, terminal_id: TerminalId, *, lines: int) -> str:
        if terminal_id not in self.terminals:
            raise TerminalNotFound("no such terminal")
        return f"{terminal_id} {lines}"

    async def screen_lines(
        self, terminal_id: TerminalId, *, lines: int
    ) -> tuple[StyledLine, ...]:
        if terminal_id not in self.terminals:
            raise TerminalNotFound("no such terminal")
        return ((StyledRun(text=f"{terminal_id} {lines}", bold=True),),)

    async def search(
        self, terminal_id: TerminalId, *, text: str, limit: int
    ) -> ScreenMatches:
        if terminal_id not in self.terminals:
            raise TerminalNotFound("no such terminal")
        match = ScreenMatch(lines_from_end=limit, column=0, line=text)
        return ScreenMatches(matches=(match,), more=False)

    async def watch(self) -> AsyncIterator[HostEvent]:
        if self.connected:
            yield self.list_event()
        while True:
            yield await self.events.get()

    def list_event(self) -> HostEvent:
        return HostEvent(HostEventKind.CONNECTED, tuple(self.terminals.values()))

    def change(self, terminal_id: TerminalId, **changes: object) -> None:
        terminal = replace(self.terminals[terminal_id], **changes)  # type: ignore[arg-type]  # the tests' own names
        self.terminals[terminal_id] = terminal
        self.events.put_nowait(HostEvent(HostEventKind.CHANGED, (terminal,)))


def as_host(fake: FakeHost) -> TerminalHost:
    """Hold the stand-in to the port's types."""
    return fake


@dataclass
class FakeLinks:
    """A `SessionLinks` that remembers what it was told."""

    linked: set[TerminalId] = field(default_factory=set)
    starting: bool = False
    foreign: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)

    def add_terminal(
        self,
        terminal_id: TerminalId,
        *,
        directory: str,
        session_id: SessionId | None,
    ) -> None:
        self.linked.add(terminal_id)

    def remove_terminal(self, terminal_id: TerminalId) -> None:
        self.linked.discard(terminal_id)

    def session_of(self, conversation_id: ConversationId) -> SessionId:
        return session_id("CLAUDE_CODE", conversation_id, machine_secret=SECRET)

    async def starting_agent(
        self, directory: str, conversation_id: ConversationId
    ) -> bool:
        self.asked.append((directory, conversation_id))
        return self.starting

    async def foreign_process(
        self, session_id: SessionId, terminal_id: TerminalId
    ) -> bool:
        return self.foreign


@dataclass
class FakePreparer:
    """An `AgentPreparer` without files."""

    prepared: list[TerminalId] = field(default_factory=list)
    finished: list[TerminalId] = field(default_factory=list)
    error: OSError | None = None

    def prepare(
        self,
        *,
        terminal_id: TerminalId,
        directory: Path,
        config_dir: Path | None,
        transcript: Path | None,
    ) -> PreparedAgent:
        if self.error is not None:
            raise self.error
        self.prepared.append(terminal_id)
        private = Path("/state/terminals") / terminal_id
        files = AgentFiles(
            config_dir=config_dir or Path("/home/dev/.claude"),
            transcripts=Path("/home/dev/.claude/projects/-home-dev-p"),
            private_dir=private,
            config_file=Path("/home/dev/.claude.json"),
            read_only=(),
        )
        return PreparedAgent(files, config_dir)

    def finish(self, terminal_id: TerminalId) -> None:
        self.finished.append(terminal_id)

    def list_prepared(self) -> tuple[TerminalId, ...]:
        return tuple(it for it in self.prepared if it not in self.finished)
