"""The API on loopback, with parts in memory, served by uvicorn in this process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import uvicorn

from api.app import Api, create_app
from api.doorway import CONNECTIONS_LIMIT, Doorway
from api.limits import Limits
from api.listener import open_listener
from api.network_protocols import BODY_SECONDS, HEAD_SECONDS, network_protocols
from tests.fakes.parts import World, make_world

NODE_MODULES = Path(__file__).parents[3] / ".tools" / "node_modules"
STARTED_LOOK_SECONDS = 0.01
"""uvicorn tells by a flag that it listens."""


@dataclass(frozen=True)
class Served:
    """A server that answers at *base*."""

    base: str
    port: int
    world: World
    app: Api


@asynccontextmanager
async def served(
    *,
    limits: Limits | None = None,
    allows_get: bool = False,
    connections: int = CONNECTIONS_LIMIT,
    head_seconds: float = HEAD_SECONDS,
    body_seconds: float = BODY_SECONDS,
    **options: Any,
) -> AsyncGenerator[Served]:
    """Serve the product in memory until the block ends."""
    world = make_world(**options)
    with open_listener("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        server = replace(world.parts.server, bound_port=lambda: port)
        parts = replace(world.parts, server=server)
        app = create_app(parts, limits=limits or Limits(), allows_get=allows_get)
        http, ws = cast(
            "tuple[Any, Any]",
            network_protocols(
                Doorway(connections),
                head_seconds=head_seconds,
                body_seconds=body_seconds,
            ),
        )
        config = uvicorn.Config(
            app, http=http, ws=ws, log_config=None, ws_per_message_deflate=False
        )
        uvicorn_server = uvicorn.Server(config)
        uvicorn_server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # the test runner's
        serving = asyncio.create_task(uvicorn_server.serve([listener]))
        while not uvicorn_server.started:
            await asyncio.wait({serving}, timeout=STARTED_LOOK_SECONDS)
        try:
            yield Served(f"http://127.0.0.1:{port}", port, world, app)
        finally:
            await app.close_connections()
            uvicorn_server.should_exit = True
            await serving


async def run_node(script: str, *arguments: str) -> asyncio.subprocess.Process:
    """Start a script of this folder; fail if the test tools are not installed."""
    if not (NODE_MODULES / "graphql-http").is_dir():
        raise AssertionError(
            f"{NODE_MODULES} lacks graphql-http: run scripts/test --setup-only first."
        )
    return await asyncio.create_subprocess_exec(
        "node",
        str(Path(__file__).with_name(script)),
        str(NODE_MODULES),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
