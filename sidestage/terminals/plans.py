"""What a start is made of, and the checks that need no host."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.devices.model import Principal
from sidestage.errors import (
    InvalidInput,
    OutsideResumeBusy,
    OutsideResumeUnavailable,
    OutsideSessionLive,
    OutsideSessionNotFound,
    ProjectNotFound,
    SidestageError,
    TemplateNotAllowed,
    TemplateNotFound,
)
from sidestage.ids import (
    ProjectId,
    SessionId,
    TemplateId,
    TerminalId,
    is_session_id,
)
from sidestage.projects.model import Project, Projects
from sidestage.sessions.model import Session, SessionState
from sidestage.terminals import resume_rules
from sidestage.terminals.desk import Template
from sidestage.terminals.launch import Start
from sidestage.terminals.model import (
    SIDE_LIMIT_CELLS,
    SandboxReport,
    Terminal,
    TerminalState,
)
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.templates import TEMPLATE_OF_AGENT
from sidestage.text import clean_text, shorten

NAME_LIMIT_CHARACTERS: Final = 120
RESUMED_SUFFIX: Final = " (resumed)"
RESUMED_NAME_LIMIT_CHARACTERS: Final = 100
_NOT_YET: Final = SandboxReport(
    enabled=False, kind="none", signals_confined=False, project_writable=False
)


class Size(NamedTuple):
    """A terminal's size in cells."""

    cols: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who asked for a start, and the terminal it shall become."""

    terminal_id: TerminalId
    size: Size
    actor: Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A start whose checks have passed."""

    start: Start = field(repr=False)
    name: str
    session_id: SessionId | None
    actor: Principal
    action: str


def checked_size(cols: int, rows: int) -> Size:
    """Return the size, or raise `InvalidInput`."""
    if not (1 <= cols <= SIDE_LIMIT_CELLS and 1 <= rows <= SIDE_LIMIT_CELLS):
        raise InvalidInput(resume_rules.BAD_SIZE)
    return Size(cols, rows)


def checked_name(name: str) -> str:
    """Return the name cleaned, or raise `InvalidInput`."""
    cleaned = clean_text(name, multiline=False)
    if not 1 <= len(cleaned) <= NAME_LIMIT_CHARACTERS:
        raise InvalidInput(f"A name has 1 to {NAME_LIMIT_CHARACTERS} characters.")
    return cleaned


def check_session_id(session_id: str) -> None:
    """Check 0a: raise `InvalidInput` unless *session_id* has the form of one."""
    if not is_session_id(session_id):
        raise InvalidInput(resume_rules.NOT_AN_ID)


def project_of(session: Session, projects: Projects) -> Project | None:
    """Return the session's project, if it is registered."""
    if session.project_id is None:
        return None
    return projects.feed.get(session.project_id)


def plan_start(
    parts: DeskParts,
    request: Request,
    *,
    project_id: ProjectId,
    template_id: TemplateId,
    name: str | None,
) -> Plan:
    """Plan a template in a project's folder."""
    project = parts.projects.feed.get(project_id)
    if project is None:
        raise ProjectNotFound("There is no project with that id.")
    template = allowed_template_of(parts, project, template_id)
    start = Start(
        terminal_id=request.terminal_id,
        project=project,
        template=template,
        directory=Path(project.path),
        cols=request.size.cols,
        rows=request.size.rows,
    )
    return Plan(
        start=start,
        name=name or template.title,
        session_id=None,
        actor=request.actor,
        action="terminal.start",
    )


async def plan_resume(
    parts: DeskParts, request: Request, session_id: SessionId
) -> Plan:
    """Plan to go on with a session: checks 2 to 9, made anew at this moment."""
    session = await parts.sessions.refresh(session_id)
    if session is None:
        raise OutsideSessionNotFound(resume_rules.GONE)
    _check_ended(session)
    project = resume_rules.check_resumable(
        session, project_of(session, parts.projects), here=parts.host_id
    )
    template = allowed_template_of(parts, project, _template_id_of(session))
    directory = session.directory or project.path
    conversation = session.origin.conversation_id
    if await parts.links.starting_agent(directory, conversation):
        raise OutsideResumeBusy(resume_rules.STARTING)
    start = Start(
        terminal_id=request.terminal_id,
        project=project,
        template=template,
        directory=Path(directory),
        cols=request.size.cols,
        rows=request.size.rows,
        conversation_id=conversation,
        config_dir=session.origin.config_dir,
        transcript=session.origin.transcript,
    )
    return Plan(
        start=start,
        name=shorten(session.name, RESUMED_NAME_LIMIT_CHARACTERS) + RESUMED_SUFFIX,
        session_id=session_id,
        actor=request.actor,
        action="session.resume",
    )


def row_of(plan: Plan, parts: DeskParts) -> Terminal:
    """Return the row that stands for the plan until the host has confirmed it."""
    start = plan.start
    return Terminal(
        id=start.terminal_id,
        host_id=parts.host_id,
        name=plan.name,
        template=start.template.id,
        project_id=start.project.id,
        directory=str(start.directory),
        state=TerminalState.RUNNING,
        cols=start.cols,
        rows=start.rows,
        title=None,
        exit_status=None,
        started_at=parts.clock(),
        ended_at=None,
        last_output_at=None,
        last_input_at=None,
        bell_at=None,
        session_id=plan.session_id,
        read_only=start.project.read_only,
        sandbox=_NOT_YET,
        attached_clients=0,
    )


def begun_record(plan: Plan) -> AuditRecord:
    """Return what the audit log says before the host is asked."""
    return AuditRecord(
        actor=plan.actor.actor,
        address=plan.actor.address,
        action=plan.action,
        target_id=plan.session_id or plan.start.terminal_id,
        outcome=AuditOutcome.BEGUN,
        detail=f"terminal={plan.start.terminal_id}",
    )


def done_record(plan: Plan, terminal: Terminal) -> AuditRecord:
    """Return what the audit log says of a start that succeeded."""
    return AuditRecord(
        actor=plan.actor.actor,
        address=plan.actor.address,
        action=plan.action,
        target_id=plan.session_id or terminal.id,
        outcome=AuditOutcome.DONE,
        detail=f"terminal={terminal.id} sandbox={terminal.sandbox.kind}",
    )


def change_record(verb: str, terminal: Terminal, actor: Principal) -> AuditRecord:
    """Return what the audit log says of a change that *actor* made."""
    return AuditRecord(
        actor=actor.actor,
        address=actor.address,
        action=f"terminal.{verb}",
        target_id=terminal.id,
        outcome=AuditOutcome.DONE,
    )


def failed_record(plan: Plan, error: SidestageError) -> AuditRecord:
    """Return what the audit log says of a start that failed."""
    return AuditRecord(
        actor=plan.actor.actor,
        address=plan.actor.address,
        action=plan.action,
        target_id=plan.session_id or plan.start.terminal_id,
        outcome=AuditOutcome.FAILED,
        code=error.code.value,
    )


def allowed_template_of(
    parts: DeskParts, project: Project, template_id: TemplateId
) -> Template:
    """Return the template; raise `TemplateNotFound`, `TemplateNotAllowed`."""
    for template in parts.templates.templates:
        if template.id == template_id:
            _check_allowed(project, template)
            return template
    raise TemplateNotFound("There is no template with that id.")


def _template_id_of(session: Session) -> TemplateId:
    template_id = TEMPLATE_OF_AGENT.get(session.agent)
    if template_id is None:
        raise TemplateNotFound("No template runs this session's agent.")
    return template_id


def _check_ended(session: Session) -> None:
    if session.state is SessionState.UNKNOWN:
        raise OutsideResumeUnavailable(resume_rules.UNKNOWN_STATE)
    if session.state is not SessionState.ENDED:
        raise OutsideSessionLive(resume_rules.LIVE)


def _check_allowed(project: Project, template: Template) -> None:
    if not project.allows(template.id):
        raise TemplateNotAllowed(
            f"The project {project.name!r} does not allow the template "
            f"{template.title!r}."
        )
