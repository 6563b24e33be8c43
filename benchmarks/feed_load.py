"""A cheap generator of subscribers: it counts marks in raw bytes.

A thousand connections that parsed every message would cost more than the servers do. So
most count rows by a mark that stands once in each; a few parse all, and tell delays.
"""

import asyncio
import json
import re
import struct
import time
from typing import Final, cast

from benchmarks.sample_rows import ROW_MARK

SAMPLE_EVERY: Final = 50
"""Each so manieth connection looks into what it gets."""
PATIENCE_SECONDS: Final = 30.0
CONNECT_AT_ONCE: Final = 100
_NEXT: Final = b'"type":"next"'
_TOLD_AT: Final = re.compile(rb'"name":"t([0-9.]+)"')
_MARK_TAIL: Final = max(len(ROW_MARK), len(_NEXT)) - 1
_UPGRADE: Final = (
    "GET /graphql HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
)


class Subscriber(asyncio.Protocol):
    """A connection of `graphql-transport-ws`, for less time than a ping's patience."""

    def __init__(self, port: int, token: str, *, looks: bool) -> None:
        self.rows = 0
        self.messages = 0
        self.delays_ms: list[float] = []
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.wanted_rows = 0
        self.full: asyncio.Future[float] | None = None
        self._port = port
        self._token = token
        self._looks = looks
        self._is_upgraded = False
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Upgrade to a WebSocket."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(_UPGRADE.format(port=self._port).encode())

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits for the greeting."""
        if not self.ready.done():
            self.ready.set_exception(exc or ConnectionError("closed"))

    def data_received(self, data: bytes) -> None:
        """Count what came."""
        if not self._is_upgraded:
            self._greet(data)
        elif not self.ready.done():
            if b"connection_ack" in data:
                self.ready.set_result(None)
        else:
            self._count(data)

    def _greet(self, data: bytes) -> None:
        assert data.startswith(b"HTTP/1.1 101"), data[:300]
        self._is_upgraded = True
        payload = {"token": self._token}
        self._send({"type": "connection_init", "payload": payload})

    def _count(self, data: bytes) -> None:
        seen = self._tail + data
        self.rows += seen.count(ROW_MARK)
        self.messages += seen.count(_NEXT)
        # A mark cut in two counts with what comes next, a whole one never twice.
        self._tail = _without_whole_marks(seen[-_MARK_TAIL:])
        if self._looks:
            now = time.time() * 1000
            told = _TOLD_AT.findall(data)
            self.delays_ms.extend(now - float(at) for at in told)
        if self.full and not self.full.done() and self.rows >= self.wanted_rows:
            self.full.set_result(time.perf_counter())

    def subscribe(self, document: str) -> None:
        """Open the subscription."""
        payload = {"query": document}
        self._send({"id": "1", "type": "subscribe", "payload": payload})

    def expect(self, rows: int) -> "asyncio.Future[float]":
        """Return a future of the moment when that many rows will have come."""
        self.wanted_rows = rows
        self.full = asyncio.get_running_loop().create_future()
        return self.full

    def _send(self, message: object) -> None:
        data = json.dumps(message).encode()
        # The mask of zeros leaves the bytes as they are (RFC 6455, 5.3).
        head = struct.pack("!BBHI", 0x81, 0x80 | 126, len(data), 0)
        self._transport.write(head + data)

    def close(self) -> None:
        """Cut the connection."""
        self._transport.abort()


def _without_whole_marks(tail: bytes) -> bytes:
    for mark in (ROW_MARK, _NEXT):
        at = tail.rfind(mark)
        if at >= 0:
            tail = tail[at + len(mark) :]
    return tail


async def open_subscribers(port: int, token: str, count: int) -> list[Subscriber]:
    """Connect and log in *count* subscribers; they have asked for nothing yet."""
    loop = asyncio.get_running_loop()
    subscribers: list[Subscriber] = []
    for start in range(0, count, CONNECT_AT_ONCE):
        made = [
            Subscriber(port, token, looks=number % SAMPLE_EVERY == 0)
            for number in range(start, min(start + CONNECT_AT_ONCE, count))
        ]
        for each in made:
            await loop.create_connection(lambda each=each: each, "127.0.0.1", port)  # type: ignore[misc]  # a default argument names this turn's
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*(each.ready for each in made))
        subscribers += made
    return subscribers
