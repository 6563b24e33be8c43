"""The values of the host protocol as JSON, and back, checked strictly.

Both ends use this module, so a field cannot be written one way and read another.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, NewType

from sidestage import errors
from sidestage.errors import (
    ErrorCode,
    OutsideSessionResumed,
    SidestageError,
    StartFailed,
)
from sidestage.ids import (
    ID_LIMIT_CHARACTERS,
    ConversationId,
    ProjectId,
    TerminalId,
)
from sidestage.terminals.model import (
    SIDE_LIMIT_CELLS,
    CreateTerminal,
    HostTerminal,
    SandboxReport,
    TerminalState,
)
from terminal_host.fields import (
    read_flag,
    read_object,
    read_optional_text,
    read_text,
    read_texts,
)
from terminal_host.profile_messages import decode_profile, encode_profile
from terminal_host.wire import Frame, FrameInvalid

Holder = NewType("Holder", str)
"""Whose attachment it is, as `serve` names it (a token's id): what `drop` ends."""

_TERMINAL_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.-]*")

_ERRORS: Final[Mapping[str, type[SidestageError]]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, SidestageError)
    and "__init__" not in vars(kind)
}
"""Every class that is made of its sentence alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachRequest:
    """The first frame of a data connection: which terminal, from where, how."""

    terminal_id: TerminalId
    after: int | None
    """The offset up to which the client has the output; None asks for a repaint."""
    writable: bool
    holder: Holder
    cols: int | None = None
    """The client's own size, to which the screen of a LOST terminal is reflowed."""
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """The answer: *repaint_bytes* of repaint follow, then the output from *offset*."""

    offset: int
    repaint_bytes: int
    cols: int
    rows: int
    running: bool
    exit_status: int | None
    lost: bool = False
    """Whether its host went away: a screen that stays, and no program behind it."""


def encode_error(error: SidestageError) -> Frame:
    """Return *error* as JSON: code, sentence, and the terminal it names if it does."""
    encoded: Frame = {"code": str(error.code), "message": str(error)}
    if isinstance(error, OutsideSessionResumed):
        encoded["terminal_id"] = error.terminal_id
    return encoded


def decode_error(value: object) -> SidestageError:
    """Return the error in *value*; an unknown code becomes `StartFailed`."""
    fields = read_object(value)
    code, message = read_text(fields, "code"), read_text(fields, "message")
    if code == ErrorCode.OUTSIDE_SESSION_RESUMED:
        return OutsideSessionResumed(
            message, terminal_id=read_text(fields, "terminal_id")
        )
    return _ERRORS.get(code, StartFailed)(message)


def encode_create(request: CreateTerminal) -> Frame:
    """Return *request* as JSON."""
    return {
        "terminal_id": request.terminal_id,
        "argv": list(request.argv),
        "environment": dict(request.environment),
        "directory": str(request.directory),
        "cols": request.cols,
        "rows": request.rows,
        "conversation_id": request.conversation_id,
        "sandbox": None if request.sandbox is None else encode_profile(request.sandbox),
        "name": request.name,
        "project_id": request.project_id,
    }


def decode_create(value: object) -> CreateTerminal:
    """Return the request in *value*; raises `FrameInvalid`."""
    fields = read_object(value)
    conversation = fields.get("conversation_id")
    sandbox = fields.get("sandbox")
    return CreateTerminal(
        terminal_id=decode_terminal_id(fields),
        argv=read_texts(fields, "argv"),
        environment=_environment(fields),
        directory=Path(read_text(fields, "directory")),
        cols=decode_side(fields, "cols"),
        rows=decode_side(fields, "rows"),
        conversation_id=None
        if conversation is None
        else ConversationId(read_text(fields, "conversation_id")),
        sandbox=None if sandbox is None else decode_profile(sandbox),
        name=read_optional_text(fields, "name"),
        project_id=_optional_project(fields),
    )


def encode_terminal(terminal: HostTerminal) -> Frame:
    """Return *terminal* as JSON; times are RFC 3339."""
    return {
        "terminal_id": terminal.terminal_id,
        "state": str(terminal.state),
        "cols": terminal.cols,
        "rows": terminal.rows,
        "pid": terminal.pid,
        "exit_status": terminal.exit_status,
        "title": terminal.title,
        "started_at": terminal.started_at.isoformat(),
        "ended_at": _time(terminal.ended_at),
        "last_output_at": _time(terminal.last_output_at),
        "last_input_at": _time(terminal.last_input_at),
        "bell_at": _time(terminal.bell_at),
        "attached_clients": terminal.attached_clients,
        "sandbox": {
            "enabled": terminal.sandbox.enabled,
            "kind": terminal.sandbox.kind,
            "signals_confined": terminal.sandbox.signals_confined,
            "project_writable": terminal.sandbox.project_writable,
        },
        "conversation_id": terminal.conversation_id,
        "name": terminal.name,
        "project_id": terminal.project_id,
    }


def decode_terminal(value: object) -> HostTerminal:
    """Return the terminal in *value*; raises `FrameInvalid`."""
    fields = read_object(value)
    sandbox = read_object(fields.get("sandbox"))
    conversation = read_optional_text(fields, "conversation_id")
    started_at = _optional_time(fields, "started_at")
    if started_at is None:
        raise FrameInvalid("started_at is missing")
    return HostTerminal(
        terminal_id=decode_terminal_id(fields),
        state=_state(fields),
        cols=decode_side(fields, "cols"),
        rows=decode_side(fields, "rows"),
        pid=_optional_number(fields, "pid"),
        exit_status=_optional_number(fields, "exit_status"),
        title=read_optional_text(fields, "title"),
        started_at=started_at,
        ended_at=_optional_time(fields, "ended_at"),
        last_output_at=_optional_time(fields, "last_output_at"),
        last_input_at=_optional_time(fields, "last_input_at"),
        bell_at=_optional_time(fields, "bell_at"),
        attached_clients=decode_number(fields, "attached_clients"),
        sandbox=SandboxReport(
            enabled=read_flag(sandbox, "enabled"),
            kind=read_text(sandbox, "kind"),
            signals_confined=read_flag(sandbox, "signals_confined"),
            project_writable=read_flag(sandbox, "project_writable"),
        ),
        conversation_id=None if conversation is None else ConversationId(conversation),
        name=read_optional_text(fields, "name"),
        project_id=_optional_project(fields),
    )


def encode_attach(request: AttachRequest) -> Frame:
    """Return *request* as JSON."""
    return {
        "terminal_id": request.terminal_id,
        "after": request.after,
        "writable": request.writable,
        "holder": request.holder,
        "cols": request.cols,
        "rows": request.rows,
    }


def decode_attach(value: object) -> AttachRequest:
    """Return the request in *value*; raises `FrameInvalid`."""
    fields = read_object(value)
    return AttachRequest(
        terminal_id=decode_terminal_id(fields),
        after=_optional_number(fields, "after"),
        writable=read_flag(fields, "writable"),
        holder=Holder(read_text(fields, "holder")),
        cols=_optional_side(fields, "cols"),
        rows=_optional_side(fields, "rows"),
    )


def encode_attached(attached: Attached) -> Frame:
    """Return *attached* as JSON."""
    return {
        "offset": attached.offset,
        "repaint_bytes": attached.repaint_bytes,
        "cols": attached.cols,
        "rows": attached.rows,
        "running": attached.running,
        "exit_status": attached.exit_status,
        "lost": attached.lost,
    }


def decode_attached(value: object) -> Attached:
    """Return the answer in *value*; raises `FrameInvalid`."""
    fields = read_object(value)
    return Attached(
        offset=decode_number(fields, "offset"),
        repaint_bytes=decode_number(fields, "repaint_bytes"),
        cols=decode_side(fields, "cols"),
        rows=decode_side(fields, "rows"),
        running=read_flag(fields, "running"),
        exit_status=_optional_number(fields, "exit_status"),
        # Hosts of version 1 keep no terminals of hosts before them.
        lost="lost" in fields and read_flag(fields, "lost"),
    )


def decode_terminal_id(fields: Frame) -> TerminalId:
    """Return the field `terminal_id`; raises `FrameInvalid`."""
    value = read_text(fields, "terminal_id")
    # It names a folder below the state folder.
    if len(value) > ID_LIMIT_CHARACTERS or not _TERMINAL_ID.fullmatch(value):
        raise FrameInvalid("terminal_id has not the form of an id")
    return TerminalId(value)


def decode_conversation_id(fields: Frame) -> ConversationId:
    """Return the field `conversation_id`; raises `FrameInvalid`."""
    return ConversationId(read_text(fields, "conversation_id"))


def decode_holder(fields: Frame) -> Holder:
    """Return the field `holder`; raises `FrameInvalid`."""
    return Holder(read_text(fields, "holder"))


def decode_number(fields: Frame, name: str) -> int:
    """Return the whole number *name*, at least 0; raises `FrameInvalid`."""
    value = fields.get(name)
    # bool is an int in Python, not on the wire.
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FrameInvalid(f"{name} is no whole number from 0 on")
    return value


def decode_side(fields: Frame, name: str) -> int:
    """Return the number of cells *name*; raises `FrameInvalid`."""
    value = decode_number(fields, name)
    if not 1 <= value <= SIDE_LIMIT_CELLS:
        raise FrameInvalid(f"{name} is not from 1 to {SIDE_LIMIT_CELLS}")
    return value


def _environment(fields: Frame) -> dict[str, str]:
    variables = read_object(fields.get("environment"))
    if any(not name or "=" in name or "\0" in name for name in variables):
        raise FrameInvalid("environment holds a name that cannot be one")
    return {name: read_text(variables, name) for name in variables}


def _optional_number(fields: Frame, name: str) -> int | None:
    return None if fields.get(name) is None else decode_number(fields, name)


def _optional_side(fields: Frame, name: str) -> int | None:
    return None if fields.get(name) is None else decode_side(fields, name)


def _optional_project(fields: Frame) -> ProjectId | None:
    text = read_optional_text(fields, "project_id")
    return None if text is None else ProjectId(text)


def _state(fields: Frame) -> TerminalState:
    try:
        return TerminalState(read_text(fields, "state"))
    except ValueError as error:
        raise FrameInvalid("state is unknown") from error


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _optional_time(fields: Frame, name: str) -> datetime | None:
    text = read_optional_text(fields, name)
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise FrameInvalid(f"{name} is no time") from error
