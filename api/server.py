"""Serving: the listeners, the two uvicorn servers, and a stop that is bounded.

One application answers on the network and on the control socket. A stop closes every
socket with a code, leaves terminals running, and ends within `STOP_LIMIT_SECONDS`.
"""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import uvicorn

from api.app import Api, create_app
from api.browser_login import LoginParts, login_route
from api.control_routes import ControlParts, control_routes
from api.control_socket import (
    BACKLOG_CONNECTIONS,
    control_protocols,
    open_control_socket,
)
from api.doorway import (
    Doorway,
    connections_limit,
    descriptor_limit,
    raise_descriptor_limit,
)
from api.listener import open_listener
from api.network_protocols import network_protocols
from api.wiring.background import running
from api.wiring.parts import Wired, open_parts
from api.wiring.seams import Seams
from resolvers.parts import Health, Parts, ServerInfo
from sidestage import __version__
from sidestage.devices.browser_tickets import BrowserTickets
from sidestage.errors import SettingsInvalid
from sidestage.settings import Settings
from sidestage.state import lock_state_folder, prepare_state_folder
from sidestage.storage.stores import utc_now
from terminal_host.gateway.socket import TerminalGateway, open_gateway

MESSAGE_LIMIT_BYTES: Final = 1024 * 1024
"""One WebSocket message; uvicorn's default of 16 MiB is for nobody here."""
PING_SECONDS: Final = 20.0
GRACE_SECONDS: Final = 4
"""For answers under way, after every socket got its close code."""
STOP_LIMIT_SECONDS: Final = 6.0
"""With what the sockets get before (3 s), a stop ends within ten seconds."""
STARTED_LOOK_SECONDS: Final = 0.02
"""uvicorn tells by a flag that it listens."""
BEST_ENGINE: Final = "ghostty"
CAPABILITIES: Final = ("feeds", "handover", "resume", "terminals", "transcripts")
"""What this server can do; a client hides what is not among it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ready:
    """What `serve` tells its owner once it answers."""

    url: str
    settings: Settings
    sessions: int
    projects: int
    as_root: bool


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to us: there are two of them."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve(
    settings: Settings,
    *,
    on_ready: Callable[[Ready], None],
    seams: Seams | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises `SettingsInvalid` (also for an address that cannot be had),
    `StateFolderUnsafe`, `StorageUnavailable`, and `OSError` for a file of the state
    folder.
    """
    check_bind(settings)
    prepare_state_folder(settings.state_dir)
    # Programs that use select(2) break above 1,024: terminals get what we were given.
    descriptors = descriptor_limit()
    doorway = Doorway(connections_limit(raise_descriptor_limit()))
    async with AsyncExitStack() as stack:
        stack.enter_context(lock_state_folder(settings.state_dir))
        stop = stack.enter_context(_stop_event())
        listener = stack.enter_context(open_listener(settings.host, settings.port))
        wired = await stack.enter_async_context(
            open_parts(settings, seams, descriptors=descriptors)
        )
        gateway = await stack.enter_async_context(
            open_gateway(wired.terminals.host, wired.terminals.desk, wired.keeper)
        )
        dropping = _drop_revoked(gateway, wired)
        await stack.enter_async_context(running(dropping=dropping))
        port = listener.getsockname()[1]
        app = _application(settings, wired, gateway, port)
        control = stack.enter_context(open_control_socket(settings.control_socket))
        network = server_config(app, settings, network_protocols(doorway), "on")
        local = server_config(app, settings, control_protocols(wired.is_agent))
        servers = ((_Server(network), listener), (_Server(local), control))
        await stack.enter_async_context(_answering(app, gateway, servers))
        on_ready(_ready(settings, wired, port))
        await stop.wait()
        _log.info("stopping; terminals go on running")


def check_bind(settings: Settings) -> None:
    """Raise `SettingsInvalid` for an address beyond loopback without TLS."""
    if is_loopback(settings.host) or settings.insecure_bind:
        return
    if any(urlsplit(url).scheme == "https" for url in settings.public_urls):
        return
    raise SettingsInvalid(
        f"{settings.host} can be reached from other machines, and tokens would travel "
        "in clear. Put a TLS proxy before Sidestage and name its address in "
        "public_urls, or say --insecure-bind (the setting insecure_bind = true)."
    )


def is_loopback(host: str) -> bool:
    """Tell whether *host* can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _application(
    settings: Settings, wired: Wired, gateway: TerminalGateway, port: int
) -> Api:
    parts = Parts(
        sessions=wired.discovery.sessions,
        transcripts=wired.discovery.transcripts,
        projects=wired.projects,
        adoption=wired.adoption,
        hooks=wired.hooks.installer,
        terminals=wired.terminals.desk,
        requests=wired.requests.desk,
        devices=wired.devices.desk,
        pairings=wired.devices.pairings,
        push=wired.push.endpoints,
        handovers=wired.handover,
        audit=wired.ground.audit,
        authenticator=wired.keeper,
        server=ServerInfo(
            version=__version__,
            host_id=wired.ground.host_id,
            host_name=wired.ground.host_name,
            bound_port=lambda: port,
            public_urls=settings.public_urls,
            allowed_origins=settings.allowed_origins,
            health=lambda: health_of(wired),
            capabilities=(*CAPABILITIES, *(("demo",) if settings.demo else ())),
        ),
    )
    tickets = BrowserTickets(utc_now)
    url = _local_url(settings, port)
    control = ControlParts(
        wired.keeper, settings, tickets, url, wired.devices.key_change
    )
    login = LoginParts(wired.keeper, tickets, utc_now, time.monotonic)
    routes = [gateway.route, *control_routes(control), login_route(login)]
    app = create_app(parts, extra_routes=routes)
    wired.devices.presence.follow(app.connections.tokens)
    return app


def _local_url(settings: Settings, port: int) -> str:
    """Return the address by which this machine's browser reaches the server."""
    if settings.host == "::1":
        return f"http://[::1]:{port}"
    if is_loopback(settings.host) or settings.host in ("0.0.0.0", "::"):  # noqa: S104 -- compared, not bound
        return f"http://127.0.0.1:{port}"
    return next(iter(settings.public_urls), f"http://{settings.host}:{port}")


def health_of(wired: Wired) -> Health:
    """Join what the parts say of themselves."""
    source = wired.discovery.sessions.health()
    notes = list(source.notes)
    engine = wired.terminals.host.engine
    if engine is None:
        notes.append("The terminal host does not answer; no terminal can be started.")
    elif engine != BEST_ENGINE:
        notes.append(
            f"Screens are kept by the engine {engine!r}, which is less "
            f"exact than {BEST_ENGINE!r}: that one cannot be loaded on this machine."
        )
    counters = {
        **source.counters,
        **wired.hooks.counters(),
        **wired.requests.counters(),
        **wired.push.pusher.counters(),
    }
    return Health(ok=not notes, notes=tuple(notes), counters=counters)


def server_config(
    app: Api,
    settings: Settings,
    protocols: tuple[Any, Any],  # uvicorn takes what makes one, but types a class
    lifespan: Literal["on", "off"] = "off",
) -> uvicorn.Config:
    """Return how uvicorn serves *app*; one of the servers looks after its lifespan."""
    http, ws = protocols
    return uvicorn.Config(
        app,
        http=http,
        ws=ws,
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        ws_max_size=MESSAGE_LIMIT_BYTES,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        # Terminal bytes gain nothing by it and lose speed; feeds share their frames.
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=BACKLOG_CONNECTIONS,
    )


@asynccontextmanager
async def _answering(
    app: Api,
    gateway: TerminalGateway,
    servers: Sequence[tuple[uvicorn.Server, socket.socket]],
) -> AsyncGenerator[None]:
    """Answer on both sockets until the block ends; then close what is open."""
    tasks = [asyncio.create_task(server.serve([each])) for server, each in servers]
    try:
        while not all(server.started for server, _ in servers):
            await asyncio.wait(
                tasks, timeout=STARTED_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            for task in tasks:
                if task.done():
                    task.result()  # raises what kept it from starting
        yield
    finally:
        await gateway.close()
        await app.close_connections()
        for server, _ in servers:
            server.should_exit = True
        _, late = await asyncio.wait(tasks, timeout=STOP_LIMIT_SECONDS)
        for task in late:
            task.cancel()


async def _drop_revoked(gateway: TerminalGateway, wired: Wired) -> None:
    """End the terminal clients of each token that is revoked."""
    async for token_id in wired.keeper.watch_revocations():
        gateway.drop(token_id=token_id)


@contextmanager
def _stop_event() -> Generator[asyncio.Event]:
    """Give an event that SIGINT and SIGTERM set; a second SIGINT ends at once."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def ask_to_stop() -> None:
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ask_to_stop)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _ready(settings: Settings, wired: Wired, port: int) -> Ready:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return Ready(
        url=f"http://{host}:{port}",
        settings=settings,
        sessions=len(wired.discovery.sessions.feed.values()),
        projects=len(wired.projects.feed.values()),
        as_root=os.geteuid() == 0,
    )
