"""Listens on the host's socket: who may connect, and which kind of connection it is."""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from sidestage.errors import SidestageError
from terminal_host.host.attachment import Attachment
from terminal_host.host.control import ControlPeer
from terminal_host.host.terminals import HostedTerminals
from terminal_host.host_messages import decode_attach, encode_attached, encode_error
from terminal_host.wire import (
    SPOKEN_VERSIONS,
    Frame,
    FrameDecoder,
    FrameInvalid,
    choose_version,
    encode_frame,
)

CONNECTIONS_LIMIT: Final = 512
"""Control connections and attachments together; each is a descriptor of 1024."""
HELLO_SECONDS: Final = 5.0
"""Until a connection must have said what it is."""
BACKLOG_CONNECTIONS: Final = 128
"""Connections the kernel keeps for us while the loop is busy."""
RECEIVE_LIMIT_BYTES: Final = 1 << 16
ACCEPT_RETRY_SECONDS: Final = 0.5
"""After a failed accept (no descriptors left): the connection waits in the backlog."""

_PEER = struct.Struct("3i")
_log = logging.getLogger(__name__)


class HostServer:
    """Serves connections until its block ends (`open_server`)."""

    def __init__(
        self, terminals: HostedTerminals, *, engine: str, stop: Callable[[], None]
    ) -> None:
        self._terminals = terminals
        self._engine = engine
        self._stop = stop
        self._connections: set[asyncio.Task[None]] = set()
        self.idle_changed = asyncio.Event()
        """Set whenever a connection comes or goes."""

    @property
    def connections(self) -> int:
        """Return how many clients are connected."""
        return len(self._connections)

    async def accept(self, listener: socket.socket) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:
                _log.warning("a connection could not be accepted", exc_info=True)
                await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                continue
            if len(self._connections) >= CONNECTIONS_LIMIT:
                _log.warning("a connection too many was refused")
                connection.close()
            elif not is_owner(connection):
                _log.warning("a connection of another user was refused")
                connection.close()
            else:
                connection.setblocking(False)  # noqa: FBT003  # the socket module's own way
                self._start(self._serve(connection))

    async def close(self) -> None:
        """End every connection."""
        for task in tuple(self._connections):
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._connections.add(task)
        task.add_done_callback(self._ended)
        self.idle_changed.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        self.idle_changed.set()
        if not task.cancelled() and task.exception() is not None:
            _log.error("a connection failed", exc_info=task.exception())

    async def _serve(self, connection: socket.socket) -> None:
        try:
            await self._greet(connection)
        except (FrameInvalid, ConnectionError, TimeoutError) as error:
            _log.info("a connection ended early: %s", error)
        finally:
            connection.close()

    async def _greet(self, connection: socket.socket) -> None:
        decoder = FrameDecoder()
        async with asyncio.timeout(HELLO_SECONDS):
            hello = await _receive_frame(connection, decoder)
        if hello is None:
            return
        versions = hello.get("versions")
        version = choose_version(versions if isinstance(versions, list) else [])
        if version is None:
            await _send(connection, _refuse_version())
            return
        greeting = {"version": version, "pid": os.getpid(), "engine": self._engine}
        if hello.get("role") == "control":
            await _send(connection, greeting)
            await self._control(connection, decoder)
        elif hello.get("role") == "attach":
            await self._attach(connection, decoder, hello, greeting)
        else:
            raise FrameInvalid("a hello without a known role")

    async def _control(self, connection: socket.socket, decoder: FrameDecoder) -> None:
        loop = asyncio.get_running_loop()

        async def send(data: bytes) -> None:
            await loop.sock_sendall(connection, data)

        peer = ControlPeer(self._terminals, send, stop=self._stop)
        sender = loop.create_task(peer.send_all())
        try:
            while (request := await _receive_frame(connection, decoder)) is not None:
                await peer.take(request)
        finally:
            await peer.close()
            sender.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await sender

    async def _attach(
        self,
        connection: socket.socket,
        decoder: FrameDecoder,
        hello: Frame,
        greeting: Frame,
    ) -> None:
        request = decode_attach(hello.get("attach"))
        try:
            terminal = self._terminals.get(request.terminal_id)
            attached, repaint = await terminal.open_at(request)
        except SidestageError as error:
            await _send(connection, {"error": encode_error(error)})
            return
        attachment = Attachment(
            terminal,
            connection,
            writable=request.writable,
            holder=request.holder,
        )
        terminal.add(attachment)
        answer = encode_frame({**greeting, "attached": encode_attached(attached)})
        attachment.start(answer + repaint, attached.offset, decoder.take_rest())
        try:
            await attachment.closed
        finally:
            attachment.close()


@asynccontextmanager
async def open_server(path: Path, server: HostServer) -> AsyncGenerator[HostServer]:
    """Listen at *path* until the block ends; what is there already is replaced.

    The caller holds the state folder's lock, so nobody listens at the old one.
    """
    listener = _listen(path)
    accepting = asyncio.get_running_loop().create_task(server.accept(listener))
    try:
        yield server
    finally:
        accepting.cancel()
        with suppress(asyncio.CancelledError):
            await accepting
        listener.close()
        _remove(path)
        await server.close()


def _listen(path: Path) -> socket.socket:
    _remove(path)
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)  # 0600 from the first moment on
    try:
        listener.bind(str(path))
    finally:
        os.umask(mask)
    listener.listen(BACKLOG_CONNECTIONS)
    listener.setblocking(False)  # noqa: FBT003  # the socket module's own way
    return listener


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()


async def _receive_frame(
    connection: socket.socket, decoder: FrameDecoder
) -> Frame | None:
    """Return the next frame, or None at the end; raises `FrameInvalid`."""
    loop = asyncio.get_running_loop()
    while (frame := decoder.take()) is None:
        data = await loop.sock_recv(connection, RECEIVE_LIMIT_BYTES)
        if not data:
            return None
        decoder.feed(data)
    return frame


async def _send(connection: socket.socket, message: Frame) -> None:
    await asyncio.get_running_loop().sock_sendall(connection, encode_frame(message))


def _refuse_version() -> Frame:
    message = "This host speaks other versions of the protocol."
    error = {"code": "HOST_UNAVAILABLE", "message": message}
    return {"error": error, "versions": list(SPOKEN_VERSIONS)}


def is_owner(connection: socket.socket) -> bool:
    """Tell whether the peer runs as the same user (unix(7), SO_PEERCRED)."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    _, uid, _ = _PEER.unpack(data)
    return bool(uid == os.geteuid())
