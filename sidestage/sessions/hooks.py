"""What agents tell through their hooks, as the rest of the product sees it.

An event hastens what the registry and the transcript would tell later, and makes
cards. It never ends a session, starts anything or grants anything
(docs/security.md, "Hooks").
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from sidestage.ids import ConversationId, SessionId, TerminalId
from sidestage.sessions.model import Process


class HookKind(StrEnum):
    """The events we act on; everything else is OTHER."""

    SESSION_STARTED = "SESSION_STARTED"
    SESSION_ENDED = "SESSION_ENDED"
    PROMPT = "PROMPT"
    TOOL_STARTING = "TOOL_STARTING"
    TOOL_DONE = "TOOL_DONE"
    TOOL_FAILED = "TOOL_FAILED"
    PERMISSION_REQUEST = "PERMISSION_REQUEST"
    NOTIFICATION = "NOTIFICATION"
    STOPPED = "STOPPED"
    STOP_FAILED = "STOP_FAILED"
    SUBAGENT_STOPPED = "SUBAGENT_STOPPED"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """One event, attributed: its peer proved that it belongs to this session."""

    kind: HookKind
    session_id: SessionId
    conversation_id: ConversationId = field(repr=False)
    run: Process | None
    """The agent's process; None for an event that waited in the spool."""
    at: datetime
    terminal_id: TerminalId | None
    """The terminal of ours through whose own socket it came."""
    is_from_subagent: bool
    was_spooled: bool
    payload: Mapping[str, Any] = field(repr=False)
    """What the agent wrote, parsed; its values are not checked."""


class Hold(Protocol):
    """A permission hook that waits: the one way by which a decision travels."""

    @property
    def digest(self) -> bytes:
        """SHA-256 of the very bytes the agent gave its hook."""

    @property
    def claim(self) -> bytes:
        """SHA-256 of the random claim with which this hook may come back."""

    async def answer(self, decision: Mapping[str, Any] | None) -> bool:
        """Send the hook its `hookSpecificOutput.decision`; None is "no opinion".

        False if the hook is gone. A second call does nothing and returns False.
        """

    async def wait_closed(self) -> None:
        """Return once the hook has gone away, or was answered."""


class HookListener(Protocol):
    """Who is told of events, in their order within a session."""

    async def heard(self, event: HookEvent) -> None:
        """Take in an event. Its hook is already answered: nothing waits on this."""

    async def held(self, event: HookEvent, hold: Hold) -> None:
        """Take in a permission request whose hook waits on *hold*, also a return.

        It returns at once; the hold is answered later, or let go with None.
        """
