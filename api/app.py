"""Builds the ASGI application: the only place that wires the API's parts together."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute, request_response

from api.broadcast import Broadcast
from api.connections import Connections
from api.guard import Allowed, App, Guard, Receive, Scope, Send, allowed_for
from api.http import GraphQLHttp
from api.limits import DEFAULT_LIMITS, Limits
from api.metrics import metrics_endpoint
from api.operations import Operations
from api.rates import RateLimiter
from api.transport_ws import TransportWs
from api.web_client import WebClient
from resolvers.parts import Parts, ServerInfo

__all__ = ["Api", "Parts", "ServerInfo", "create_app"]

STOP_PATIENCE_SECONDS: Final = 3.0
"""What streams and sockets get to end in; `serve` has ten in all."""


class Api:
    """The application, and the handle by which `serve` stops it."""

    def __init__(
        self, app: App, connections: Connections, broadcast: Broadcast
    ) -> None:
        self._app = app
        self.connections = connections
        self.broadcast = broadcast

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        await self._app(scope, receive, send)

    async def close_connections(self) -> None:
        """End every socket (1012) and stream; call it before the server shuts down.

        uvicorn waits for open responses, and an SSE stream never ends by itself.
        """
        await self.connections.stop(patience_seconds=STOP_PATIENCE_SECONDS)


def create_app(
    parts: Parts,
    *,
    limits: Limits = DEFAULT_LIMITS,
    extra_routes: Sequence[BaseRoute] = (),
    web_client: WebClient | None = None,
    allows_get: bool = False,
    monotonic: Callable[[], float] = time.monotonic,
) -> Api:
    """Return the application that serves *parts*.

    *extra_routes* come behind the same Host and Origin check; *web_client* is the
    built one unless a test gives another. *allows_get* serves
    queries (never mutations) by GET. *monotonic* is the rate limits' clock.
    """
    operations = Operations(
        parts,
        limits,
        rates=RateLimiter(limits.points_burst, limits.points_per_second, monotonic),
        anonymous_rates=RateLimiter(
            limits.anonymous_burst, limits.anonymous_per_second, monotonic
        ),
    )
    broadcast = Broadcast(operations, limits)
    connections = Connections(limits)
    client = web_client or WebClient()
    http = GraphQLHttp(
        parts,
        operations,
        broadcast,
        connections,
        limits,
        page=request_response(client.graphiql),
        allows_get=allows_get,
    )
    sockets = TransportWs(parts, operations, broadcast, connections, limits)
    routes = [
        Route("/graphql", http),
        WebSocketRoute("/graphql", sockets),
        Route("/healthz", _alive),
        Route("/readyz", _readiness(parts)),
        Route("/metrics", metrics_endpoint(parts, connections, broadcast)),
        *extra_routes,
        *client.routes(),
    ]
    inner = Starlette(routes=routes, lifespan=_lifespan(parts, broadcast, connections))
    return Api(Guard(inner, _allowed(parts.server)), connections, broadcast)


def _allowed(server: ServerInfo) -> Callable[[], Allowed]:
    known: dict[int, Allowed] = {}

    def allowed() -> Allowed:
        port = server.bound_port()
        if port not in known:
            known[port] = allowed_for(port, server.public_urls, server.allowed_origins)
        return known[port]

    return allowed


async def _alive(_request: Request) -> Response:
    return PlainTextResponse("ok\n")


def _readiness(parts: Parts) -> Callable[[Request], Awaitable[Response]]:
    async def ready(_request: Request) -> Response:
        if parts.server.health().ready:
            return PlainTextResponse("ready\n")
        return PlainTextResponse("not yet\n", status_code=503)

    return ready


def _lifespan(
    parts: Parts, broadcast: Broadcast, connections: Connections
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        """Watch revocations while the server runs; end every group when it stops."""
        watch = asyncio.create_task(connections.watch(parts.authenticator))
        try:
            yield
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
            await connections.stop(patience_seconds=STOP_PATIENCE_SECONDS)
            await broadcast.close()

    return lifespan
