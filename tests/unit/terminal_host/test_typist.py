"""The server's own keyboard at a terminal, over a socket to a host."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from sidestage.errors import TerminalNotFound
from sidestage.ids import TerminalId
from sidestage.terminals.typist import Keyboard, Typist
from terminal_host.gateway.host_attachment import HostAttachment
from terminal_host.gateway.typist import HostTypist
from terminal_host.host_messages import Attached, AttachRequest

TERMINAL = TerminalId("terminal:1")


@dataclass
class OneTerminal:
    """A host with one terminal, whose other end the test holds."""

    requests: list[AttachRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.far, self._near = socket.socketpair()
        self.far.settimeout(5)
        self._near.setblocking(False)

    def close(self) -> None:
        self.far.close()
        self._near.close()

    async def attach(self, request: AttachRequest) -> HostAttachment:
        if request.terminal_id != TERMINAL:
            raise TerminalNotFound("no such terminal")
        self.requests.append(request)
        attached = Attached(
            offset=0, repaint_bytes=0, cols=80, rows=24, running=True, exit_status=None
        )
        return HostAttachment(self._near, attached, b"")

    async def screen_text(self, terminal_id: TerminalId, *, lines: int) -> str:
        return f"{terminal_id} {lines}"


@pytest.fixture
def host() -> Iterator[OneTerminal]:
    host = OneTerminal()
    yield host
    host.close()


async def test_keys_reach_the_terminal_and_its_screen_is_read(
    host: OneTerminal,
) -> None:
    typist: Typist = HostTypist(host)
    async with typist.open_keyboard(TERMINAL) as opened:
        keyboard: Keyboard = opened
        await keyboard.write(b"hello\r")
        assert host.far.recv(100) == b"hello\r"
        assert await keyboard.screen() == "terminal:1 500"
    assert host.far.recv(100) == b""
    [request] = host.requests
    assert request.writable
    assert (request.cols, request.rows, request.after) == (None, None, None)


async def test_output_wakes_whoever_waits_for_it(host: OneTerminal) -> None:
    async with HostTypist(host).open_keyboard(TERMINAL) as keyboard:
        await keyboard.wait_output(seconds=0.01)
        waiting = asyncio.create_task(keyboard.wait_output(seconds=60))
        host.far.sendall(b"x")
        async with asyncio.timeout(5):
            await waiting


async def test_a_terminal_that_is_not_there_is_said(host: OneTerminal) -> None:
    with pytest.raises(TerminalNotFound):
        async with HostTypist(host).open_keyboard(TerminalId("terminal:2")):
            raise AssertionError("there is no keyboard")
