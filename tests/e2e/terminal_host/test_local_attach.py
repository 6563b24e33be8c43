"""`sidestage attach` on a real terminal of its own."""

import asyncio
import os
import pty
import signal
import sys
import termios
import tty
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import pytest

from sidestage.terminals.desk import TicketMode
from sidestage.terminals.model import CreateTerminal
from terminal_host.gateway.host_client import HostClient
from terminal_host.gateway.local_attach import Outcome, attach_local
from tests.e2e.terminal_host.conftest import Served
from tests.e2e.terminal_host.waiting import until

NewTerminal = Callable[..., CreateTerminal]

DEADLINE_SECONDS = 20.0


@dataclass
class Owner:
    """The person at the keyboard: what they see and type, and their terminal."""

    master: int
    slave: int
    seen: bytes = b""

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    async def until_seen(self, text: bytes) -> None:
        loop = asyncio.get_running_loop()
        more = asyncio.Event()

        def read() -> None:
            with suppress(OSError):
                self.seen += os.read(self.master, 65536)
            more.set()

        loop.add_reader(self.master, read)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while text not in self.seen:
                    more.clear()
                    await more.wait()
        finally:
            loop.remove_reader(self.master)


@pytest.fixture
async def owner() -> AsyncGenerator[Owner]:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (30, 100))
    yield Owner(master, slave)
    os.close(master)
    os.close(slave)


@asynccontextmanager
async def attached(
    served: Served, request: CreateTerminal, owner: Owner, *, view: bool = False
) -> AsyncGenerator["asyncio.Task[Outcome]"]:
    mode = TicketMode.VIEW if view else TicketMode.CONTROL
    ticket = served.tickets.issue(request.terminal_id, mode)
    async with served.open(request.terminal_id) as client:
        yield asyncio.create_task(
            attach_local(
                client.connection,
                ticket,
                keyboard=owner.slave,
                display=owner.slave,
                view=view,
            )
        )


async def test_the_owners_terminal_shows_it_and_is_restored_after_detaching(
    host: HostClient, served: Served, new_terminal: NewTerminal, owner: Owner
) -> None:
    request = new_terminal()
    await host.create(request)
    before = termios.tcgetattr(owner.slave)
    async with attached(served, request, owner) as task:
        await owner.until_seen(b"$ ")
        assert termios.tcgetattr(owner.slave) != before
        owner.type(b"echo he''llo\r")
        await owner.until_seen(b"hello")
        await until(host, request.terminal_id, lambda t: (t.cols, t.rows) == (100, 30))
        owner.type(b"\x1dd")
        outcome = await asyncio.wait_for(task, DEADLINE_SECONDS)
    assert outcome.detached
    assert outcome.exit_status is None
    assert termios.tcgetattr(owner.slave) == before
    await owner.until_seen(b"\x1b[?1049l")  # whatever the program had set is undone
    assert [t.state for t in await host.list_terminals()] == ["RUNNING"]


async def test_the_end_of_the_program_ends_it_with_the_status(
    host: HostClient, served: Served, new_terminal: NewTerminal, owner: Owner
) -> None:
    request = new_terminal()
    await host.create(request)
    async with attached(served, request, owner) as task:
        await owner.until_seen(b"$ ")
        owner.type(b"exit 9\r")
        outcome = await asyncio.wait_for(task, DEADLINE_SECONDS)
    assert (outcome.detached, outcome.exit_status, outcome.close_code) == (
        False,
        9,
        1000,
    )


async def test_a_new_size_of_the_owners_terminal_is_taken_over(
    host: HostClient, served: Served, new_terminal: NewTerminal, owner: Owner
) -> None:
    request = new_terminal()
    await host.create(request)
    async with attached(served, request, owner) as task:
        await owner.until_seen(b"$ ")
        owner.type(b"x")
        await until(host, request.terminal_id, lambda t: t.cols == 100)
        termios.tcsetwinsize(owner.slave, (40, 120))
        os.kill(os.getpid(), signal.SIGWINCH)
        await until(host, request.terminal_id, lambda t: (t.cols, t.rows) == (120, 40))
        owner.type(b"\x1dd")
        await asyncio.wait_for(task, DEADLINE_SECONDS)


async def test_what_acts_outside_the_screen_never_reaches_the_owners_terminal(
    host: HostClient, served: Served, new_terminal: NewTerminal, owner: Owner
) -> None:
    script = (
        "import os, tty; tty.setraw(0); os.read(0, 1);"
        "os.write(1, b'a\\x1b]52;c;aGk=\\x07b\\x1b[6nc\\x1b_Gi=1\\x1b\\\\the end');"
        "os.read(0, 99)"
    )
    request = new_terminal(sys.executable, "-c", script)
    await host.create(request)
    async with attached(served, request, owner) as task:
        await owner.until_seen(b"\x1b[2J")
        owner.type(b"x")
        await owner.until_seen(b"the end")
        assert b"abcthe end" in owner.seen
        owner.type(b"\x1dd")
        await asyncio.wait_for(task, DEADLINE_SECONDS)


async def test_a_terminal_that_goes_away_ends_it(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    """Closing the window ended in an error, from restoring what was gone."""
    request = new_terminal()
    await host.create(request)
    master, slave = pty.openpty()
    tty.setraw(slave)
    async with attached(served, request, Owner(master, slave)) as task:
        await Owner(master, slave).until_seen(b"$ ")
        os.close(master)
        outcome = await asyncio.wait_for(task, DEADLINE_SECONDS)
    assert not outcome.detached
    os.close(slave)
    assert [t.state for t in await host.list_terminals()] == ["RUNNING"]


async def test_looking_on_outlives_keys_and_sizes_and_passes_none_on(
    host: HostClient, served: Served, new_terminal: NewTerminal, owner: Owner
) -> None:
    """The first key ended it: the server takes no input from a VIEW ticket."""
    request = new_terminal()
    await host.create(request)
    [terminal] = await host.list_terminals()
    async with attached(served, request, owner, view=True) as task:
        await owner.until_seen(b"$ ")
        owner.type(b"exit 7\r")
        termios.tcsetwinsize(owner.slave, (40, 120))
        os.kill(os.getpid(), signal.SIGWINCH)
        async with served.connect(terminal, device="device:b") as other:
            await other.connection.send(b"echo still he''re\r")
            await owner.until_seen(b"still here")
        [terminal] = await host.list_terminals()
        assert (terminal.state, terminal.cols) == ("RUNNING", request.cols)
        assert not task.done()
        owner.type(b"\x1dd")
        outcome = await asyncio.wait_for(task, DEADLINE_SECONDS)
    assert outcome.detached
