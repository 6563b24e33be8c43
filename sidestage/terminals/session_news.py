"""What discovery tells of sessions in our terminals, brought into the rows.

An agent may leave its conversation for another (`/clear`, `/branch`, `/resume`), and
somebody may resume the same conversation outside.
"""

import logging
from dataclasses import replace

from sidestage.errors import SidestageError
from sidestage.sessions.model import Session
from sidestage.terminals.model import TerminalState
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.rows import TerminalRows
from sidestage.terminals.starts import Starts

_log = logging.getLogger(__name__)


class SessionNews:
    """Keeps each terminal on the session its program is really on."""

    def __init__(self, parts: DeskParts, rows: TerminalRows, starts: Starts) -> None:
        self._parts = parts
        self._rows = rows
        self._starts = starts

    async def follow(self) -> None:
        """Follow the sessions until cancelled."""
        feed = self._parts.sessions.feed
        seq = feed.seq
        for session in feed.values():
            await self._follow_session(session)
        while True:
            await feed.wait_beyond(seq)
            changes = feed.changes_after(seq)
            seq = feed.seq
            rows = feed.values() if changes is None else [c.after for c in changes]
            for row in rows:
                if row is not None and row.terminal_id is not None:
                    await self._follow_session(row)

    async def _follow_session(self, session: Session) -> None:
        terminal = self._rows.feed.get(session.terminal_id or "")
        if terminal is None or terminal.state is not TerminalState.RUNNING:
            return
        try:
            if session.conflict is not None:
                await self._starts.yield_if_untouched(terminal)
            elif session.state.is_live and terminal.session_id != session.id:
                await self._parts.host.hold_conversation(
                    terminal.id, session.origin.conversation_id
                )
                terminal = self._rows.feed.get(terminal.id)
                if terminal is not None and terminal.state is TerminalState.RUNNING:
                    await self._rows.change(replace(terminal, session_id=session.id))
        except SidestageError:
            _log.exception("A terminal could not be brought in line with its session.")
