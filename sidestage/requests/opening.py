"""Whether a hook is held for a person, and the request that it makes: pure functions.

Whatever is not held goes on at the keyboard as if there were no hook.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sidestage.requests.calls import prompt_id_of
from sidestage.requests.model import AgentRequest, RequestId, RequestOrigin
from sidestage.requests.parsing import Asked
from sidestage.sessions.hooks import Hold, HookEvent
from sidestage.sessions.model import Session

OPEN_LIMIT: Final = 20
"""Requests open at once in a session; an agent asks a few side by side at most."""
LIFE: Final = timedelta(hours=24) - timedelta(minutes=2)
"""How long a hook is held: a night and a day away. A minute less than the hook itself
waits, so that it is us who say that the time is over (docs/hook-protocol.md)."""
MODES_WITHOUT_DIALOG: Final = frozenset({"bypassPermissions", "dontAsk"})
"""The CLI's names of the modes in which its dialog never opens."""


class LetGo(StrEnum):
    """Why a hook was not held; the names of counters."""

    SUBAGENT = "requests_of_subagents"
    """Its dialog opens only after its hook has answered, so holding would hide it."""
    UNKNOWN_SESSION = "requests_of_unknown_sessions"
    NOT_ADOPTED = "requests_not_adopted"
    MODE = "requests_in_modes_without_dialog"
    HEADLESS = "requests_of_headless_runs"
    NOBODY = "requests_without_device"
    UNREADABLE = "requests_unreadable"
    LIMIT = "requests_over_limit"
    OVER = "requests_settled_before_return"


def why_let_go(
    event: HookEvent, row: Session | None, *, is_adopted: bool, holds_headless: bool
) -> LetGo | None:
    """Return why the event's hook is not held, as far as the session decides."""
    if event.is_from_subagent:
        return LetGo.SUBAGENT
    if row is None:
        return LetGo.UNKNOWN_SESSION
    if not is_adopted:
        return LetGo.NOT_ADOPTED
    if event.payload.get("permission_mode") in MODES_WITHOUT_DIALOG:
        return LetGo.MODE
    if is_headless(event, row) and not holds_headless:
        return LetGo.HEADLESS
    return None


def is_headless(event: HookEvent, row: Session) -> bool:
    """Tell whether the process that asks shows no dialog."""
    return event.run is not None and event.run in row.origin.headless


def make_request(
    request_id: RequestId,
    asked: Asked,
    event: HookEvent,
    hold: Hold,
    *,
    row: Session,
    tool_use_id: str | None,
    now: datetime,
) -> AgentRequest:
    """Return the pending request that the held hook makes."""
    expires_at = now + LIFE
    return AgentRequest(
        id=request_id,
        session_id=event.session_id,
        terminal_id=event.terminal_id,
        kind=asked.kind,
        tool_name=asked.tool_name,
        input_json=asked.input_json,
        suggestions=asked.suggestions,
        questions=asked.questions,
        plan=asked.plan,
        created_at=now,
        # Envelopes name it in whole milliseconds.
        expires_at=expires_at.replace(
            microsecond=expires_at.microsecond // 1000 * 1000
        ),
        state_since=now,
        origin=RequestOrigin(
            run=event.run,
            tool_use_id=tool_use_id,
            prompt_id=prompt_id_of(event.payload),
            claim=hold.claim,
            event_digest=hold.digest,
            is_headless=is_headless(event, row),
        ),
    )


def is_return_of(request: AgentRequest, hold: Hold) -> bool:
    """Tell whether *hold* is the hook that made *request*, come back.

    Both must fit: the secret it showed at first, and the very bytes it was given.
    """
    origin = request.origin
    return origin.claim == hold.claim and origin.event_digest == hold.digest
