"""Subscriptions over plain HTTP, for networks that break WebSockets.

SSE is graphql-sse's "distinct connections" mode: `next` events, then `complete`
(https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md). Multipart is what
Apollo's clients speak: parts of `multipart/mixed` that hold `{"payload": …}`, `{}` as
heartbeat (https://www.apollographql.com/docs/graphos/routing/operations/subscriptions/
multipart-protocol).
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, Protocol

import orjson

from api.connections import Connections
from api.errors import shown_error
from api.guard import Receive, Send
from api.limits import Limits
from sidestage.devices.model import Principal
from sidestage.errors import Unauthenticated

log = logging.getLogger(__name__)

_REVOKED: Final = orjson.dumps(
    {
        "errors": [
            shown_error(
                Unauthenticated("The token is not good any more. Log in again.")
            )
        ]
    }
)


class Framing(Protocol):
    """How payloads are written into a response's body."""

    content_type: str

    def next(self, payload: bytes) -> bytes:
        """Return *payload* as one event."""

    def beat(self) -> bytes:
        """Return what keeps proxies from closing the response."""

    def complete(self) -> bytes:
        """Return what tells that nothing follows."""


class Sse:
    """`text/event-stream`."""

    content_type = "text/event-stream; charset=utf-8"

    def next(self, payload: bytes) -> bytes:
        """Return *payload* as a `next` event; JSON of ours holds no line feed."""
        return b"event: next\ndata: " + payload + b"\n\n"

    def beat(self) -> bytes:
        """Return a comment."""
        return b":\n\n"

    def complete(self) -> bytes:
        """Return the `complete` event; an empty `data` makes browsers dispatch it."""
        return b"event: complete\ndata:\n\n"


class Multipart:
    """`multipart/mixed` with Apollo's subscription parts."""

    content_type = 'multipart/mixed; boundary="-"; subscriptionSpec=1.0'
    _part = b"\r\n---\r\nContent-Type: application/json\r\n\r\n"

    def next(self, payload: bytes) -> bytes:
        """Return *payload* as a part."""
        return self._part + b'{"payload":' + payload + b"}"

    def beat(self) -> bytes:
        """Return an empty part."""
        return self._part + b"{}"

    def complete(self) -> bytes:
        """Return the closing boundary."""
        return b"\r\n-----\r\n"


class EventStream:
    """One streamed response; ends when either side ends it or the token is revoked."""

    def __init__(
        self, framing: Framing, connections: Connections, limits: Limits
    ) -> None:
        self._framing = framing
        self._connections = connections
        self._limits = limits
        self._farewell = b""
        self._ended = asyncio.Event()

    def revoke(self) -> None:
        """End it, with an error that says so: a stream has no close code."""
        self._farewell = self._framing.next(_REVOKED) + self._framing.complete()
        self._ended.set()

    def restart(self) -> None:
        """End it without `complete`, so that the client comes back."""
        self._ended.set()

    async def serve(
        self,
        payloads: AsyncIterator[bytes],
        principal: Principal,
        receive: Receive,
        send: Send,
    ) -> None:
        """Send *payloads* until they, the client or the server end it.

        Raises `RateLimited` before anything was sent.
        """
        with (
            self._connections.opened(self, principal.address),
            self._connections.of_token(self, principal.token_id),
        ):
            await self._run(payloads, receive, send)

    async def _run(
        self, payloads: AsyncIterator[bytes], receive: Receive, send: Send
    ) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [
                    (b"content-type", self._framing.content_type.encode()),
                    (b"x-accel-buffering", b"no"),
                ],
            }
        )
        pump = asyncio.create_task(self._pump(payloads, send))
        watchers = {
            pump,
            asyncio.create_task(_until_disconnected(receive)),
            asyncio.create_task(self._ended.wait()),
        }
        try:
            await asyncio.wait(watchers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in watchers:
                task.cancel()
            await asyncio.gather(*watchers, return_exceptions=True)
        if not pump.cancelled() and pump.exception():
            log.error("A stream failed", exc_info=pump.exception())
        await self._finish(send)

    async def _pump(self, payloads: AsyncIterator[bytes], send: Send) -> None:
        """Send each payload, and a beat whenever there was none for a while."""
        waiting: asyncio.Future[bytes] | None = None
        try:
            while True:
                waiting = waiting or asyncio.ensure_future(_next(payloads))
                done, _ = await asyncio.wait(
                    {waiting}, timeout=self._limits.ping_seconds
                )
                if not done:
                    await self._send(send, self._framing.beat())
                    continue
                try:
                    payload = waiting.result()
                except _End:
                    self._farewell = self._framing.complete()
                    return
                waiting = None
                await self._send(send, self._framing.next(payload))
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    async def _send(self, send: Send, data: bytes) -> None:
        # A reader that takes nothing for so long has stopped reading.
        async with asyncio.timeout(self._limits.send_seconds):
            await send({"type": "http.response.body", "body": data, "more_body": True})

    async def _finish(self, send: Send) -> None:
        with suppress(TimeoutError, OSError, RuntimeError):
            async with asyncio.timeout(self._limits.close_seconds):
                await send({"type": "http.response.body", "body": self._farewell})


async def _next(payloads: AsyncIterator[bytes]) -> bytes:
    try:
        return await anext(payloads)
    except StopAsyncIteration as end:
        raise _End from end


class _End(Exception):
    """The payloads are over: a future cannot hold `StopAsyncIteration`."""


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
