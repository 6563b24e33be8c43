"""Ties the sessions that run in our terminals to them (the port `SessionLinks`)."""

import asyncio
from typing import Final, Protocol

import psutil

from sidestage.agents.claude_code.discovery import Discovery
from sidestage.agents.claude_code.private_files import ClaudePrivateFiles
from sidestage.ids import ConversationId, SessionId, TerminalId
from sidestage.sessions.model import Process

TERMINAL_VARIABLE: Final = "SIDESTAGE_TERMINAL"
"""Every child of a terminal has the terminal's id in it."""


class TerminalSockets(Protocol):
    """Gives terminals hook sockets of their own."""

    def add_terminal(self, terminal_id: TerminalId) -> None:
        """Listen for the terminal's hooks, in the folder its sandbox sees."""

    def remove_terminal(self, terminal_id: TerminalId) -> None:
        """Stop listening; unknown ids are fine."""


class ClaudeLinks:
    """`sidestage.terminals.links.SessionLinks`, over the discovery of Claude Code."""

    def __init__(
        self, discovery: Discovery, files: ClaudePrivateFiles, sockets: TerminalSockets
    ) -> None:
        self._discovery = discovery
        self._files = files
        self._sockets = sockets

    def add_terminal(
        self,
        terminal_id: TerminalId,
        *,
        directory: str,
        session_id: SessionId | None,
    ) -> None:
        """Watch the terminal's private registry folder and its hook socket."""
        self._discovery.add_terminal(
            terminal_id,
            self._files.registry_of(terminal_id),
            config_dir=self._files.config_dir_of(terminal_id),
            directory=directory,
            session_id=session_id,
        )
        self._sockets.add_terminal(terminal_id)

    def remove_terminal(self, terminal_id: TerminalId) -> None:
        """Stop watching; unknown ids are fine."""
        self._discovery.remove_terminal(terminal_id)
        self._sockets.remove_terminal(terminal_id)

    def session_of(self, conversation_id: ConversationId) -> SessionId:
        """Return the row id of a conversation."""
        return self._discovery.sessions.session_id(conversation_id)

    async def starting_agent(
        self, directory: str, conversation_id: ConversationId
    ) -> bool:
        """Tell whether an agent process without a registry entry is in the way."""
        return await self._discovery.sessions.starting_agent(directory, conversation_id)

    async def foreign_process(
        self, session_id: SessionId, terminal_id: TerminalId
    ) -> bool:
        """Look now whether a process outside of *terminal_id* owns the session."""
        sessions = self._discovery.sessions
        row = await sessions.refresh(session_id)
        if row is None:
            return False
        sighting = sessions.terminals.get(terminal_id)
        own = None if sighting is None else sighting.process
        others = [run for run in row.origin.processes if run != own]
        # Without a sandbox our own child is in the registry that all share.
        belongs = await asyncio.gather(
            *(asyncio.to_thread(_is_child_of, run, terminal_id) for run in others)
        )
        return not all(belongs)


def _is_child_of(run: Process, terminal_id: TerminalId) -> bool:
    try:
        return psutil.Process(run.pid).environ().get(TERMINAL_VARIABLE) == terminal_id
    except psutil.Error:
        return False
