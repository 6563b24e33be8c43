"""Writes the rows of terminals, and again what the database could not take.

A terminal that runs is not taken back because the disk is full: its row is kept here
and written once the database works again. If the server stops before that, the host's
list tells the next one what runs.
"""

import asyncio
import logging
from typing import Final

from sidestage.audit import AuditRecord
from sidestage.errors import StorageUnavailable
from sidestage.ids import TerminalId
from sidestage.terminals.model import Terminal
from sidestage.terminals.store import TerminalStore

WRITE_AGAIN_SECONDS: Final = 10.0
"""Between two tries. A held database lets each wait five seconds of its own."""

_Kept = tuple[Terminal, tuple[AuditRecord, ...]]
_log = logging.getLogger(__name__)


class RowWriter:
    """Writes rows in the order in which they changed; `run` it beside."""

    def __init__(self, store: TerminalStore) -> None:
        self._store = store
        # Bounded by the number of terminals, with the few records a start makes.
        self._kept: dict[TerminalId, _Kept] = {}
        self._failed = asyncio.Event()

    async def write(
        self, terminal: Terminal, record: AuditRecord | None = None
    ) -> None:
        """Write the row now, or once the database works again."""
        if terminal.id in self._kept:
            self._keep(terminal, record)
            return
        try:
            await self._store.save(terminal, record)
        except StorageUnavailable as error:
            if not self._kept:
                _log.warning("Rows of terminals are written later. %s", error)
            self._keep(terminal, record)

    def forget(self, terminal_id: TerminalId) -> None:
        """Write nothing more of a terminal that was closed."""
        self._kept.pop(terminal_id, None)

    async def run(self) -> None:
        """Write what was kept, until cancelled."""
        while True:
            await self._failed.wait()
            await asyncio.sleep(WRITE_AGAIN_SECONDS)  # nothing tells of free space
            await self._write_kept()

    def _keep(self, terminal: Terminal, record: AuditRecord | None) -> None:
        _, records = self._kept.get(terminal.id, (terminal, ()))
        more = () if record is None else (record,)
        self._kept[terminal.id] = (terminal, (*records, *more))
        self._failed.set()

    async def _write_kept(self) -> None:
        for terminal_id in tuple(self._kept):
            if not await self._write_one(terminal_id):
                return
        if not self._kept:
            self._failed.clear()
            _log.warning("The rows of terminals are written again.")

    async def _write_one(self, terminal_id: TerminalId) -> bool:
        """Write one kept row; False if the database still fails."""
        while kept := self._kept.get(terminal_id):
            terminal, records = kept
            try:
                await self._store.save(terminal, records[0] if records else None)
            except StorageUnavailable:
                return False
            now = self._kept.get(terminal_id)
            if now == kept and len(records) <= 1:
                del self._kept[terminal_id]
            elif now is not None:  # it changed meanwhile, or has further records
                self._kept[terminal_id] = (now[0], now[1][len(records[:1]) :])
        return True
