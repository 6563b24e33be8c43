"""A subscriber for the soak: it can stall, and comes back by its cursor."""

import asyncio
import struct
import time
from collections.abc import Callable
from typing import Any, Final, cast

import orjson

FEED: Final = """subscription($after: FeedCursor) { outsideSessionFeed(after: $after) {
  cursor kind more removedIds upserts { id state lastMessage { text } } } }"""
AGAIN_SECONDS: Final = 0.2
"""Before a lost connection is made again."""
_PING, _CLOSE, _PONG = 9, 8, 10


class Subscriber:
    """One app: its rows by id, as told over any number of connections."""

    def __init__(
        self, port: int, token: str, on_row: Callable[[dict[str, Any]], None] | None
    ) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.connections = 0
        self.resets = 0
        self._port = port
        self._token = token
        self._on_row = on_row
        self._cursor: str | None = None
        self._wire: _Wire | None = None
        self._lost = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Connect, and connect again whenever the connection is lost."""
        self._keeping = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Leave for good."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        self.cut()

    def cut(self) -> None:
        """Lose the connection, as a phone does in a tunnel."""
        if self._wire is not None:
            self._wire.transport.abort()

    def stall(self) -> None:
        """Read nothing from now on."""
        if self._wire is not None and not self._wire.transport.is_closing():
            self._wire.transport.pause_reading()

    def go_on(self) -> None:
        """Read again."""
        if self._wire is not None and not self._wire.transport.is_closing():
            self._wire.transport.resume_reading()

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._lost.clear()
            try:
                _, self._wire = await loop.create_connection(
                    lambda: _Wire(self), "127.0.0.1", self._port
                )
                self.connections += 1
                await self._lost.wait()
            except OSError:
                pass
            await asyncio.sleep(AGAIN_SECONDS)

    def _take(self, message: dict[str, Any], wire: "_Wire") -> None:
        kind = message["type"]
        if kind == "connection_ack":
            payload = {"query": FEED, "variables": {"after": self._cursor}}
            wire.send({"id": "1", "type": "subscribe", "payload": payload})
        elif kind == "ping":
            wire.send({"type": "pong"})
        elif kind == "next":
            self._apply(message["payload"]["data"]["outsideSessionFeed"])
        elif kind != "pong":
            raise AssertionError(message)

    def _apply(self, news: dict[str, Any]) -> None:
        self._cursor = news["cursor"]
        if news["kind"] == "RESET":
            self.rows.clear()
            self.resets += 1
        for row in news["upserts"]:
            self.rows[row["id"]] = row
            if self._on_row is not None and news["kind"] == "DELTA":
                self._on_row(row)
        for gone in news["removedIds"]:
            self.rows.pop(gone, None)


class _Wire(asyncio.Protocol):
    """A WebSocket's client side: unfragmented frames, answered pings."""

    def __init__(self, owner: Subscriber) -> None:
        self._owner = owner
        self._data = bytearray()
        self._is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Upgrade to a WebSocket."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(
            f"GET /graphql HTTP/1.1\r\nHost: 127.0.0.1:{self._owner._port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n".encode()
        )

    def connection_lost(self, _exc: Exception | None) -> None:
        """Let the owner connect again."""
        self._owner._lost.set()

    def data_received(self, data: bytes) -> None:
        """Read the upgrade's answer, then frame after frame."""
        self._data += data
        if not self._is_open:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            if not self._data.startswith(b"HTTP/1.1 101"):
                self.transport.abort()  # it is full: come back later
                return
            del self._data[: end + 4]
            self._is_open = True
            payload = {"token": self._owner._token}
            self.send({"type": "connection_init", "payload": payload})
        while self._take_frame():
            pass

    def _take_frame(self) -> bool:
        if len(self._data) < 2:
            return False
        length, start = self._data[1] & 0x7F, 2
        if length == 126:
            start = 4
            length = int.from_bytes(self._data[2:4], "big")
        elif length == 127:
            start = 10
            length = int.from_bytes(self._data[2:10], "big")
        if len(self._data) < start + length:
            return False
        kind = self._data[0] & 0x0F
        body = bytes(self._data[start : start + length])
        del self._data[: start + length]
        if kind == _PING:
            self._write(_PONG, body)
        elif kind == _CLOSE:
            self.transport.close()
        else:
            self._owner._take(orjson.loads(body), self)
        return True

    def send(self, message: object) -> None:
        """Send a text frame."""
        self._write(1, orjson.dumps(message))

    def _write(self, kind: int, body: bytes) -> None:
        # The mask of zeros leaves the bytes as they are (RFC 6455, 5.3).
        if len(body) < 126:
            head = struct.pack("!BBI", 0x80 | kind, 0x80 | len(body), 0)
        else:
            head = struct.pack("!BBHI", 0x80 | kind, 0x80 | 126, len(body), 0)
        self.transport.write(head + body)


def now_ms() -> float:
    """Return the time by which a change's delay is told."""
    return time.time() * 1000
