"""`sidestage serve` that stops dead or waits at a named step of an answer.

As `tests/e2e/resume/faulty_server.py`, with the steps of an answer in `STEPS`. It is no
test.
"""

import argparse
import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from api.server import serve
from api.wiring.seams import Seams
from sidestage.command.serve import announce
from sidestage.handover.store import Changes, OfferStore, Stored
from sidestage.ids import TerminalId
from sidestage.settings import read_settings
from sidestage.terminals.model import CreateTerminal, HostTerminal, TerminalHost
from sidestage.terminals.typist import Keyboard, Typist
from tests.e2e.resume.faulty_server import Faults

STEPS: Final = (
    "before-accepted",
    "accepted",
    "fork-started",
    "start-written",
    "pasted",
    "send-written",
    "entered",
    "before-continued",
)
_WRITES: Final = {
    "handover.answer": ("before-accepted", "accepted"),
    "handover.started": (None, "start-written"),
    "handover.typed": (None, "send-written"),
    "handover.continued": ("before-continued", None),
}


class FaultyOffers:
    """Passes everything on to the real store, but for the faults around a write."""

    def __init__(self, store: OfferStore, faults: Faults) -> None:
        self._store = store
        self._faults = faults

    async def load(self) -> Stored:
        """Pass on."""
        return await self._store.load()

    async def write(self, changes: Changes) -> None:
        """Write, with the faults before and after."""
        actions = [it.action for it in changes.records]
        steps = [_WRITES[it] for it in actions if it in _WRITES]
        for before, _ in steps:
            await self._at(before)
        await self._store.write(changes)
        for _, after in steps:
            await self._at(after)

    async def _at(self, step: str | None) -> None:
        if step is not None:
            await self._faults.at(step)


class FaultyKeyboard:
    """Passes everything on to the real keyboard, but for the faults after a key."""

    def __init__(self, keyboard: Keyboard, faults: Faults) -> None:
        self._keyboard = keyboard
        self._faults = faults

    async def write(self, data: bytes) -> None:
        """Type, with the fault after."""
        await self._keyboard.write(data)
        await self._faults.at("entered" if data == b"\r" else "pasted")

    async def screen(self) -> str:
        """Pass on."""
        return await self._keyboard.screen()

    async def wait_output(self, *, seconds: float) -> None:
        """Pass on."""
        await self._keyboard.wait_output(seconds=seconds)


class FaultyTypist:
    """Passes everything on to the real typist."""

    def __init__(self, typist: Typist, faults: Faults) -> None:
        self._typist = typist
        self._faults = faults

    @asynccontextmanager
    async def open_keyboard(
        self, terminal_id: TerminalId
    ) -> AsyncGenerator[FaultyKeyboard]:
        """Give a keyboard with faults."""
        async with self._typist.open_keyboard(terminal_id) as keyboard:
            yield FaultyKeyboard(keyboard, self._faults)


class FaultyHost:
    """Passes everything on to the real host, but for the fault after a start."""

    def __init__(self, host: TerminalHost, faults: Faults) -> None:
        self._host = host
        self._faults = faults

    async def create(self, request: CreateTerminal) -> HostTerminal:
        """Start a program, with the fault after."""
        told = await self._host.create(request)
        await self._faults.at("fork-started")
        return told

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


def main() -> None:
    """Serve with the faults of this home."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    settings = read_settings(vars(parser.parse_args()))
    logging.basicConfig(level=logging.WARNING)
    faults = Faults(settings.home / "faults")
    seams = Seams(
        wrap_host=lambda host: FaultyHost(host, faults),
        wrap_offers=lambda store: FaultyOffers(store, faults),
        wrap_typist=lambda typist: FaultyTypist(typist, faults),
    )
    asyncio.run(serve(settings, on_ready=announce, seams=seams))


if __name__ == "__main__":
    main()
