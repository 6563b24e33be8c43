"""The port through which terminals are started, changed and ended."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from sidestage.devices.model import Principal
from sidestage.errors import ErrorCode
from sidestage.feeds import Feed
from sidestage.ids import ProjectId, TemplateId, TerminalId
from sidestage.sessions.model import AgentKind, Session
from sidestage.terminals.model import Terminal
from sidestage.terminals.screens import ScreenMatches, StyledLine


@dataclass(frozen=True, slots=True)
class Template:
    """A named command line a terminal may run."""

    id: TemplateId
    title: str
    description: str
    agent: AgentKind | None
    available: bool
    """Whether its program is on the server's PATH."""
    argv: tuple[str, ...] = field(repr=False, default=())


class TicketMode(StrEnum):
    """What a ticket admits to."""

    CONTROL = "CONTROL"
    VIEW = "VIEW"


@dataclass(frozen=True, slots=True)
class Ticket:
    """Admits one client to one terminal once."""

    secret: str = field(repr=False)
    terminal_id: TerminalId
    mode: TicketMode
    expires_at: datetime
    socket_path: str
    """The path of the companion WebSocket, below the server's base URL."""


@dataclass(frozen=True, slots=True)
class Started:
    """A terminal that runs, and a fresh ticket for it."""

    terminal: Terminal
    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a session cannot be resumed: the code and the sentence to show."""

    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class ResumeAvailability:
    """Whether an ended session may be resumed. It may be stale: the start decides."""

    available: bool
    refusal: Refusal | None


class Terminals(Protocol):
    """The one door through which terminals start, and their list."""

    @property
    def feed(self) -> Feed[Terminal]:
        """The terminals by id, with their changes."""

    def list_templates(self) -> tuple[Template, ...]:
        """Return the templates of this server."""

    def resume_availability(self, session: Session) -> ResumeAvailability | None:
        """Apply checks 3 to 7 to an ended session; None if it is not ended."""

    async def start(
        self,
        *,
        project_id: ProjectId,
        template: TemplateId,
        name: str | None,
        cols: int,
        rows: int,
        idempotency_key: str | None,
        actor: Principal,
    ) -> Started:
        """Start a program in a project's folder.

        Raises `InvalidInput`, `ProjectNotFound`, `TemplateNotFound`,
        `TemplateNotAllowed`, `ProjectChanged`, `ProjectFolderMissing`,
        `SandboxUnavailable`, `AgentNotFound`, `TerminalLimitReached`, `StartFailed`,
        `IdempotencyKeyReused`, `HostUnavailable`.
        """

    async def resume(
        self,
        *,
        session_id: str,
        cols: int,
        rows: int,
        idempotency_key: str | None,
        actor: Principal,
    ) -> Started:
        """Resume an ended session on the same conversation.

        Raises what `start` raises and `OutsideSessionNotFound`,
        `OutsideSessionResumed`, `OutsideResumeBusy`, `OutsideSessionLive`,
        `OutsideResumeUnavailable`, `ConversationTaken`.
        """

    async def rename(
        self, terminal_id: TerminalId, *, name: str, actor: Principal
    ) -> Terminal:
        """Give the terminal a name; raises `TerminalNotFound`, `InvalidInput`."""

    async def resize(
        self, terminal_id: TerminalId, *, cols: int, rows: int, actor: Principal
    ) -> Terminal:
        """Set the size; raises `TerminalNotFound`, `TerminalNotRunning`."""

    async def close(self, terminal_id: TerminalId, *, actor: Principal) -> Terminal:
        """End every process of the terminal and forget it; return its last values.

        Raises `TerminalNotFound`.
        """

    def issue_ticket(
        self, terminal_id: TerminalId, *, mode: TicketMode, actor: Principal
    ) -> Ticket:
        """Make a ticket; raises `TerminalNotFound`, `PermissionDenied`.

        A CONTROL ticket needs `TERMINAL`; a VIEW ticket needs `READ`.
        """

    def spend_ticket(self, terminal_id: TerminalId, secret: str) -> "Admission":
        """Use a ticket up; raises `TicketRefused`."""

    async def screen_text(self, terminal_id: TerminalId, *, lines: int) -> str | None:
        """Return the last *lines* of the screen; raises `TerminalNotFound`.

        None if no screen is left of it: its host went away and left no record.
        """

    async def screen_lines(
        self, terminal_id: TerminalId, *, lines: int
    ) -> tuple[StyledLine, ...] | None:
        """Return the last *lines* rows of history and screen, as runs.

        None as for `screen_text`; raises `TerminalNotFound`.
        """

    async def search_screen(
        self, terminal_id: TerminalId, *, text: str, limit: int
    ) -> ScreenMatches | None:
        """Return where *text* stands on the screen and in its history.

        None as for `screen_text`; raises `TerminalNotFound`.
        """


@dataclass(frozen=True, slots=True)
class Admission:
    """What a spent ticket admitted: who, where and how."""

    terminal_id: TerminalId
    mode: TicketMode
    principal: Principal
