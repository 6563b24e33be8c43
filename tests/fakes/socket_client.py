"""A client of the ASGI application's WebSocket and streams, without a network."""

import asyncio
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson

from api.frames import EXTENSION
from api.guard import App
from tests.fakes.parts import PORT
from tests.fakes.tokens import ADMIN

DEADLINE_SECONDS = 5.0
offers_frames = False
"""Whether new sockets offer to write ready frames, as the network's server does."""
Message = MutableMapping[str, Any]


class SocketClient:
    """Speaks `graphql-transport-ws` with the application in this process."""

    def __init__(self, app: App, scope: dict[str, Any]) -> None:
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._outbox: asyncio.Queue[Message] = asyncio.Queue()
        self.reads = asyncio.Event()
        """Cleared: the client reads nothing, so the server's sends wait."""
        self.reads.set()
        self._outbox.put_nowait({"type": "websocket.connect"})
        self.framed = 0
        """Messages that came as ready frames."""
        if offers_frames:
            scope["extensions"] = {**scope["extensions"], EXTENSION: self._write}
        self.task = asyncio.ensure_future(app(scope, self._outbox.get, self._take))

    async def _take(self, message: Message) -> None:
        await self.reads.wait()
        self._inbox.put_nowait(message)

    def _write(self, head: bytes, payload: bytes, tail: bytes) -> bool:
        if not self.reads.is_set():
            return False
        text = (head + payload + tail).decode()
        self._inbox.put_nowait({"type": "websocket.send", "text": text})
        self.framed += 1
        return True

    async def next_event(self) -> Message:
        """Return the next ASGI event from the server."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self._inbox.get()

    async def receive(self) -> dict[str, Any]:
        """Return the next message but pings; fail if the socket closes instead."""
        while True:
            event = await self.next_event()
            assert event["type"] == "websocket.send", event
            message: dict[str, Any] = orjson.loads(event["text"])
            if message["type"] != "ping":
                return message

    async def closed(self) -> int:
        """Return the close code, whatever comes before it."""
        while True:
            event = await self.next_event()
            if event["type"] == "websocket.close":
                return int(event["code"])

    def send(self, message: object) -> None:
        """Send a message, or a string as it is."""
        text = message if isinstance(message, str) else orjson.dumps(message).decode()
        self._outbox.put_nowait({"type": "websocket.receive", "text": text})

    def send_bytes(self, data: bytes) -> None:
        """Send a binary frame."""
        self._outbox.put_nowait({"type": "websocket.receive", "bytes": data})

    def hang_up(self) -> None:
        """End the connection from this side."""
        self._outbox.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def initialise(self, token: object = ADMIN, **payload: Any) -> None:
        """Show a token and wait for the acknowledgement."""
        payload = {"token": token, **payload}
        self.send({"type": "connection_init", "payload": payload})
        assert (await self.receive())["type"] == "connection_ack"

    def subscribe(self, id_: str, query: str, **variables: Any) -> None:
        """Start an operation."""
        payload = {"query": query, "variables": variables}
        self.send({"id": id_, "type": "subscribe", "payload": payload})

    async def next_payload(self, id_: str) -> dict[str, Any]:
        """Return the payload of the next message, which is a `next` for *id_*."""
        message = await self.receive()
        assert (message["type"], message["id"]) == ("next", id_), message
        payload: dict[str, Any] = message["payload"]
        return payload

    async def next_feed(self, id_: str, field: str) -> dict[str, Any]:
        """Return the next message of the feed *field*, but heartbeats."""
        while True:
            payload = await self.next_payload(id_)
            assert "errors" not in payload, payload["errors"]
            message: dict[str, Any] = payload["data"][field]
            if message.get("kind") != "HEARTBEAT":
                return message

    def waiting(self) -> int:
        """Return how many events lie unread."""
        return self._inbox.qsize()


@asynccontextmanager
async def open_socket(
    app: App,
    *,
    subprotocols: tuple[str, ...] = ("graphql-transport-ws",),
    headers: tuple[tuple[bytes, bytes], ...] = (),
    address: str = "10.0.0.1",
    path: str = "/graphql",
    extensions: dict[str, Any] | None = None,
) -> AsyncGenerator[SocketClient]:
    """Connect, and make sure at the end that nothing of the connection still runs."""
    host = (b"host", f"127.0.0.1:{PORT}".encode())
    scope = {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "scheme": "ws",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [host, *headers],
        "client": (address, 1234),
        "server": ("127.0.0.1", PORT),
        "subprotocols": list(subprotocols),
        "extensions": extensions or {},
        "state": {},
    }
    client = SocketClient(app, scope)
    try:
        yield client
    finally:
        client.reads.set()
        client.hang_up()
        with suppress(TimeoutError):
            async with asyncio.timeout(DEADLINE_SECONDS):
                await client.task
        assert client.task.done(), "the connection did not end"


@asynccontextmanager
async def connect(
    app: App, token: object = ADMIN, **options: Any
) -> AsyncGenerator[SocketClient]:
    """Connect and show *token*."""
    async with open_socket(app, **options) as client:
        accepted = await client.next_event()
        assert accepted["type"] == "websocket.accept"
        await client.initialise(token)
        yield client


@asynccontextmanager
async def running(app: App) -> AsyncGenerator[None]:
    """Run the application's lifespan around the block."""
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    outbox: asyncio.Queue[Message] = asyncio.Queue()
    scope: dict[str, Any] = {
        "type": "lifespan",
        "asgi": {"version": "3.0"},
        "state": {},
    }
    task = asyncio.ensure_future(app(scope, inbox.get, outbox.put))
    inbox.put_nowait({"type": "lifespan.startup"})
    assert (await outbox.get())["type"] == "lifespan.startup.complete"
    try:
        yield
    finally:
        inbox.put_nowait({"type": "lifespan.shutdown"})
        await outbox.get()
        await task


@asynccontextmanager
async def open_stream(
    app: App,
    query: str,
    *,
    accept: str,
    token: str = ADMIN,
    variables: dict[str, Any] | None = None,
) -> AsyncGenerator["StreamClient"]:
    """Send an operation by POST and read the answer piece by piece."""
    client = StreamClient(app, query, accept, token, variables)
    try:
        yield client
    finally:
        client.hang_up()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await client.task


class StreamClient:
    """One streamed response."""

    def __init__(
        self,
        app: App,
        query: str,
        accept: str,
        token: str,
        variables: dict[str, Any] | None,
    ) -> None:
        body = orjson.dumps({"query": query, "variables": variables})
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._outbox: asyncio.Queue[Message] = asyncio.Queue()
        self._outbox.put_nowait({"type": "http.request", "body": body})
        headers = {
            "host": f"127.0.0.1:{PORT}",
            "content-type": "application/json",
            "accept": accept,
            "authorization": f"Bearer {token}",
        }
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/graphql",
            "raw_path": b"/graphql",
            "root_path": "",
            "query_string": b"",
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
            "client": ("10.0.0.1", 1234),
            "server": ("127.0.0.1", PORT),
            "extensions": {},
            "state": {},
        }
        self._rest = b""
        self.is_over = False
        self.task = asyncio.ensure_future(app(scope, self._outbox.get, self._inbox.put))

    def hang_up(self) -> None:
        """End the connection from this side."""
        self._outbox.put_nowait({"type": "http.disconnect"})

    async def head(self) -> Message:
        """Return the response's start."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self._inbox.get()

    async def until(self, separator: bytes) -> bytes:
        """Return the body up to and with *separator*, or its end."""
        while separator not in self._rest and not self.is_over:
            async with asyncio.timeout(DEADLINE_SECONDS):
                message = await self._inbox.get()
            self._rest += message.get("body", b"")
            self.is_over = not message.get("more_body", False)
        piece, found, self._rest = self._rest.partition(separator)
        return piece + found
