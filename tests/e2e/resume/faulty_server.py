"""`sidestage serve` that stops dead or waits at a named step of a start.

    python -P faulty_server.py --port 0

At each step it looks into `<home>/faults`: a file `<step>.kill` makes it remove that
file and kill itself; a FIFO `<step>.hold` makes it wait until someone opens the FIFO
for writing and closes it again. The steps are `STEPS`. It is no test.
"""

import argparse
import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from api.server import serve
from api.wiring.seams import Seams
from sidestage.audit import AuditRecord
from sidestage.command.serve import announce
from sidestage.settings import read_settings
from sidestage.terminals.model import (
    CreateTerminal,
    HostEvent,
    HostTerminal,
    Terminal,
    TerminalHost,
)
from sidestage.terminals.store import StartKey, TerminalStore

STEPS: Final = (
    "before-stored",
    "stored",
    "host-called",
    "host-started",
    "row-written",
)


class Faults:
    """The faults that are switched on now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def is_killing(self, step: str) -> bool:
        """Whether the server shall die at *step*."""
        return (self._folder / f"{step}.kill").exists()

    def kill(self, step: str) -> None:
        """Die at *step*, and not again."""
        (self._folder / f"{step}.kill").unlink()
        os.kill(os.getpid(), signal.SIGKILL)

    async def at(self, step: str) -> None:
        """Let the fault of *step* happen, if there is one."""
        if self.is_killing(step):
            self.kill(step)
        hold = self._folder / f"{step}.hold"
        if hold.is_fifo():
            await asyncio.to_thread(hold.read_bytes)


class FaultyHost:
    """Passes everything on to the real host, but for the faults of `create`."""

    def __init__(self, host: TerminalHost, faults: Faults) -> None:
        self._host = host
        self._faults = faults

    async def create(self, request: CreateTerminal) -> HostTerminal:
        """Start a program, with the faults before and after."""
        await self._faults.at("stored")
        asked = asyncio.ensure_future(self._host.create(request))
        if self._faults.is_killing("host-called"):
            # The host reads in order: what it answers now it read after our request.
            await asyncio.ensure_future(self._host.list_terminals())
            self._faults.kill("host-called")
        told = await asked
        await self._faults.at("host-started")
        return told

    def watch(self) -> AsyncIterator[HostEvent]:
        """Pass on."""
        return self._host.watch()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


class FaultyStore:
    """Passes everything on to the real store, but for the faults around a start."""

    def __init__(self, store: TerminalStore, faults: Faults) -> None:
        self._store = store
        self._faults = faults

    async def begin(
        self, terminal: Terminal, key: StartKey | None, record: AuditRecord
    ) -> None:
        """Write the row of a start, with the fault before."""
        await self._faults.at("before-stored")
        await self._store.begin(terminal, key, record)

    async def save(self, terminal: Terminal, record: AuditRecord | None = None) -> None:
        """Write the row of a start that is done, with the fault after."""
        await self._store.save(terminal, record)
        await self._faults.at("row-written")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def main() -> None:
    """Serve with the faults of this home."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    settings = read_settings(vars(parser.parse_args()))
    logging.basicConfig(level=logging.WARNING)
    faults = Faults(settings.home / "faults")
    seams = Seams(
        wrap_host=lambda host: FaultyHost(host, faults),
        wrap_store=lambda store: FaultyStore(store, faults),
    )
    asyncio.run(serve(settings, on_ready=announce, seams=seams))


if __name__ == "__main__":
    main()
