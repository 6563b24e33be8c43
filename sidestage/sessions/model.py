"""The values of an outside session, as the rest of the product sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from sidestage.ids import ConversationId, HostId, ProjectId, SessionId, TerminalId


class AgentKind(StrEnum):
    """The agent CLIs we can tell apart."""

    CLAUDE_CODE = "CLAUDE_CODE"
    CODEX = "CODEX"
    UNKNOWN = "UNKNOWN"


class SessionState(StrEnum):
    """What a session does, as far as it can be known."""

    RUNNING = "RUNNING"
    ASKING = "ASKING"
    IDLE = "IDLE"
    ENDED = "ENDED"
    UNKNOWN = "UNKNOWN"

    @property
    def is_live(self) -> bool:
        """Whether the session's process is known to exist."""
        return self in (SessionState.RUNNING, SessionState.ASKING, SessionState.IDLE)


class EvidenceSource(StrEnum):
    """Where a piece of evidence about a session's state came from."""

    PROCESS = "PROCESS"
    REGISTRY = "REGISTRY"
    TRANSCRIPT = "TRANSCRIPT"
    HOOK = "HOOK"
    TERMINAL = "TERMINAL"


@dataclass(frozen=True, slots=True)
class StateEvidence:
    """Why a session's state is what it says: the source and its time (UTC)."""

    source: EvidenceSource
    observed_at: datetime


class WaitingKind(StrEnum):
    """What a session that asks is waiting for."""

    PERMISSION = "PERMISSION"
    QUESTION = "QUESTION"
    PLAN = "PLAN"
    DIALOG = "DIALOG"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class WaitingFor:
    """What an asking session waits for, in the CLI's words and in ours."""

    kind: WaitingKind
    label: str
    """The CLI's own label, cleaned: `permission prompt`, `input needed`, …"""
    tool_name: str | None
    since: datetime


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens, counted once a model answer."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0


class MessageRole(StrEnum):
    """Who said a message."""

    USER = "USER"
    ASSISTANT = "ASSISTANT"


@dataclass(frozen=True, slots=True)
class MessagePreview:
    """The last words of a session: cleaned text, at most 500 characters."""

    role: MessageRole
    text: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class SessionConflict:
    """Two processes write one conversation."""

    since: datetime
    message: str


@dataclass(frozen=True, slots=True)
class Process:
    """One run of a program: a pid may be reused, pid and start time together not."""

    pid: int
    start_ticks: str
    """Field 22 of `/proc/<pid>/stat`, as text (proc(5))."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A tool call of which the transcript holds no result yet."""

    id: str
    tool_name: str


@dataclass(frozen=True, slots=True)
class SessionOrigin:
    """What only the server knows of a session. Nothing here reaches a client."""

    conversation_id: ConversationId = field(repr=False)
    config_dir: Path
    """The agent's state folder the session lives in (`~/.claude` or another)."""
    transcript: Path | None = field(repr=False)
    process: Process | None
    processes: tuple[Process, ...] = ()
    """All live processes on this conversation; more than one is a conflict."""
    headless: frozenset[Process] = frozenset()
    """Those of them that show no dialog: started by a program, not by a person."""
    open_calls: tuple[OpenCall, ...] = field(default=(), repr=False)
    """Calls without a result, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation an agent CLI recorded: a row of the list. Times are UTC."""

    id: SessionId
    agent: AgentKind
    host_id: HostId
    name: str
    directory: str | None
    """The folder of the transcript's first record, as recorded; resolved once."""
    directory_exists: bool | None
    """None: nobody has looked yet, which takes a moment for a new row."""
    current_directory: str | None
    project_id: ProjectId | None
    state: SessionState
    state_since: datetime
    state_evidence: StateEvidence | None
    waiting_for: WaitingFor | None
    terminal_id: TerminalId | None
    started_at: datetime | None
    last_activity_at: datetime | None
    ended_at: datetime | None
    git_branch: str | None
    model: str | None
    permission_mode: str | None
    agent_version: str | None
    usage: TokenUsage | None
    last_message: MessagePreview | None
    conflict: SessionConflict | None
    continued_from_id: SessionId | None
    handed_off_at: datetime | None
    has_prompt: bool
    """Whether the transcript holds a prompt, so that there is something to resume."""
    origin: SessionOrigin = field(repr=False)


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """How well a source of sessions sees: shown by `doctor` and `server.health`."""

    watching: bool
    """True: pushed by inotify. False: polled, and *notes* says why."""
    notes: tuple[str, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    """Unknown, bad, torn and over-long lines, and the like."""
