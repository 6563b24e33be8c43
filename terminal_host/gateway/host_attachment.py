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
    """What the host sends after *attached*: the repaint, then the output."""

    def __init__(
        self, connection: socket.socket, attached: Attached, early: bytes
    ) -> None:
        self.attached = attached
        self._socket = connection
        self._early = early

    async def receive(self) -> bytes:
        """Return the next bytes; nothing at the end.

        The end means: attach again and be told why, or the terminal has ended.
        """
        if self._early:
            early, self._early = self._early, b""
            return early
        try:
            return await asyncio.get_running_loop().sock_recv(
                self._socket, RECEIVE_LIMIT_BYTES
            )
        except ConnectionError:
            return b""

    async def send(self, data: bytes) -> None:
        """Send input, waiting while the program reads none; an ended one takes none."""
        try:
            await asyncio.get_running_loop().sock_sendall(self._socket, data)
        except (ConnectionError, BrokenPipeError):
            return  # `receive` tells the end

    def hang_up(self) -> None:
        """Make `receive` tell the end now: what is still on its way is not wanted."""
        with suppress(OSError):  # the host was faster
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the terminal. Closing twice is fine."""
        self._socket.close()


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
