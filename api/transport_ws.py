"""GraphQL over WebSocket: the subprotocol `graphql-transport-ws`, and no other.

https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverWebSocket.md
`api/closing.py` has its close codes.
"""

import asyncio
import logging
from collections.abc import MutableMapping
from contextlib import ExitStack, aclosing, suppress
from functools import partial
from typing import Any, Final

import orjson

from api.broadcast import Broadcast
from api.closing import (
    BAD_MESSAGE,
    BAD_SUBPROTOCOL,
    ID_IN_USE,
    INIT_TIMEOUT,
    INTERNAL,
    LOG_IN_AGAIN,
    RESTART,
    SECOND_INIT,
    TOO_LONG,
    TRY_LATER,
    Close,
)
from api.connections import Connections
from api.errors import shown_error
from api.frames import find_writer
from api.guard import LOCAL_PRINCIPAL, Receive, Scope, Send
from api.limits import Limits
from api.operations import Admitted, Operations, Refused, is_subscription
from api.requests import authenticate, check_client, parse_request
from resolvers.parts import Parts
from sidestage.devices.model import Principal
from sidestage.errors import (
    ClientTooOld,
    InvalidInput,
    RateLimited,
    SubscriptionLimitReached,
    Unauthenticated,
)

log = logging.getLogger(__name__)

SUBPROTOCOL: Final = "graphql-transport-ws"
ID_LIMIT_CHARACTERS: Final = 128
"""Of an operation; clients send UUIDs or small numbers."""

_PONG: Final = '{"type":"pong"}'
_PING: Final = '{"type":"ping"}'


class TransportWs:
    """The ASGI endpoint: one `Socket` a connection."""

    def __init__(
        self,
        parts: Parts,
        operations: Operations,
        broadcast: Broadcast,
        connections: Connections,
        limits: Limits,
    ) -> None:
        self.parts = parts
        self.operations = operations
        self.broadcast = broadcast
        self.connections = connections
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket until it ends."""
        await Socket(self, scope, receive, send).serve()


class Socket:
    """One WebSocket connection and the operations that run on it."""

    def __init__(
        self, server: TransportWs, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._server = server
        self._limits = server.limits
        self._scope = scope
        self._receive = receive
        self._send = send
        self._principal: Principal | None = None
        self._is_initialised = False
        self._operations: dict[str, asyncio.Task[None]] = {}
        self._subscriptions: set[str] = set()
        self._room = asyncio.Semaphore(self._limits.operations)
        self._ending: asyncio.Future[Close] = asyncio.get_running_loop().create_future()
        self._init = asyncio.Event()
        self._clock = asyncio.get_running_loop().time
        self._heard_at = self._clock()
        self._sending = 0
        self._progress_at = 0.0
        self._tied = ExitStack()
        self._write = find_writer(scope)

    def revoke(self) -> None:
        """End it: its token is not good any more."""
        self.end(Close(LOG_IN_AGAIN, "Unauthorized"))

    def restart(self) -> None:
        """End it: the server stops, and the client should come back."""
        self.end(Close(RESTART, "Service restart"))

    def turn_away(self) -> None:
        """End it: others came since, and it still has not said who it is."""
        self.end(Close(TRY_LATER, "Try again later"))

    def end(self, close: Close) -> None:
        """End the connection with that code; the first one to say so wins."""
        if not self._ending.done():
            self._ending.set_result(close)

    async def serve(self) -> None:
        """Serve until either side ends it; then nothing of it runs any more."""
        await self._receive()  # websocket.connect
        if SUBPROTOCOL not in self._scope.get("subprotocols", ()):
            await self._send({"type": "websocket.accept"})
            await self._say_goodbye(
                Close(BAD_SUBPROTOCOL, "Subprotocol not acceptable")
            )
            return
        await self._send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
        client = self._scope.get("client")
        try:
            with self._server.connections.opened(self, client[0] if client else None):
                await self._run()
        except RateLimited:
            await self._say_goodbye(Close(TRY_LATER, "Try again later"))

    async def _run(self) -> None:
        tasks = {
            asyncio.create_task(self._read()),
            asyncio.create_task(self._keep_alive()),
            asyncio.create_task(self._watch_peer()),
            asyncio.create_task(self._await_init()),
        }
        try:
            await asyncio.wait({self._ending})
        finally:
            tasks.update(self._operations.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._tied.close()
        close = self._ending.result()
        if close.code:
            await self._say_goodbye(close)

    async def _say_goodbye(self, close: Close) -> None:
        # A peer that reads nothing would never take the frame.
        with suppress(TimeoutError, OSError, RuntimeError):
            async with asyncio.timeout(self._limits.close_seconds):
                await self._send(
                    {
                        "type": "websocket.close",
                        "code": close.code,
                        "reason": close.reason,
                    }
                )

    async def _await_init(self) -> None:
        try:
            with self._server.connections.uninitialised(self):
                async with asyncio.timeout(self._limits.init_seconds):
                    await self._init.wait()
        except TimeoutError:
            self._server.connections.dropped["no_token"] += 1
            self.end(Close(INIT_TIMEOUT, "Connection initialisation timeout"))

    async def _keep_alive(self) -> None:
        """Ping the peer, so that a live one has something to answer."""
        while True:
            await asyncio.sleep(self._limits.ping_seconds)
            if self._is_initialised and not self._sending:
                await self._send_text(_PING)

    async def _watch_peer(self) -> None:
        """End the connection once the peer has neither spoken nor read for too long."""
        # Not at the pings: one may wait in a full buffer, and comes up to 20 s late.
        while True:
            now = self._clock()
            heard_left = self._heard_at + self._limits.silence_seconds - now
            # A sending that begins meanwhile has its whole time from then on.
            begun = self._progress_at if self._sending else now
            read_left = begun + self._limits.send_seconds - now
            if min(heard_left, read_left) <= 0:
                break
            await asyncio.sleep(min(heard_left, read_left))
        self._server.connections.dropped["silent"] += 1
        verb = "read" if read_left <= 0 else "heard"
        self.end(Close(TRY_LATER, f"Nothing was {verb}"))

    async def _send_text(self, text: str) -> None:
        """Send a frame; waits while the peer's buffers are full."""
        if not self._sending:
            self._progress_at = self._clock()
        self._sending += 1
        try:
            await self._send({"type": "websocket.send", "text": text})
        except (OSError, RuntimeError):
            # The peer is gone: the server says so by either.
            self.end(Close(0, ""))
        finally:
            self._sending -= 1
            self._progress_at = self._clock()

    async def _read(self) -> None:
        try:
            while True:
                await self._take(self._parse(await self._hear()))
        except Close as close:
            self.end(close)
        except Exception:  # a task's top: without it the socket would hang, unread
            log.exception("A WebSocket's reader failed")
            self.end(Close(INTERNAL, "Internal server error"))

    async def _hear(self) -> MutableMapping[str, Any]:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise Close(0, "")
        self._heard_at = self._clock()
        return message

    def _parse(self, message: MutableMapping[str, Any]) -> dict[str, Any]:
        text = message.get("text")
        if text is None:
            raise Close(BAD_MESSAGE, "Text frames only")
        if len(text) > self._limits.body_bytes:
            raise Close(TOO_LONG, "Message too long")
        try:
            value = orjson.loads(text)
        except (orjson.JSONDecodeError, UnicodeEncodeError) as error:
            raise Close(BAD_MESSAGE, "Invalid JSON") from error
        if not isinstance(value, dict):
            raise Close(BAD_MESSAGE, "A message is an object")
        return value

    async def _take(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if self._principal and not self._is_current(self._principal):
            raise Close(LOG_IN_AGAIN, "Unauthorized")
        if kind == "connection_init":
            await self._initialise(message.get("payload"))
        elif kind == "ping":
            await self._send_text(_PONG)
        elif kind == "subscribe":
            await self._subscribe(message)
        elif kind == "complete":
            self._complete(message.get("id"))
        elif kind != "pong":
            raise Close(BAD_MESSAGE, "Unknown message type")

    def _is_current(self, principal: Principal) -> bool:
        if principal.token_id is None:
            return True
        return self._server.parts.authenticator.is_current(principal)

    async def _initialise(self, payload: object) -> None:
        if self._is_initialised:
            raise Close(SECOND_INIT, "Too many initialisation requests")
        self._is_initialised = True
        values = payload if isinstance(payload, dict) else {}
        self._principal = await self._log_in(values)
        self._tied.enter_context(
            self._server.connections.of_token(self, self._principal.token_id)
        )
        # It may have been revoked between the look-up and the tie.
        if not self._is_current(self._principal):
            raise Close(LOG_IN_AGAIN, "Unauthorized")
        self._init.set()
        await self._send_text('{"type":"connection_ack"}')

    async def _log_in(self, values: dict[str, Any]) -> Principal:
        local = self._scope.get("extensions", {}).get(LOCAL_PRINCIPAL)
        if isinstance(local, Principal):
            return local
        token, client = values.get("token"), values.get("client")
        parts, peer = self._server.parts, self._scope.get("client")
        try:
            check_client(
                client if isinstance(client, str) else None, parts.server.oldest_client
            )
            # An empty token is refused; none would be the anonymous caller, who has
            # nothing to follow.
            return await authenticate(
                parts.authenticator,
                token if isinstance(token, str) else "",
                address=peer[0] if peer else None,
            )
        except ClientTooOld as error:
            raise Close(BAD_MESSAGE, error.code.value) from error
        except RateLimited as error:
            raise Close(TRY_LATER, error.code.value) from error
        except Unauthenticated as error:
            raise Close(LOG_IN_AGAIN, "Unauthorized") from error

    async def _subscribe(self, message: dict[str, Any]) -> None:
        if self._principal is None:
            raise Close(LOG_IN_AGAIN, "Unauthorized")
        id_ = message.get("id")
        if not isinstance(id_, str) or not 0 < len(id_) <= ID_LIMIT_CHARACTERS:
            raise Close(BAD_MESSAGE, "An operation needs an id")
        if id_ in self._operations:
            raise Close(ID_IN_USE, f"Subscriber for {id_} already exists"[:100])
        try:
            admitted = self._admit(message.get("payload"), self._principal)
        except Refused as refused:
            await self._send_errors(id_, refused.answer.errors)
            return
        # A query waits for room; reading goes on once one of them is done.
        await self._room.acquire()
        task = asyncio.create_task(self._operate(id_, admitted))
        self._operations[id_] = task
        task.add_done_callback(lambda _: self._forget(id_, task))

    def _admit(self, payload: object, principal: Principal) -> Admitted:
        try:
            request = parse_request(payload)
        except InvalidInput as error:
            raise Close(BAD_MESSAGE, str(error)) from error
        return self._server.operations.admit(request, principal)

    def _forget(self, id_: str, task: asyncio.Task[None]) -> None:
        self._room.release()
        self._subscriptions.discard(id_)
        if self._operations.get(id_) is task:
            del self._operations[id_]

    def _complete(self, id_: object) -> None:
        task = self._operations.pop(id_, None) if isinstance(id_, str) else None
        if task:
            task.cancel()

    async def _operate(self, id_: str, admitted: Admitted) -> None:
        try:
            if is_subscription(admitted):
                await self._stream(id_, admitted)
            else:
                await self._answer(id_, admitted)
        except Refused as refused:
            await self._send_errors(id_, refused.answer.errors)
        except Exception:  # a task's top: the client must hear that no answer comes
            log.exception("An operation on a WebSocket failed")
            self.end(Close(INTERNAL, "Internal server error"))

    async def _answer(self, id_: str, admitted: Admitted) -> None:
        answer = await self._server.operations.execute(admitted)
        if not answer.was_executed:
            await self._send_errors(id_, answer.errors)
            return
        await self._send_next(_head(id_), orjson.dumps(answer.body))
        await self._send_complete(id_)

    async def _stream(self, id_: str, admitted: Admitted) -> None:
        if len(self._subscriptions) >= self._limits.subscriptions:
            error = SubscriptionLimitReached(
                f"At most {self._limits.subscriptions} subscriptions on a connection."
            )
            await self._send_errors(id_, [shown_error(error)])
            return
        self._subscriptions.add(id_)
        head = _head(id_)
        write = None if self._write is None else partial(self._write_next, head)
        following = self._server.broadcast.follow(admitted, write)
        async with aclosing(following) as payloads:
            async for payload in payloads:
                await self._send_next(head, payload)
        await self._send_complete(id_)

    def _write_next(self, head: bytes, payload: bytes) -> bool:
        return self._write is not None and self._write(head, payload, b"}")

    async def _send_next(self, head: bytes, payload: bytes) -> None:
        if not self._write_next(head, payload):
            await self._send_text((head + payload + b"}").decode())

    async def _send_complete(self, id_: str) -> None:
        await self._send_text(orjson.dumps({"id": id_, "type": "complete"}).decode())

    async def _send_errors(self, id_: str, errors: list[dict[str, Any]]) -> None:
        message = {"id": id_, "type": "error", "payload": errors}
        await self._send_text(orjson.dumps(message).decode())


def _head(id_: str) -> bytes:
    """Return the part of a `next` frame before the payload, which all members share."""
    return b'{"id":' + orjson.dumps(id_) + b',"type":"next","payload":'
