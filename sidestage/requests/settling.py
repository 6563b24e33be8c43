"""When a request is over although no device answered it: pure functions.

The CLI sends no event when its dialog is answered, refused or dismissed. What tells:
the call's result in the transcript, the registry's status leaving `waiting`, the next
events of the session, the end of its process. Measured with Claude Code 2.1.328: while
one of several dialogs is open the status stays `waiting`, and a call that is refused or
interrupted gets a result within 0.2 s.
"""

from dataclasses import dataclass

from sidestage.requests.calls import is_done_by, prompt_id_of
from sidestage.requests.model import AgentRequest, RequestEnd
from sidestage.sessions.hooks import HookEvent, HookKind
from sidestage.sessions.model import EvidenceSource, Session, SessionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A request and what was seen of it so far."""

    request: AgentRequest
    others: int
    """Other requests of the session that are open."""
    was_asking: bool
    """The session was seen asking since the request came."""
    call_was_open: bool
    """Its call was seen in the transcript without a result."""
    is_overdue: bool = False
    """Its dialog would have been seen by now, if there were one."""


def settled_by_row(watched: Watched, row: Session | None) -> RequestEnd | None:
    """Return what the session's row says ended the request; None: it is still open."""
    request = watched.request
    if row is None or _has_ended(request, row):
        return RequestEnd.SESSION_ENDED
    if watched.call_was_open and not is_call_open(request, row):
        return RequestEnd.KEYBOARD
    if not request.origin.is_headless and _has_left_dialog(watched, row):
        return RequestEnd.KEYBOARD
    return None


def is_call_open(request: AgentRequest, row: Session) -> bool:
    """Tell whether the transcript holds the request's call, but no result of it."""
    call_id = request.origin.tool_use_id
    return any(call.id == call_id for call in row.origin.open_calls)


def _has_ended(request: AgentRequest, row: Session) -> bool:
    if row.state is SessionState.ENDED:
        return True
    run = request.origin.run
    return row.state.is_live and run is not None and run not in row.origin.processes


def _has_left_dialog(watched: Watched, row: Session) -> bool:
    if not _says_not_asking(row):
        return False
    if watched.is_overdue:
        return True
    if row.state_since <= watched.request.created_at:
        return False  # it speaks of the time before the dialog
    if row.state is SessionState.IDLE:
        return True  # the turn is over: nothing in it asks any more
    if not watched.was_asking:
        return False  # the registry has not told of the dialog yet
    # With several, each one's own result decides, as far as it can come.
    return watched.others == 0 or watched.request.origin.tool_use_id is None


def _says_not_asking(row: Session) -> bool:
    """Tell whether the CLI itself says that no dialog is open.

    Only its registry can know: a hook's event tells of one call among several.
    """
    evidence = row.state_evidence
    return (
        row.state in (SessionState.RUNNING, SessionState.IDLE)
        and evidence is not None
        and evidence.source is EvidenceSource.REGISTRY
    )


_ENDS_TURN = frozenset({HookKind.STOPPED, HookKind.STOP_FAILED})
ENDS_CALL = frozenset({HookKind.TOOL_DONE, HookKind.TOOL_FAILED})
"""A call has run; one that was refused has no such event."""


def settled_by_event(request: AgentRequest, event: HookEvent) -> RequestEnd | None:
    """Return what *event* of the request's session says ended it, or None."""
    if event.is_from_subagent or event.at <= request.created_at:
        return None
    if event.kind in ENDS_CALL and is_done_by(request, event.payload):
        return RequestEnd.KEYBOARD
    if event.kind in _ENDS_TURN and _is_of_run(request, event):
        return RequestEnd.KEYBOARD
    if event.kind is HookKind.PROMPT and _is_next_prompt(request, event):
        return RequestEnd.KEYBOARD
    if event.kind is HookKind.SESSION_ENDED and _is_of_run(request, event):
        return RequestEnd.SESSION_ENDED
    return None


def _is_of_run(request: AgentRequest, event: HookEvent) -> bool:
    """Tell whether *event* is of the process that asks: two may share a session."""
    return None in (event.run, request.origin.run) or event.run == request.origin.run


def _is_next_prompt(request: AgentRequest, event: HookEvent) -> bool:
    prompt_id = prompt_id_of(event.payload)
    is_other = prompt_id is None or prompt_id != request.origin.prompt_id
    return is_other and _is_of_run(request, event)
