"""What the host tells of terminals, brought into the rows.

After a crash of either side the host's list is the truth about processes and the
database about names.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from sidestage.errors import HostUnavailable, SidestageError
from sidestage.ids import TerminalId
from sidestage.terminals import reconcile
from sidestage.terminals.model import (
    HostEvent,
    HostEventKind,
    HostTerminal,
    Terminal,
    TerminalState,
)
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.rows import TerminalRows
from sidestage.terminals.starts import Starts

ASK_AGAIN_SECONDS: Final = 5.0
"""Between two questions to the host about starts that it did not answer in time."""
FIRST_LIST_PATIENCE_SECONDS: Final = 10.0
"""How long a start waits for the host's first list before it gives up."""

_log = logging.getLogger(__name__)


class HostNews:
    """Joins the host's news with the rows and with the starts under way."""

    def __init__(self, parts: DeskParts, rows: TerminalRows, starts: Starts) -> None:
        self._parts = parts
        self._rows = rows
        self._starts = starts
        self._unconfirmed: dict[TerminalId, Terminal] = {}
        self._listed = asyncio.Event()

    def expect(self, terminal: Terminal) -> None:
        """Take a stored start of which nobody heard how it ended."""
        self._unconfirmed[terminal.id] = terminal

    async def wait_for_list(self) -> None:
        """Wait for the host's first list; raises `HostUnavailable` without one."""
        # Before it we cannot tell what the host holds.
        try:
            async with asyncio.timeout(FIRST_LIST_PATIENCE_SECONDS):
                await self._listed.wait()
        except TimeoutError:
            raise HostUnavailable("The terminal host does not answer.") from None

    async def fate(self, terminal_id: TerminalId) -> Terminal | None:
        """Return what became of a start once it is known; None if nothing ran.

        Raises `HostUnavailable` while the host does not answer.
        """
        await self.wait_for_list()
        while True:
            seq = self._rows.feed.seq
            terminal = self._rows.feed.get(terminal_id)
            is_open = terminal_id in self._starts.under_way()
            if terminal is not None or not is_open:
                return terminal
            # A start that came to nothing changes no row: it is looked at again.
            with suppress(TimeoutError):
                async with asyncio.timeout(ASK_AGAIN_SECONDS):
                    await self._rows.feed.wait_beyond(seq)

    async def follow(self) -> None:
        """Follow the host until cancelled."""
        async for event in self._parts.host.watch():
            try:
                await self._apply(event)
            except SidestageError:
                _log.exception("The terminal host's news could not be applied.")

    async def _apply(self, event: HostEvent) -> None:
        if event.kind is HostEventKind.CONNECTED:
            await self._reconcile(event.terminals)
        elif event.kind is HostEventKind.CHANGED:
            for told in event.terminals:
                await self._heard(told)

    async def _reconcile(self, listed: tuple[HostTerminal, ...]) -> None:
        for told in listed:
            await self._heard(told)
        ids = {told.terminal_id for told in listed}
        now = self._parts.clock()
        for terminal_id in [t.id for t in self._rows.feed.values() if t.id not in ids]:
            terminal = self._rows.feed.get(terminal_id)
            if terminal is not None and terminal.state is TerminalState.RUNNING:
                await self._rows.change(reconcile.lost(terminal, at=now))
        for terminal_id in tuple(self._unconfirmed):
            del self._unconfirmed[terminal_id]
            await self._starts.came_to_nothing(terminal_id)
        for terminal_id in self._starts.unanswered() - ids:
            await self._starts.came_to_nothing(terminal_id)
        self._listed.set()
        self._rows.do_beside(self._sweep())

    async def _sweep(self) -> None:
        """Take back files of terminals that a server before us began or ended."""
        prepared = await self._parts.launcher.list_prepared()
        running = {
            t.id for t in self._rows.feed.values() if t.state is TerminalState.RUNNING
        }
        for terminal_id in prepared - running - self._starts.under_way():
            await self._parts.launcher.finish(terminal_id)

    async def ask_about_starts(self) -> None:
        """Ask the host about unanswered starts until cancelled."""
        # Without a break of the connection no list comes by itself, and a refusal that
        # came too late is told by nothing but the list.
        while True:
            await asyncio.sleep(ASK_AGAIN_SECONDS)
            asked = self._starts.unanswered()
            if asked:
                with suppress(HostUnavailable):
                    await self._settle(asked, await self._parts.host.list_terminals())

    async def _settle(
        self, asked: set[TerminalId], listed: tuple[HostTerminal, ...]
    ) -> None:
        for told in listed:
            if told.terminal_id in asked:
                await self._heard(told)
        still_asked = asked & self._starts.unanswered()
        for terminal_id in still_asked - {told.terminal_id for told in listed}:
            await self._starts.came_to_nothing(terminal_id)

    async def _heard(self, told: HostTerminal) -> None:
        before, now = self._rows.feed.get(told.terminal_id), self._parts.clock()
        if before is None and self._starts.keep_early_news(told):
            return  # the start itself writes the row
        if before is not None:
            await self._rows.change(reconcile.merged(before, told, at=now))
            return
        begun = self._begun(told.terminal_id)
        terminal = reconcile.merged(begun or self._adopted(told), told, at=now)
        self._rows.link(terminal)
        record = None if begun is None else reconcile.confirmed_record(terminal)
        await self._rows.change(terminal, record)

    def _begun(self, terminal_id: TerminalId) -> Terminal | None:
        """Return the row of a start of which nobody heard how it ended."""
        begun = self._unconfirmed.pop(terminal_id, None)
        return begun or self._starts.answered(terminal_id)

    def _adopted(self, told: HostTerminal) -> Terminal:
        parts, conversation = self._parts, told.conversation_id
        known = None if conversation is None else parts.links.session_of(conversation)
        return reconcile.adopted(told, host_id=parts.host_id, session_id=known)
