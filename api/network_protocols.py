"""The protocols of the network's listener: what silence and half requests may cost.

uvicorn waits for ever for a request's head and body, and counts no connection before
its request. Here each has a deadline, and a place in the `Doorway`.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)
from uvicorn.server import ServerState

from api.doorway import Doorway
from api.frames import EXTENSION, frame_head

HEAD_SECONDS: Final = 10.0
"""From the connection, or a later request's first byte, to the end of its head: one
packet on any network."""
BODY_SECONDS: Final = 30.0
"""From there to the end of the body: 1 MiB at a poor phone's 300 kbit/s."""
HEAD_LIMIT_BYTES: Final = 64 * 1024
"""Of a head that is not complete; the largest honest one, with its token, has 4 kB."""
PEERS_FAULTS: Final = frozenset(
    {"Invalid HTTP request received.", "Unsupported upgrade request."}
)
"""What uvicorn warns of that is the peer's affair: any web page could fill the log."""


def network_protocols(
    doorway: Doorway,
    *,
    head_seconds: float = HEAD_SECONDS,
    body_seconds: float = BODY_SECONDS,
) -> tuple[Callable[..., HttpToolsProtocol], Callable[..., WebSocketsSansIOProtocol]]:
    """Return what makes the HTTP and WebSocket protocols of a network listener."""
    return (
        partial(
            NetworkHttp,
            doorway=doorway,
            head_seconds=head_seconds,
            body_seconds=body_seconds,
        ),
        partial(NetworkWebSocket, doorway=doorway),
    )


class NetworkHttp(HttpToolsProtocol):
    """HTTP whose peer must finish its requests, or loses the connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        doorway: Doorway,
        head_seconds: float,
        body_seconds: float,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = _log_without_peers_faults()
        self._doorway = doorway
        self._head_seconds = head_seconds
        self._body_seconds = body_seconds
        self._deadline: asyncio.TimerHandle | None = None
        self._is_in_head = True
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the parent
        """Take a place, and wait for the first head."""
        super().connection_made(transport)
        self._doorway.enter(transport)
        self._expect(self._head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._expect(None)
        self._doorway.leave(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse; the first byte after an answer begins the wait for the next head."""
        super().data_received(data)
        if not self._is_in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_LIMIT_BYTES:
            self.transport.abort()
        elif self._deadline is None and not self._is_answering():
            self._expect(self._head_seconds)

    def on_headers_complete(self) -> None:
        """Wait for the body."""
        self._is_in_head = False
        super().on_headers_complete()
        self._expect(self._body_seconds)

    def on_message_complete(self) -> None:
        """Wait for nothing: the next move is the server's."""
        super().on_message_complete()
        self._is_in_head = True
        self._head_bytes = 0
        self._expect(None)
        if self._is_answering():
            self._doorway.at_work(self.transport)

    def on_response_complete(self) -> None:
        """Let the place go to others until the next request."""
        super().on_response_complete()
        if not self._is_answering():
            self._doorway.idle(self.transport)

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the WebSocket, which has deadlines of its own."""
        self._is_in_head = False
        self._expect(None)
        self._doorway.at_work(self.transport)
        super().handle_websocket_upgrade()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = (
            None if seconds is None else self.loop.call_later(seconds, self._too_late)
        )

    def _too_late(self) -> None:
        self._deadline = None
        if self.flow.read_paused:
            # It is the server that does not read: requests before this one take time.
            self._expect(self._body_seconds)
        else:
            self.transport.abort()


class NetworkWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket that gives its place back, first when it has been told to go.

    It offers the application to write ready frames (`api/frames.py`).
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        doorway: Doorway,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._doorway = doorway

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._doorway.leave(self.transport)
        super().connection_lost(exc)

    async def run_asgi(self) -> None:
        """Run the application, which finds the writer in its scope."""
        extensions: dict[str, Any] = self.scope["extensions"]
        extensions[EXTENSION] = self.write_frame
        await super().run_asgi()

    def write_frame(self, head: bytes, payload: bytes, tail: bytes) -> bool:
        """Write one text frame, or nothing (see `api.frames.FrameWriter`)."""
        is_open = self.handshake_complete and not self.close_sent
        if not (is_open and self.writable.is_set()) or self.transport.is_closing():
            return False
        length = len(head) + len(payload) + len(tail)
        self.transport.write(b"".join((frame_head(length), head, payload, tail)))
        return True

    async def send(self, message: Any) -> None:  # noqa: ANN401 uvicorn's own union
        """Send; a peer that was told to go may be cut off when its place is wanted."""
        await super().send(message)
        if self.close_sent:
            # uvicorn 0.54 forgets it after an HTTP answer in place of the upgrade, and
            # logs an error for each: a web page could fill the disk.
            self.handshake_complete = True
            self._doorway.idle(self.transport)


def _log_without_peers_faults() -> logging.Logger:
    log = logging.getLogger("uvicorn.error.network")
    log.addFilter(_is_not_peers_fault)  # the same function is added once
    return log


def _is_not_peers_fault(record: logging.LogRecord) -> bool:
    return record.msg not in PEERS_FAULTS
