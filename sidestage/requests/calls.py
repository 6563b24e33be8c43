"""Which tool call a permission request is about: its own payload does not say.

The call's own event comes just before, with the same prompt, tool and input, and names
the call (docs/handover-protocol.md, "Requests").
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sidestage.ids import SessionId
from sidestage.requests.model import AgentRequest, RequestKind
from sidestage.requests.parsing import write_json
from sidestage.sessions.model import OpenCall

REMEMBERED_LIMIT: Final = 64
"""Calls remembered a session: one answer of the model has a few, most never ask."""
SESSIONS_LIMIT: Final = 256
"""Sessions remembered at once; the one heard of longest ago is forgotten first."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call as its event told it."""

    id: str
    prompt_id: str | None
    tool_name: str
    input_json: str | None


@dataclass(slots=True)
class Calls:
    """The latest calls of each session, as their events told them."""

    _by_session: dict[SessionId, deque[_Call]] = field(default_factory=dict)

    def note(self, session_id: SessionId, payload: Mapping[str, Any]) -> None:
        """Remember the call of which a tool's starting event tells."""
        call_id, name = payload.get("tool_use_id"), payload.get("tool_name")
        if not isinstance(call_id, str) or not isinstance(name, str):
            return
        calls = self._by_session.pop(session_id, deque(maxlen=REMEMBERED_LIMIT))
        call = _Call(
            call_id,
            prompt_id_of(payload),
            name,
            write_json(payload.get("tool_input")),
        )
        calls.append(call)
        self._by_session[session_id] = calls
        if len(self._by_session) > SESSIONS_LIMIT:
            del self._by_session[next(iter(self._by_session))]

    def forget(self, session_id: SessionId, payload: Mapping[str, Any]) -> None:
        """Forget the call that *payload* says is done: no request is about it."""
        call_id = payload.get("tool_use_id")
        calls = self._by_session.get(session_id, ())
        for call in tuple(calls):
            if call.id == call_id:
                self._by_session[session_id].remove(call)

    def find(
        self,
        session_id: SessionId,
        *,
        prompt_id: str | None,
        tool_name: str,
        input_json: str,
        taken: Iterable[str | None],
        open_calls: tuple[OpenCall, ...],
    ) -> str | None:
        """Return the call's id: the oldest that fits and is not *taken*, or None.

        Without its event (hooks were installed meanwhile, the server was away) the
        transcript's open calls tell, if only one can be meant.
        """
        used = frozenset(taken)
        wanted = (prompt_id, tool_name, input_json)
        for call in self._by_session.get(session_id, ()):
            told = (call.prompt_id, call.tool_name, call.input_json)
            if told == wanted and call.id not in used:
                return call.id
        unclaimed = [
            call.id
            for call in open_calls
            if call.tool_name == tool_name and call.id not in used
        ]
        return unclaimed[0] if len(unclaimed) == 1 else None


def prompt_id_of(payload: Mapping[str, Any]) -> str | None:
    """Return the id of the prompt an event belongs to, if it names one."""
    value = payload.get("prompt_id")
    return value if isinstance(value, str) else None


def is_done_by(request: AgentRequest, payload: Mapping[str, Any]) -> bool:
    """Tell whether the finished call in *payload* is the one *request* is about."""
    if request.origin.tool_use_id is not None:
        return payload.get("tool_use_id") == request.origin.tool_use_id
    if payload.get("tool_name") != request.tool_name:
        return False
    if prompt_id_of(payload) != request.origin.prompt_id:
        return False
    # What a person answers comes back in the input; any other tool runs what was shown.
    is_changed = request.kind is not RequestKind.PERMISSION
    return is_changed or write_json(payload.get("tool_input")) == request.input_json
