"""A cheap generator of HTTP requests: it looks at an answer's length, not into it."""

import asyncio
import re
import time
from dataclasses import dataclass
from typing import Final, cast

CONNECTIONS: Final = 8
_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Load:
    """What a server stood."""

    per_second: float
    p50_ms: float
    p99_ms: float


async def measure(
    port: int, body: bytes, *, token: str, seconds: float, warm_up_seconds: float
) -> Load:
    """Send *body* again and again on keep-alive connections."""
    request = (
        b"POST /graphql HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
        b"Authorization: Bearer %s\r\nContent-Type: application/json\r\n"
        b"Accept: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (port, token.encode(), len(body), body)
    )
    loop = asyncio.get_running_loop()
    callers = []
    for _ in range(CONNECTIONS):
        _, caller = await loop.create_connection(
            lambda: _Caller(request), "127.0.0.1", port
        )
        callers.append(caller)
    await asyncio.sleep(warm_up_seconds)
    for caller in callers:
        caller.times.clear()
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    took = time.perf_counter() - began
    times = sorted(each for caller in callers for each in caller.times)
    for caller in callers:
        caller.close()
    assert times, "the server answered nothing"
    return Load(
        len(times) / took,
        times[len(times) // 2] * 1000,
        times[int(len(times) * 0.99)] * 1000,
    )


class _Caller(asyncio.Protocol):
    """One connection: the next request follows the last answer."""

    def __init__(self, request: bytes) -> None:
        self.times: list[float] = []
        self._request = request
        self._head = bytearray()
        self._left = 0
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        # uvloop's transports do not derive from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Send the next request once an answer is whole."""
        if self._left:
            self._left -= len(data)
        else:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            assert self._head.startswith(b"HTTP/1.1 200"), bytes(self._head[:300])
            length = _LENGTH.search(self._head, 0, end)
            assert length is not None, "answers are expected to tell their length"
            self._left = int(length[1]) - (len(self._head) - end - 4)
            self._head.clear()
        if self._left == 0:
            self.times.append(time.perf_counter() - self._sent_at)
            self._send()

    def close(self) -> None:
        """Cut the connection."""
        self._transport.abort()
