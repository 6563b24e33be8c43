"""The port between terminals and the discovery of sessions."""

from typing import Protocol

from sidestage.ids import ConversationId, SessionId, TerminalId


class SessionLinks(Protocol):
    """Ties the sessions that run inside our terminals to them."""

    def add_terminal(
        self,
        terminal_id: TerminalId,
        *,
        directory: str,
        session_id: SessionId | None,
    ) -> None:
        """Watch the terminal's private registry folder from now on.

        What registers there can be a session of that terminal only, which started in
        *directory*. Until something does, *session_id* is taken to run in it: a dialog
        of the agent may hold it for long.
        """

    def remove_terminal(self, terminal_id: TerminalId) -> None:
        """Stop watching; its sessions are no longer linked. Unknown ids are fine."""

    def session_of(self, conversation_id: ConversationId) -> SessionId:
        """Return the row id of a conversation."""

    async def starting_agent(
        self, directory: str, conversation_id: ConversationId
    ) -> bool:
        """Tell whether an agent process without a registry entry is in the way.

        One that stands in *directory* or names the conversation in its arguments, and
        is not in a terminal of ours.
        """

    async def foreign_process(
        self, session_id: SessionId, terminal_id: TerminalId
    ) -> bool:
        """Look now whether a live process outside of *terminal_id* owns the session."""
