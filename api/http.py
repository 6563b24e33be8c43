"""GraphQL over HTTP, to the letter of its specification.

https://graphql.github.io/graphql-over-http/draft/ (`graphql-http` audits it.)
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson
from starlette.datastructures import Headers

from api.broadcast import Broadcast
from api.connections import Connections
from api.errors import shown_error, status_of
from api.guard import LOCAL_PRINCIPAL, App, Receive, Scope, Send
from api.limits import Limits
from api.operations import (
    Admitted,
    Answer,
    Operations,
    Refused,
    Request,
    is_mutation,
    is_subscription,
    refusal,
)
from api.requests import (
    authenticate,
    check_client,
    parse_bearer,
    parse_json,
    parse_request,
)
from api.streams import EventStream, Framing, Multipart, Sse
from resolvers.parts import Parts
from sidestage.devices.model import Principal
from sidestage.errors import (
    ErrorCode,
    InvalidInput,
    OperationTooLarge,
    SidestageError,
    UseStreamingTransport,
)

GRAPHQL_JSON: Final = "application/graphql-response+json"
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
MULTIPART: Final = "multipart/mixed"

_OK_FOR_JSON: Final = frozenset(
    {
        ErrorCode.GRAPHQL_PARSE_FAILED,
        ErrorCode.GRAPHQL_VALIDATION_FAILED,
        ErrorCode.BAD_USER_INPUT,
        ErrorCode.OPERATION_TOO_LARGE,
    }
)
"""What a well-formed request got wrong: clients of the older media type expect 200."""


class NotServed(Exception):
    """A request that is not GraphQL over HTTP at all."""

    def __init__(
        self, status: int, error: SidestageError, *headers: tuple[str, str]
    ) -> None:
        super().__init__(status)
        self.status = status
        self.error = error
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Accepted:
    """The media types a client takes, best first."""

    types: tuple[str, ...]

    @classmethod
    def parse(cls, headers: list[str]) -> "Accepted":
        """Read the `Accept` headers; none at all, and `*/*`, mean JSON."""
        weighed = []
        for item in ",".join(headers).split(","):
            name, *parameters = (part.strip().lower() for part in item.split(";"))
            if name:
                weighed.append((_weight(parameters), name))
        weighed.sort(key=lambda each: -each[0])
        types = tuple(name for weight, name in weighed if weight > 0)
        return cls(types or ("*/*",))

    def best_json(self) -> str | None:
        """Return the JSON type to answer with, or None."""
        for name in self.types:
            if name in (GRAPHQL_JSON, JSON):
                return name
            if name in ("*/*", "application/*"):
                return JSON
        return None

    def best_stream(self) -> Framing | None:
        """Return how to stream, or None; only what is named is meant."""
        for name in self.types:
            if name == EVENTS:
                return Sse()
            if name == MULTIPART:
                return Multipart()
        return None


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


class GraphQLHttp:
    """The ASGI endpoint of `/graphql` for HTTP."""

    def __init__(
        self,
        parts: Parts,
        operations: Operations,
        broadcast: Broadcast,
        connections: Connections,
        limits: Limits,
        *,
        page: App,
        allows_get: bool,
    ) -> None:
        self._page = page
        self._parts = parts
        self._operations = operations
        self._broadcast = broadcast
        self._connections = connections
        self._limits = limits
        self._allows_get = allows_get

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = Headers(scope=scope)
        accepted = Accepted.parse(headers.getlist("accept"))
        if self._is_page_visit(scope, accepted):
            await self._page(scope, receive, send)
            return
        media = accepted.best_json() or JSON
        try:
            request, principal = await self._read(scope, headers, receive)
            admitted = self._operations.admit(request, principal)
            _check_method(scope["method"], admitted)
            await self._serve(admitted, accepted, receive, send)
        except NotServed as refused:
            body = {"errors": [shown_error(refused.error)]}
            await _send_json(send, refused.status, media, body, refused.headers)
        except Refused as refused:
            await _send_answer(send, media, refused.answer)
        except SidestageError as error:
            await _send_answer(send, media, refusal([shown_error(error)]).answer)

    def _is_page_visit(self, scope: Scope, accepted: Accepted) -> bool:
        return (
            scope["method"] in ("GET", "HEAD")
            and "text/html" in accepted.types
            and b"query=" not in scope["query_string"]
        )

    async def _read(
        self, scope: Scope, headers: Headers, receive: Receive
    ) -> tuple[Request, Principal]:
        """Return request and caller; raises `NotServed` and our own errors."""
        check_client(headers.get("sidestage-client"), self._parts.server.oldest_client)
        if scope["method"] == "GET" and self._allows_get:
            request = _parse_query_string(scope["query_string"])
        elif scope["method"] == "POST":
            _check_content_type(headers.getlist("content-type"))
            body = await self._read_body(headers, receive, self._body_limit(scope))
            request = parse_request(parse_json(body))
        else:
            methods = "GET, POST" if self._allows_get else "POST"
            raise NotServed(
                405, InvalidInput(f"Send {methods} requests."), ("allow", methods)
            )
        return request, await self._log_in(scope, headers)

    async def _log_in(self, scope: Scope, headers: Headers) -> Principal:
        local = scope.get("extensions", {}).get(LOCAL_PRINCIPAL)
        if isinstance(local, Principal):
            return local
        client = scope.get("client")
        return await authenticate(
            self._parts.authenticator,
            parse_bearer(headers.getlist("authorization")),
            address=client[0] if client else None,
        )

    def _body_limit(self, scope: Scope) -> int:
        is_stranger = LOCAL_PRINCIPAL not in scope.get("extensions", {}) and not any(
            name == b"authorization" for name, _ in scope["headers"]
        )
        limits = self._limits
        return limits.anonymous_body_bytes if is_stranger else limits.body_bytes

    async def _read_body(
        self, headers: Headers, receive: Receive, limit_bytes: int
    ) -> bytes:
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit_bytes:
            raise _too_long(limit_bytes)
        chunks, total, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise NotServed(400, InvalidInput("The body ended early."))
            chunks.append(message.get("body", b""))
            total += len(chunks[-1])
            if total > limit_bytes:
                raise _too_long(limit_bytes)
            more = message.get("more_body", False)
        return b"".join(chunks)

    async def _serve(
        self, admitted: Admitted, accepted: Accepted, receive: Receive, send: Send
    ) -> None:
        framing = accepted.best_stream()
        media = accepted.best_json()
        if is_subscription(admitted):
            if framing is None:
                raise UseStreamingTransport(
                    "Subscriptions need a WebSocket (graphql-transport-ws), "
                    "Accept: text/event-stream, or Accept: multipart/mixed."
                )
            await self._stream(
                self._broadcast.follow(admitted), framing, admitted, receive, send
            )
        elif media is not None:
            await _send_answer(send, media, await self._operations.execute(admitted))
        elif isinstance(framing, Sse):
            payloads = self._one(admitted)
            await self._stream(payloads, framing, admitted, receive, send)
        else:
            types = f"{GRAPHQL_JSON}, {JSON}"
            raise NotServed(406, InvalidInput(f"The answer is one of {types}."))

    async def _one(self, admitted: Admitted) -> AsyncIterator[bytes]:
        answer = await self._operations.execute(admitted)
        yield orjson.dumps(answer.body)

    async def _stream(
        self,
        payloads: Any,  # noqa: ANN401 -- an async generator, which AsyncIterator hides
        framing: Framing,
        admitted: Admitted,
        receive: Receive,
        send: Send,
    ) -> None:
        """Stream; what fails before the first payload is an ordinary answer."""
        async with aclosing(payloads):
            first = await anext(payloads)
            stream = EventStream(framing, self._connections, self._limits)
            await stream.serve(
                _after(first, payloads), admitted.principal, receive, send
            )


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for payload in rest:
        yield payload


def _too_long(limit_bytes: int) -> NotServed:
    error = OperationTooLarge(f"A body has at most {limit_bytes} bytes.")
    return NotServed(413, error)


def _check_method(method: str, admitted: Admitted) -> None:
    if method == "GET" and is_mutation(admitted):
        raise NotServed(405, InvalidInput("Mutations come by POST."), ("allow", "POST"))


def _check_content_type(values: list[str]) -> None:
    name, _, parameters = (values[0] if len(values) == 1 else "").partition(";")
    charset = parameters.replace('"', "").replace(" ", "").lower()
    if name.strip().lower() != JSON or charset not in ("", "charset=utf-8"):
        raise NotServed(415, InvalidInput(f"Send {JSON} in UTF-8."))


def _parse_query_string(raw: bytes) -> Request:
    """Return the request of a GET; raises `InvalidInput`."""
    try:
        pairs = dict(parse_qsl(raw.decode("ascii"), keep_blank_values=True))
    except ValueError as error:
        raise InvalidInput("The query string is not URL-encoded.") from error
    value: dict[str, Any] = {"query": pairs.get("query")}
    for name in ("variables", "extensions"):
        if pairs.get(name):
            value[name] = parse_json(pairs[name].encode())
    request = parse_request(value)
    return replace(request, operation_name=pairs.get("operationName") or None)


async def _send_answer(send: Send, media: str, answer: Answer) -> None:
    status = 200 if answer.was_executed else status_of(answer.code)
    if media == JSON and answer.code in _OK_FOR_JSON:
        status = 200
    await _send_json(send, status, media, answer.body, _advice(answer))


def _advice(answer: Answer) -> tuple[tuple[str, str], ...]:
    """Return the headers that HTTP has for what the errors say."""
    if answer.was_executed:
        return ()
    extensions = answer.errors[0]["extensions"]
    if "retryAfterMs" in extensions:
        return (("retry-after", str(-(-extensions["retryAfterMs"] // 1000))),)
    if status_of(answer.code) == 401:
        return (("www-authenticate", "Bearer"),)
    return ()


async def _send_json(
    send: Send,
    status: int,
    media: str,
    body: dict[str, Any],
    headers: tuple[tuple[str, str], ...] = (),
) -> None:
    typed = ("content-type", f"{media}; charset=utf-8")
    await _send(send, status, (typed, *headers), orjson.dumps(body))


async def _send(
    send: Send, status: int, headers: tuple[tuple[str, str], ...], body: bytes
) -> None:
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    encoded.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
