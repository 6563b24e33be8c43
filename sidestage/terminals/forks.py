"""Starting an agent on a conversation of its own: a fork, or a fresh one.

A fork knows what its parent said and writes a file of its own; the parent's stays as it
is, and may be live. Its id is chosen beforehand, so that it can be written down before
anything starts.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from sidestage.devices.model import Principal
from sidestage.errors import (
    OutsideResumeUnavailable,
    OutsideSessionNotFound,
    ProjectNotFound,
)
from sidestage.ids import ConversationId, ProjectId, SessionId, TerminalId
from sidestage.projects.model import Project
from sidestage.sessions.model import Session
from sidestage.terminals import resume_rules
from sidestage.terminals.launch import Start
from sidestage.terminals.model import Terminal
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.plans import (
    RESUMED_NAME_LIMIT_CHARACTERS,
    Plan,
    Request,
    allowed_template_of,
    project_of,
)
from sidestage.terminals.templates import CLAUDE_CODE
from sidestage.text import shorten

CONTINUED_SUFFIX: Final = " (continued)"
FRESH_NAME: Final = "Continued session"
COLS: Final = 100
ROWS: Final = 30
"""A continuation nobody looks at yet; whoever attaches sets the size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A continuation to start. Idempotent on *terminal_id*."""

    terminal_id: TerminalId
    session_id: SessionId
    """The parent."""
    conversation_id: ConversationId = field(repr=False)
    """The id the new conversation gets; the host's lock is on this one."""
    permission_mode: str
    """As the agent's own option names it."""
    project_id: ProjectId | None = None
    """Where a fresh one starts if its parent is no longer listed."""
    is_fresh: bool = False
    """Start a new conversation that knows nothing of its parent."""
    cols: int = COLS
    rows: int = ROWS


class Forks(Protocol):
    """The desk of terminals, as continuations see it."""

    async def fork(self, fork: Fork, *, actor: Principal) -> Terminal:
        """Start *fork* in a sandboxed terminal, without a prompt.

        Raises what `Terminals.resume` raises, but for the session's state: its parent
        may be live. After `HostUnavailable` it may run all the same (see `fate`).
        """

    async def fate(self, terminal_id: TerminalId) -> Terminal | None:
        """Return what became of a start, once the host has told; None: nothing ran.

        Raises `HostUnavailable` while the host does not answer.
        """


async def plan_fork(parts: DeskParts, request: Request, fork: Fork) -> Plan:
    """Plan *fork*; the parent is looked at now."""
    session = await parts.sessions.refresh(fork.session_id)
    if fork.is_fresh:
        project, directory = _fresh_place(parts, session, fork)
    elif session is None:
        raise OutsideSessionNotFound(resume_rules.GONE)
    else:
        project = resume_rules.check_resumable(
            session, project_of(session, parts.projects), here=parts.host_id
        )
        directory = Path(session.directory or project.path)
    template = allowed_template_of(parts, project, CLAUDE_CODE)
    forked = None if fork.is_fresh or session is None else session.origin
    start = Start(
        terminal_id=request.terminal_id,
        project=project,
        template=template,
        directory=directory,
        cols=request.size.cols,
        rows=request.size.rows,
        conversation_id=forked.conversation_id if forked else None,
        config_dir=session.origin.config_dir if session else None,
        transcript=forked.transcript if forked else None,
        own_conversation_id=fork.conversation_id,
        permission_mode=fork.permission_mode,
    )
    return Plan(
        start=start,
        name=_name(session),
        session_id=parts.links.session_of(fork.conversation_id),
        actor=request.actor,
        action="session.fork",
    )


def _fresh_place(
    parts: DeskParts, session: Session | None, fork: Fork
) -> tuple[Project, Path]:
    project = None if session is None else project_of(session, parts.projects)
    if project is None and fork.project_id is not None:
        project = parts.projects.feed.get(fork.project_id)
    if project is None:
        raise ProjectNotFound("The session's folder is in no project any more.")
    if project.host_id != parts.host_id:
        raise OutsideResumeUnavailable(resume_rules.OTHER_HOST)
    if session is not None and session.directory and session.directory_exists:
        return project, Path(session.directory)
    return project, Path(project.path)


def _name(session: Session | None) -> str:
    if session is None:
        return FRESH_NAME
    return shorten(session.name, RESUMED_NAME_LIMIT_CHARACTERS) + CONTINUED_SUFFIX
