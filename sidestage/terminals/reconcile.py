"""What the host says against what was written down: the host wins on processes."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.ids import HostId, SessionId, TemplateId
from sidestage.terminals.model import HostTerminal, Terminal, TerminalState

ADOPTED_NAME: Final = "Recovered terminal"
ADOPTED_TEMPLATE: Final = TemplateId("template:unknown")


def merged(
    terminal: Terminal, told: HostTerminal, *, at: datetime | None = None
) -> Terminal:
    """Return *terminal* with everything the host knows better; it was told *at*."""
    if told.state is TerminalState.LOST:
        return _with_record(terminal, told, at)
    return replace(
        terminal,
        state=told.state,
        cols=told.cols,
        rows=told.rows,
        title=told.title,
        exit_status=told.exit_status,
        ended_at=told.ended_at,
        last_output_at=told.last_output_at,
        last_input_at=told.last_input_at,
        bell_at=told.bell_at,
        attached_clients=told.attached_clients,
        sandbox=told.sandbox,
    )


def _with_record(
    terminal: Terminal, told: HostTerminal, at: datetime | None
) -> Terminal:
    """Return *terminal* as a host says that has nothing but its record.

    The record may be some seconds older than what was heard before: a program that was
    told to have exited stays EXITED.
    """
    exited = terminal.state is TerminalState.EXITED
    return replace(
        terminal,
        state=TerminalState.EXITED if exited else TerminalState.LOST,
        cols=told.cols,
        rows=told.rows,
        title=told.title or terminal.title,
        ended_at=terminal.ended_at or at,
        last_output_at=terminal.last_output_at or told.last_output_at,
        last_input_at=terminal.last_input_at or told.last_input_at,
        bell_at=terminal.bell_at or told.bell_at,
        attached_clients=told.attached_clients,
    )


def adopted(
    told: HostTerminal, *, host_id: HostId, session_id: SessionId | None
) -> Terminal:
    """Return a row for a terminal that the host runs and nobody wrote down."""
    return Terminal(
        id=told.terminal_id,
        host_id=host_id,
        name=told.name or ADOPTED_NAME,
        template=ADOPTED_TEMPLATE,
        project_id=told.project_id,
        directory="/",
        state=told.state,
        cols=told.cols,
        rows=told.rows,
        title=told.title,
        exit_status=told.exit_status,
        started_at=told.started_at,
        ended_at=told.ended_at,
        last_output_at=told.last_output_at,
        last_input_at=told.last_input_at,
        bell_at=told.bell_at,
        session_id=session_id,
        read_only=not told.sandbox.project_writable,
        sandbox=told.sandbox,
        attached_clients=told.attached_clients,
    )


def confirmed_record(terminal: Terminal) -> AuditRecord:
    """Return what the audit log says of a start whose end only the host saw.

    Who had asked is in no row: the server that knew is gone.
    """
    resumed = terminal.session_id is not None
    return AuditRecord(
        actor="system",
        action="session.resume" if resumed else "terminal.start",
        target_id=terminal.session_id or terminal.id,
        outcome=AuditOutcome.DONE,
        detail=f"terminal={terminal.id} sandbox={terminal.sandbox.kind} recovered",
    )


def lost(terminal: Terminal, *, at: datetime) -> Terminal:
    """Return *terminal* as it is when its host has gone away.

    When it ended nobody saw: the time is that at which it was found out.
    """
    return replace(
        terminal,
        state=TerminalState.LOST,
        ended_at=terminal.ended_at or at,
        attached_clients=0,
    )


def needs_writing(before: Terminal | None, after: Terminal) -> bool:
    """Tell whether a change is worth the disk: times of activity alone are not."""
    if before is None:
        return True
    return before != replace(
        after,
        last_output_at=before.last_output_at,
        last_input_at=before.last_input_at,
        bell_at=before.bell_at,
        attached_clients=before.attached_clients,
    )
