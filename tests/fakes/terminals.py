"""Terminals in memory."""

from dataclasses import replace
from datetime import timedelta

from sidestage.devices.model import Principal, Scope
from sidestage.errors import (
    ErrorCode,
    OutsideSessionLive,
    OutsideSessionNotFound,
    PermissionDenied,
    ProjectNotFound,
    SidestageError,
    TerminalNotFound,
    TicketRefused,
)
from sidestage.feeds import Feed
from sidestage.ids import ProjectId, TemplateId, TerminalId
from sidestage.sessions.board import Sessions
from sidestage.sessions.model import Session, SessionState
from sidestage.terminals.desk import (
    Admission,
    Refusal,
    ResumeAvailability,
    Started,
    Template,
    Terminals,
    Ticket,
    TicketMode,
)
from sidestage.terminals.model import Terminal, TerminalState
from sidestage.terminals.screens import (
    ScreenMatch,
    ScreenMatches,
    StyledLine,
    StyledRun,
)
from tests.fakes.project_registry import FakeProjectRegistry
from tests.fakes.values import START, a_template, a_terminal


class FakeTerminals(Terminals):
    """Holds terminals; `failure` is raised by whatever starts or ends one."""

    def __init__(
        self, *terminals: Terminal, sessions: Sessions, projects: FakeProjectRegistry
    ) -> None:
        self._feed = Feed[Terminal](lambda terminal: terminal.id)
        for terminal in terminals:
            self._feed.upsert(terminal)
        self._sessions = sessions
        self._projects = projects
        self.templates = (a_template(), a_template("claude-code"))
        self.failure: SidestageError | None = None
        self.starts = 0

    @property
    def feed(self) -> Feed[Terminal]:
        """The terminals by id, with their changes."""
        return self._feed

    def list_templates(self) -> tuple[Template, ...]:
        """Return two templates."""
        return self.templates

    def resume_availability(self, session: Session) -> ResumeAvailability | None:
        """Resume what has ended and lies in a project."""
        if session.state is not SessionState.ENDED:
            return None
        if session.project_id and self._projects.feed.get(session.project_id):
            return ResumeAvailability(available=True, refusal=None)
        message = "Not in a project, so it can't be resumed."
        refusal = Refusal(ErrorCode.OUTSIDE_RESUME_UNAVAILABLE, message)
        return ResumeAvailability(available=False, refusal=refusal)

    def _ticket(self, terminal_id: TerminalId, mode: TicketMode) -> Ticket:
        return Ticket(
            secret="s3cret",
            terminal_id=terminal_id,
            mode=mode,
            expires_at=START + timedelta(seconds=60),
            socket_path=f"/terminals/{terminal_id}/socket",
        )

    def _started(self, **changes: object) -> Started:
        if self.failure:
            raise self.failure
        self.starts += 1
        terminal = a_terminal(1000 + self.starts, **changes)
        self._feed.upsert(terminal)
        return Started(terminal, self._ticket(terminal.id, TicketMode.CONTROL))

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
        """Start a terminal in a known project."""
        if not self._projects.feed.get(project_id):
            raise ProjectNotFound("No project has that id.")
        return self._started(cols=cols, rows=rows, project_id=project_id)

    async def resume(
        self,
        *,
        session_id: str,
        cols: int,
        rows: int,
        idempotency_key: str | None,
        actor: Principal,
    ) -> Started:
        """Resume an ended session."""
        found = (s for s in self._sessions.feed.values() if s.id == session_id)
        session = next(found, None)
        if session is None:
            raise OutsideSessionNotFound("That session is no longer in the list.")
        if session.state is not SessionState.ENDED:
            raise OutsideSessionLive(
                "This session is still running. Only an ended session can be resumed."
            )
        return self._started(cols=cols, rows=rows, session_id=session.id)

    def _get(self, terminal_id: TerminalId) -> Terminal:
        terminal = self._feed.get(terminal_id)
        if terminal is None:
            raise TerminalNotFound("No terminal has that id.")
        if self.failure:
            raise self.failure
        return terminal

    async def rename(
        self, terminal_id: TerminalId, *, name: str, actor: Principal
    ) -> Terminal:
        """Give the terminal a name."""
        terminal = replace(self._get(terminal_id), name=name)
        self._feed.upsert(terminal)
        return terminal

    async def resize(
        self, terminal_id: TerminalId, *, cols: int, rows: int, actor: Principal
    ) -> Terminal:
        """Set the size."""
        terminal = replace(self._get(terminal_id), cols=cols, rows=rows)
        self._feed.upsert(terminal)
        return terminal

    async def close(self, terminal_id: TerminalId, *, actor: Principal) -> Terminal:
        """Forget the terminal."""
        terminal = self._get(terminal_id)
        self._feed.remove(terminal_id)
        return terminal

    def issue_ticket(
        self, terminal_id: TerminalId, *, mode: TicketMode, actor: Principal
    ) -> Ticket:
        """Make a ticket."""
        self._get(terminal_id)
        if mode is TicketMode.CONTROL and not actor.may(Scope.TERMINAL):
            raise PermissionDenied("A CONTROL ticket needs the scope TERMINAL.")
        return self._ticket(terminal_id, mode)

    def spend_ticket(self, terminal_id: TerminalId, secret: str) -> Admission:
        """Take no ticket."""
        raise TicketRefused("The ticket is not good.")

    async def screen_text(self, terminal_id: TerminalId, *, lines: int) -> str:
        """Return as many lines as asked for."""
        self._get(terminal_id)
        return "\n".join(f"line {number}" for number in range(lines))

    async def screen_lines(
        self, terminal_id: TerminalId, *, lines: int
    ) -> tuple[StyledLine, ...] | None:
        """Return as many lines as asked for, and nothing of a lost terminal."""
        if self._get(terminal_id).state is TerminalState.LOST:
            return None
        run = StyledRun(text="run", foreground="#102030", bold=True, inverse=True)
        return ((run,),) * lines

    async def search_screen(
        self, terminal_id: TerminalId, *, text: str, limit: int
    ) -> ScreenMatches | None:
        """Find *text* once in each of *limit* lines; nothing of a lost terminal."""
        if self._get(terminal_id).state is TerminalState.LOST:
            return None
        matches = tuple(
            ScreenMatch(lines_from_end=number, column=4, line=f"the {text}")
            for number in range(1, limit + 1)
        )
        return ScreenMatches(matches=matches, more=True)
