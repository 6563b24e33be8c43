"""The values of a terminal, and the port to the process that runs it."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from sidestage.ids import (
    ConversationId,
    HostId,
    ProjectId,
    SessionId,
    TemplateId,
    TerminalId,
)
from sidestage.terminals.screens import ScreenMatches, StyledLine

SIDE_LIMIT_CELLS = 500
"""Neither side of a terminal may be longer (docs/acceptance/resume.md, check 0b)."""


class TerminalState(StrEnum):
    """What became of a terminal."""

    RUNNING = "RUNNING"
    EXITED = "EXITED"
    """Its program ended; the exit status is known."""
    LOST = "LOST"
    """Its host went away; what remains is a screen without a PTY."""


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What really confines a terminal, for its owner and the audit log."""

    enabled: bool
    kind: str
    """`bubblewrap`, or `none`."""
    signals_confined: bool
    project_writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """A PTY that Sidestage runs, or ran. Times are UTC."""

    id: TerminalId
    host_id: HostId
    name: str
    template: TemplateId
    project_id: ProjectId | None
    directory: str
    state: TerminalState
    cols: int
    rows: int
    title: str | None
    exit_status: int | None
    """The program's exit code, or 128 + the signal that ended it."""
    started_at: datetime
    ended_at: datetime | None
    last_output_at: datetime | None
    last_input_at: datetime | None
    bell_at: datetime | None
    session_id: SessionId | None
    read_only: bool
    sandbox: SandboxReport
    attached_clients: int
    end_reason: str | None = None
    """A code when we ended it ourselves, such as `CONVERSATION_TAKEN`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxProfile:
    """What a sandboxed program may see; the host turns it into a sandbox.

    The project is bound at its own path, the rest of the home is empty. *agent* is None
    for a program that is no agent (a shell).
    """

    project: Path
    project_read_only: bool
    home: Path
    state_dir: Path
    """Sidestage's own state folder: hidden, whatever else is bound."""
    program_dirs: tuple[Path, ...]
    """Real folders inside the home that programs of the PATH need, bound read-only."""
    agent: "AgentFiles | None"
    network: bool = True
    hidden: tuple[Path, ...] = ()
    """Folders outside the home that are hidden besides (a second account's state)."""
    git_config: str = ""
    """The text of the git configuration it sees instead of the owner's; "" for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFiles:
    """The parts of an agent's state folder that its sandbox shares."""

    config_dir: Path
    """Where the agent expects its state folder (`~/.claude`)."""
    transcripts: Path
    """This folder's transcripts, read-write; made if absent."""
    private_dir: Path
    """`<state>/terminals/<id>`: holds `sessions/`, `claude.json`, `hook/`, and
    `config/`, which stands in for *config_dir*."""
    config_file: Path
    """Where the agent expects `.claude.json`; `private_dir/claude.json` goes there."""
    read_only: tuple[Path, ...]
    """Settings, commands, agents, skills …, where they exist."""
    read_write: tuple[Path, ...] = ()
    """The credentials file, if it exists."""
    hook_program: Path | None = None
    """What the agent runs as a hook; bound read-only at a path of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTerminal:
    """Everything the host needs to start one program. Idempotent on *terminal_id*."""

    terminal_id: TerminalId
    argv: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    directory: Path
    cols: int
    rows: int
    conversation_id: ConversationId | None = field(repr=False, default=None)
    """Held by the host while the program lives; a second holder is refused."""
    sandbox: SandboxProfile | None = None
    """None starts the program bare: only by an explicit setting."""
    name: str | None = None
    """For the record of the screen, as is the project."""
    project_id: ProjectId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTerminal:
    """One terminal as the host knows it: the truth about its process.

    A LOST one is a record of a host before; its times are those of the record, and
    *ended_at* is None: nobody saw it end.
    """

    terminal_id: TerminalId
    state: TerminalState
    cols: int
    rows: int
    pid: int | None
    """The pid of the program the host spawned (the sandbox's outermost process)."""
    exit_status: int | None
    title: str | None
    started_at: datetime
    ended_at: datetime | None
    last_output_at: datetime | None
    last_input_at: datetime | None
    bell_at: datetime | None
    attached_clients: int
    sandbox: SandboxReport
    conversation_id: ConversationId | None = field(repr=False, default=None)
    name: str | None = None
    """As it was started, and as records keep it: for a terminal that has no row."""
    project_id: ProjectId | None = None


class HostEventKind(StrEnum):
    """What a host tells on its own."""

    CHANGED = "CHANGED"
    """A terminal changed; the event carries it whole."""
    REMOVED = "REMOVED"
    CONNECTED = "CONNECTED"
    """The host answers (again); the event carries its whole list."""
    DISCONNECTED = "DISCONNECTED"


@dataclass(frozen=True, slots=True)
class HostEvent:
    """One thing a host told, or the loss of its connection."""

    kind: HostEventKind
    terminals: tuple[HostTerminal, ...] = ()


class TerminalHost(Protocol):
    """The process that owns the PTYs, as `serve` calls it.

    Each call raises `HostUnavailable` when the host does not answer in time.
    """

    async def create(self, request: CreateTerminal) -> HostTerminal:
        """Start a program, or return the terminal that has this id already.

        Raises `OutsideSessionResumed` when another terminal holds the conversation,
        `SandboxUnavailable`, `AgentNotFound`, `TerminalLimitReached`, `StartFailed`.
        """

    async def list_terminals(self) -> tuple[HostTerminal, ...]:
        """Return every terminal the host has, ended ones included."""

    async def resize(self, terminal_id: TerminalId, *, cols: int, rows: int) -> None:
        """Set the size; raises `TerminalNotFound`, `TerminalNotRunning`."""

    async def rename(self, terminal_id: TerminalId, name: str) -> None:
        """Let the record of the screen carry that name; waits for no host.

        Raises `TerminalNotFound`, `TerminalNotRunning` for one of an earlier host.
        """

    async def end(self, terminal_id: TerminalId, *, reason: str | None = None) -> None:
        """End every process of the terminal; returns when they are gone."""

    async def remove(self, terminal_id: TerminalId) -> None:
        """End the terminal and forget it; raises `TerminalNotFound`."""

    async def hold_conversation(
        self, terminal_id: TerminalId, conversation_id: ConversationId
    ) -> None:
        """Move the terminal's lock to the conversation its child really has now.

        Raises `OutsideSessionResumed` when another terminal holds that one.
        """

    async def had_input(self, terminal_id: TerminalId) -> bool:
        """Tell whether anyone typed into the terminal since its start."""

    async def screen_text(self, terminal_id: TerminalId, *, lines: int) -> str:
        """Return the last *lines* lines of the screen as plain text."""

    async def screen_lines(
        self, terminal_id: TerminalId, *, lines: int
    ) -> tuple[StyledLine, ...]:
        """Return the last *lines* rows of history and screen, as runs."""

    async def search(
        self, terminal_id: TerminalId, *, text: str, limit: int
    ) -> ScreenMatches:
        """Return where *text* stands on the screen and in its history."""

    def watch(self) -> AsyncIterator[HostEvent]:
        """Yield what changes: first CONNECTED with the whole list; until closed."""
