"""A host that is killed and started again, with the gateway and real programs."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sidestage.ids import TerminalId
from sidestage.terminals.desk import TicketMode
from sidestage.terminals.model import HostEventKind, HostTerminal
from terminal_host.gateway.host_client import HostClient, open_host
from terminal_host.host.record_format import (
    RecordInvalid,
    ScreenRecord,
    decode_record,
)
from terminal_host.screen import Engine, make_engine
from tests.e2e.terminal_host import raw_host
from tests.e2e.terminal_host.conftest import (
    CONNECT_SECONDS,
    Served,
    new_terminal,
    served,
    state_dir,
)
from tests.waiting import wait_for

__all__ = ["new_terminal", "served", "state_dir"]
HOST_ARGUMENTS = ("--idle-seconds", "5", "--record-seconds", "0.1")
"""Only the time is shorter: what is tested is that, not how long it takes."""


@pytest.fixture
async def host(state_dir: Path) -> AsyncGenerator[HostClient]:
    async with open_host(state_dir, arguments=HOST_ARGUMENTS) as client:
        await client.wait_connected(CONNECT_SECONDS)
        yield client
        await client.wait_connected(CONNECT_SECONDS)
        await client.shut_down()


@dataclass
class Bench:
    """A host and clients of it."""

    state_dir: Path
    host: HostClient
    served: Served

    def record_path(self, terminal_id: TerminalId) -> Path:
        return self.state_dir / "screens" / f"{terminal_id}.screen"

    def record(self, terminal_id: TerminalId) -> ScreenRecord | None:
        """Return the record that is on the disk."""
        try:
            return decode_record(self.record_path(terminal_id).read_bytes())
        except (FileNotFoundError, RecordInvalid):
            return None

    def recorded(self, terminal_id: TerminalId) -> bytes:
        """Return the screen that is on the disk, and what is unfinished behind it."""
        record = self.record(terminal_id)
        return b"" if record is None else record.screen + record.continuation

    async def until_recorded(self, terminal_id: TerminalId, *texts: str) -> None:
        """Wait until the record shows every text."""

        def holds() -> bool:
            seen = self.recorded(terminal_id)
            screen = make_engine(300, 100)
            screen.feed(seen)
            return all(text in screen.text(1000) for text in texts)

        await asyncio.to_thread(wait_for, holds, f"a record that shows {texts}")

    async def until_end_recorded(self, terminal_id: TerminalId) -> None:
        """Wait until the record says that the program has ended."""

        def holds() -> bool:
            record = self.record(terminal_id)
            return record is not None and record.meta.ended_at is not None

        await asyncio.to_thread(wait_for, holds, "a record of the end")

    async def crash(self) -> dict[TerminalId, HostTerminal]:
        """Kill the host; return what the next one lists at first."""
        return await self._replaced(self._kill)

    async def stop(self) -> dict[TerminalId, HostTerminal]:
        """Tell the host to stop; return what the next one lists at first."""
        return await self._replaced(self.host.shut_down)

    async def _kill(self) -> None:
        raw_host.kill(raw_host.host_pid(self.state_dir))

    async def _replaced(
        self, end: Callable[[], Awaitable[None]]
    ) -> dict[TerminalId, HostTerminal]:
        watching = self.host.watch()
        async with asyncio.timeout(30):
            assert (await anext(watching)).kind is HostEventKind.CONNECTED
            await end()
            while (await anext(watching)).kind is not HostEventKind.DISCONNECTED:
                pass
            event = await anext(watching)
        assert event.kind is HostEventKind.CONNECTED
        return {terminal.terminal_id: terminal for terminal in event.terminals}

    async def seen(
        self,
        terminal: HostTerminal,
        *,
        mode: TicketMode = TicketMode.CONTROL,
        size: tuple[int, int] | None = None,
    ) -> Engine:
        """Attach, and return what the client's emulator shows after the repaint."""
        ticket = self.served.tickets.issue(terminal.terminal_id, mode)
        sizes = {} if size is None else {"cols": size[0], "rows": size[1]}
        async with self.served.open(terminal.terminal_id) as client:
            await client.send(type="attach", ticket=ticket, **sizes)
            repaint = await client.until_message("repaint")
            while len(client.repaint) < repaint["length"]:
                await client.receive()
        emulator = make_engine(repaint["cols"], repaint["rows"])
        emulator.feed(bytes(client.repaint))
        return emulator


@pytest.fixture
def bench(state_dir: Path, host: HostClient, served: Served) -> Bench:
    return Bench(state_dir, host, served)


def lines_of(emulator: Engine) -> list[str]:
    """Return the rows of the screen as text."""
    rows = emulator.styled(emulator.size()[1])
    return ["".join(run.text for run in row).rstrip() for row in rows]


def bottom_notice(emulator: Engine) -> str:
    """Return the bottom row, which must be in reverse video throughout."""
    [run] = emulator.styled(1)[0]
    assert run.inverse
    return run.text.rstrip()
