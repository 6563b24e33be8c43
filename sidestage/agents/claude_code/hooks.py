"""What the CLI tells its hooks: bytes in, an event out. Pure, and never raises.

Events and their fields: docs/discovery.md, "Hooks". A payload comes from whoever
reached the socket, so nothing in it is believed but what its peer proves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson

from sidestage.agents.claude_code.records import parse_object, text_of
from sidestage.ids import ID_LIMIT_CHARACTERS, ConversationId, SessionId, TerminalId
from sidestage.sessions.evidence import Activity
from sidestage.sessions.hooks import HookEvent, HookKind
from sidestage.sessions.model import EvidenceSource, Process, SessionState

PAYLOAD_LIMIT_BYTES: Final = 64 * 1024
"""Kept of one event. A tool's answer may be larger; nobody needs that one from here."""

_KINDS: Final = {
    "SessionStart": HookKind.SESSION_STARTED,
    "SessionEnd": HookKind.SESSION_ENDED,
    "UserPromptSubmit": HookKind.PROMPT,
    "PreToolUse": HookKind.TOOL_STARTING,
    "PostToolUse": HookKind.TOOL_DONE,
    "PostToolUseFailure": HookKind.TOOL_FAILED,
    "PermissionRequest": HookKind.PERMISSION_REQUEST,
    "Notification": HookKind.NOTIFICATION,
    "Stop": HookKind.STOPPED,
    "StopFailure": HookKind.STOP_FAILED,
    "SubagentStop": HookKind.SUBAGENT_STOPPED,
}
_STATES: Final = {
    HookKind.PROMPT: SessionState.RUNNING,
    HookKind.TOOL_STARTING: SessionState.RUNNING,
    HookKind.TOOL_DONE: SessionState.RUNNING,
    HookKind.TOOL_FAILED: SessionState.RUNNING,
    HookKind.PERMISSION_REQUEST: SessionState.ASKING,
    HookKind.STOPPED: SessionState.IDLE,
    HookKind.STOP_FAILED: SessionState.IDLE,
}
_MODES_WITHOUT_DIALOG: Final = frozenset({"bypassPermissions", "dontAsk"})
_QUESTION_TOOL: Final = "AskUserQuestion"


@dataclass(frozen=True, slots=True)
class HookPayload:
    """One event as the CLI wrote it, not attributed to anyone yet."""

    kind: HookKind
    conversation_id: ConversationId = field(repr=False)
    """The conversation it says it is about."""
    values: Mapping[str, Any] = field(repr=False)
    is_cut: bool = False
    """Whether values were left out because it was too large."""

    @property
    def is_from_subagent(self) -> bool:
        """Whether a sub-agent's run caused it."""
        return text_of(self.values, "agent_id") is not None

    def to_event(
        self,
        session_id: SessionId,
        *,
        at: datetime,
        run: Process | None,
        terminal_id: TerminalId | None = None,
        was_spooled: bool = False,
    ) -> HookEvent:
        """Return the event, attributed to *session_id*."""
        return HookEvent(
            kind=self.kind,
            session_id=session_id,
            conversation_id=self.conversation_id,
            run=run,
            at=at,
            terminal_id=terminal_id,
            is_from_subagent=self.is_from_subagent,
            was_spooled=was_spooled,
            payload=self.values,
        )


def parse_hook(data: bytes) -> HookPayload | None:
    """Return the event in *data*; None if it is torn or none at all."""
    values = parse_object(data)
    if values is None:
        return None
    conversation = text_of(values, "session_id")
    name = text_of(values, "hook_event_name")
    if conversation is None or name is None or len(conversation) > ID_LIMIT_CHARACTERS:
        return None
    kept = values if len(data) <= PAYLOAD_LIMIT_BYTES else _without_largest(values)
    return HookPayload(
        kind=_KINDS.get(name, HookKind.OTHER),
        conversation_id=ConversationId(conversation),
        values=kept,
        is_cut=len(kept) < len(values),
    )


def _without_largest(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return *values* without the largest of them, as many as it takes."""
    sizes = {key: len(key) + len(orjson.dumps(it)) for key, it in values.items()}
    left = sum(sizes.values())
    kept = dict(values)
    for key in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if left <= PAYLOAD_LIMIT_BYTES:
            break
        left -= sizes[key]
        del kept[key]
    return kept


def find_activity(event: HookEvent) -> Activity | None:
    """Return what the event says its run does now; None if it says nothing of it.

    What a sub-agent does is not what its session does: that may be idle meanwhile. Only
    a dialog that a sub-agent opens is the session's.
    """
    state = _STATES.get(event.kind)
    if event.run is None or state is None or _says_nothing(event):
        return None
    label = _label(event) if state is SessionState.ASKING else None
    return Activity(event.run, state, event.at, EvidenceSource.HOOK, label)


def _says_nothing(event: HookEvent) -> bool:
    if event.kind is HookKind.PERMISSION_REQUEST:
        return event.payload.get("permission_mode") in _MODES_WITHOUT_DIALOG
    if event.kind is HookKind.TOOL_FAILED and event.payload.get("is_interrupt"):
        return True  # the turn ended with it, and no event tells of that
    return event.is_from_subagent


def _label(event: HookEvent) -> str:
    """Return the words with which the CLI's registry tells of the same dialog."""
    if event.payload.get("tool_name") == _QUESTION_TOOL:
        return "input needed"
    return "permission prompt"
