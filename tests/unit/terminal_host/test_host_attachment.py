"""The gateway's end of a terminal: it reads and writes at once, or waits."""

import asyncio
import socket
from collections.abc import AsyncGenerator

import pytest

from terminal_host.gateway.host_attachment import HostAttachment
from terminal_host.host_messages import Attached

ATTACHED = Attached(
    offset=0, repaint_bytes=0, cols=80, rows=24, running=True, exit_status=None
)


@pytest.fixture
async def ends() -> AsyncGenerator[tuple[HostAttachment, socket.socket]]:
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    attachment = HostAttachment(ours, ATTACHED, b"early")
    yield attachment, theirs
    attachment.close()
    theirs.close()


async def test_what_came_early_what_is_there_and_what_comes_is_received_in_order(
    ends: tuple[HostAttachment, socket.socket],
) -> None:
    attachment, theirs = ends
    theirs.send(b"there")
    assert await attachment.receive() == b"early"
    assert await attachment.receive() == b"there"
    for text in (b"one", b"two"):
        receiving = asyncio.ensure_future(attachment.receive())
        await asyncio.wait([receiving], timeout=0)
        assert not receiving.done()
        theirs.send(text)
        assert await receiving == text


async def test_output_for_a_slow_client_keeps_the_loop_asleep(
    ends: tuple[HostAttachment, socket.socket],
) -> None:
    """A watched socket that nobody reads would wake the loop for ever."""
    attachment, theirs = ends
    await attachment.receive()
    receiving = asyncio.ensure_future(attachment.receive())
    await asyncio.wait([receiving], timeout=0)
    theirs.send(b"one")
    assert await receiving == b"one"
    theirs.send(b"two")  # and the client is busy
    loop = asyncio.get_running_loop()
    looked: asyncio.Future[None] = loop.create_future()
    loop.call_later(0.05, looked.set_result, None)
    await looked
    assert not loop.remove_reader(attachment._socket.fileno())
    assert await attachment.receive() == b"two"


@pytest.mark.parametrize("how", ["close", "hang_up"])
async def test_closing_and_hanging_up_end_a_receive_that_waits(
    ends: tuple[HostAttachment, socket.socket], how: str
) -> None:
    attachment, _ = ends
    await attachment.receive()
    receiving = asyncio.ensure_future(attachment.receive())
    await asyncio.wait([receiving], timeout=0)
    getattr(attachment, how)()
    assert await receiving == b""
    await attachment.send(b"into nothing")


async def test_input_beyond_what_the_host_takes_waits_for_it(
    ends: tuple[HostAttachment, socket.socket],
) -> None:
    attachment, theirs = ends
    data = b"x" * (1 << 20)
    sending = asyncio.ensure_future(attachment.send(data))
    loop, received = asyncio.get_running_loop(), 0
    while received < len(data):
        received += len(await loop.sock_recv(theirs, 1 << 16))
    await sending
