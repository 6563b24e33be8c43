"""The rows of terminals: every change goes to the list, then to the store."""

import asyncio
import logging
from collections.abc import Coroutine

from sidestage.audit import AuditRecord
from sidestage.feeds import Feed
from sidestage.ids import TerminalId
from sidestage.terminals import reconcile
from sidestage.terminals.model import Terminal, TerminalState
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.row_writer import RowWriter

_log = logging.getLogger(__name__)


class TerminalRows:
    """The list of terminals, and the one way a row of it changes."""

    def __init__(self, parts: DeskParts) -> None:
        self.feed: Feed[Terminal] = Feed(lambda terminal: terminal.id)
        self._parts = parts
        self.writer = RowWriter(parts.store)
        self._chores: set[asyncio.Task[None]] = set()

    def restore(self, terminal: Terminal) -> None:
        """Show a row that was stored."""
        self.feed.upsert(terminal)
        self.link(terminal)

    async def change(
        self, terminal: Terminal, record: AuditRecord | None = None
    ) -> None:
        """Show the changed row and store what of it outlives us."""
        # Into the list before anything is waited for: the next change is made from it.
        before = self.feed.get(terminal.id)
        self.feed.upsert(terminal)
        if reconcile.needs_writing(before, terminal):
            await self.writer.write(terminal, record)
        was_running = before is None or before.state is TerminalState.RUNNING
        if was_running and terminal.state is not TerminalState.RUNNING:
            self.do_beside(self._tidy(terminal.id))

    def link(self, terminal: Terminal) -> None:
        """Tell discovery of the terminal as long as its program runs."""
        if terminal.state is TerminalState.RUNNING:
            self._parts.links.add_terminal(
                terminal.id,
                directory=terminal.directory,
                session_id=terminal.session_id,
            )

    def do_beside(self, work: Coroutine[None, None, None]) -> None:
        """Do *work* without making the change of a row wait for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chore_done)

    async def _tidy(self, terminal_id: TerminalId) -> None:
        self._parts.links.remove_terminal(terminal_id)
        await self._parts.launcher.finish(terminal_id)

    def _chore_done(self, task: "asyncio.Task[None]") -> None:
        self._chores.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("A terminal's files could not be tidied.", exc_info=error)
