"""One client's end of a terminal, as the gateway holds it: a raw socket to the host."""

import asyncio
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from sidestage.errors import HostUnavailable
from terminal_host.host_messages import (
    Attached,
    AttachRequest,
    decode_attached,
    decode_error,
    encode_attach,
)
from terminal_host.wire import (
    SPOKEN_VERSIONS,
    Frame,
    FrameDecoder,
    FrameInvalid,
    encode_frame,
)

ATTACH_SECONDS: Final = 10.0
"""The host repaints within 0.3 s; it waits for its engine's backlog before."""
RECEIVE_LIMIT_BYTES: Final = 1 << 18
"""Taken from the kernel in one call; it becomes one WebSocket message."""


class HostAttachment:
    """What the host sends after *attached*: the repaint, then the output.

    It reads and writes at once where it can. Each wait of the loop's own `sock_recv`
    enters and leaves the kernel's list of watched sockets, which a key's echo feels.
    """

    def __init__(
        self, connection: socket.socket, attached: Attached, early: bytes
    ) -> None:
        self.attached = attached
        self._socket = connection
        self._early = early
        self._loop = asyncio.get_running_loop()
        self._watched = False
        self._readable: asyncio.Future[None] | None = None

    async def receive(self) -> bytes:
        """Return the next bytes; nothing at the end. One caller at a time.

        The end means: attach again and be told why, or the terminal has ended.
        """
        if self._early:
            early, self._early = self._early, b""
            return early
        while True:
            try:
                return self._socket.recv(RECEIVE_LIMIT_BYTES)
            except BlockingIOError:
                await self._wait_readable()
            except OSError:  # the host is gone, or this end was closed
                return b""

    async def send(self, data: bytes) -> None:
        """Send input, waiting while the program reads none; an ended one takes none."""
        try:
            count = self._socket.send(data)
        except BlockingIOError:
            count = 0
        except OSError:
            return  # `receive` tells the end
        if count < len(data):
            with suppress(OSError):
                await self._loop.sock_sendall(self._socket, data[count:])

    def hang_up(self) -> None:
        """Make `receive` tell the end now: what is still on its way is not wanted."""
        with suppress(OSError):  # the host was faster
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the terminal. Closing twice is fine."""
        self._unwatch()
        self._wake()
        self._socket.close()

    async def _wait_readable(self) -> None:
        self._readable = self._loop.create_future()
        if not self._watched:
            self._watched = True
            self._loop.add_reader(self._socket.fileno(), self._on_readable)
        try:
            await self._readable
        finally:
            self._readable = None

    def _on_readable(self) -> None:
        if not self._wake():
            self._unwatch()  # the client is slow: it would be told again and again

    def _wake(self) -> bool:
        """Let `receive` look again; False if it does not wait."""
        if self._readable is None or self._readable.done():
            return False
        self._readable.set_result(None)
        return True

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._loop.remove_reader(self._socket.fileno())


async def open_attachment(path: Path, request: AttachRequest) -> HostAttachment:
    """Attach at the host that listens at *path*.

    Raises what the host refuses with, and `HostUnavailable`.
    """
    connection = socket.socket(socket.AF_UNIX)
    connection.setblocking(False)  # noqa: FBT003  # the socket module's own way
    try:
        async with asyncio.timeout(ATTACH_SECONDS):
            return await _greet(connection, path, request)
    except (TimeoutError, OSError, FrameInvalid) as error:
        connection.close()
        raise HostUnavailable("The terminal host does not answer.") from error
    except BaseException:
        # Cancelled, or refused by the host: either way nobody else closes it.
        connection.close()
        raise


async def _greet(
    connection: socket.socket, path: Path, request: AttachRequest
) -> HostAttachment:
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, str(path))
    hello: Frame = {
        "versions": list(SPOKEN_VERSIONS),
        "role": "attach",
        "attach": encode_attach(request),
    }
    await loop.sock_sendall(connection, encode_frame(hello))
    decoder = FrameDecoder()
    while (answer := decoder.take()) is None:
        data = await loop.sock_recv(connection, RECEIVE_LIMIT_BYTES)
        if not data:
            raise FrameInvalid("the host closed the connection")
        decoder.feed(data)
    if "error" in answer:
        raise decode_error(answer["error"])
    attached = decode_attached(answer.get("attached"))
    return HostAttachment(connection, attached, decoder.take_rest())
