"""The ports through which continuations see and mark sessions."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sidestage.ids import ConversationId, SessionId
from sidestage.sessions.model import Process, SessionState


@dataclass(frozen=True, slots=True)
class ToldStatus:
    """What an agent's own registry says of one live process, and since when.

    Two equal ones mean that nothing happened in between: each change has another time.
    """

    process: Process
    state: SessionState
    at: datetime


class AgentStatuses(Protocol):
    """The registry alone: hooks, transcripts and guesses left out."""

    async def told_status(self, session_id: SessionId) -> ToldStatus | None:
        """Read the registry now; None if no live process says what it does.

        Also None while two processes are on the conversation.
        """


class Lineage(Protocol):
    """Marks which session continues which."""

    def session_id(self, conversation_id: ConversationId) -> SessionId:
        """Return the row id of a conversation, listed or not."""

    def set_continues(
        self, conversation_id: ConversationId, parent_id: SessionId
    ) -> None:
        """Note that the conversation continues a session, listed yet or not."""

    def set_handed_off(self, session_id: SessionId, at: datetime | None) -> None:
        """Mark the session as handed off at *at*, or (None) not any more."""
