"""A real host process, real PTYs, and the gateway behind a real WebSocket server."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from websockets.asyncio.client import unix_connect
from websockets.typing import Subprotocol

from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from sidestage.errors import TicketRefused
from sidestage.ids import DeviceId, TerminalId
from sidestage.terminals.desk import Admission, TicketMode
from sidestage.terminals.model import CreateTerminal, HostTerminal
from terminal_host.gateway.host_client import HostClient, open_host
from terminal_host.gateway.socket import TerminalGateway, open_gateway
from tests.e2e.terminal_host.socket_client import SocketClient

CONNECT_SECONDS = 20.0


@pytest.fixture
def state_dir() -> Generator[Path]:
    """A short path: a socket's may have 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="sst-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
async def host(state_dir: Path) -> AsyncGenerator[HostClient]:
    async with open_host(state_dir, arguments=["--idle-seconds", "5"]) as client:
        await client.wait_connected(CONNECT_SECONDS)
        yield client
        await client.wait_connected(CONNECT_SECONDS)
        await client.shut_down()


@dataclass
class Tickets:
    """Spends each ticket once, as the real ones do."""

    admissions: dict[str, Admission] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)

    def issue(
        self,
        terminal_id: TerminalId,
        mode: TicketMode = TicketMode.CONTROL,
        device: str = "device:a",
    ) -> str:
        secret = f"ticket-{len(self.admissions)}-{datetime.now(UTC).timestamp()}"
        principal = Principal(
            PrincipalKind.DEVICE,
            ADMIN_SCOPES,
            device,
            device_id=DeviceId(device),
            token_id=f"token-of-{device}",
        )
        self.admissions[secret] = Admission(terminal_id, mode, principal)
        return secret

    def spend_ticket(self, terminal_id: TerminalId, secret: str) -> Admission:
        admission = self.admissions.pop(secret, None)
        if admission is None or admission.terminal_id != terminal_id:
            raise TicketRefused("The ticket is not valid.")
        return admission

    def is_current(self, principal: Principal) -> bool:
        return principal.token_id not in self.revoked


@dataclass
class Served:
    """A gateway that listens, and the means to reach it."""

    gateway: TerminalGateway
    tickets: Tickets
    path: Path

    @asynccontextmanager
    async def open(self, terminal_id: TerminalId) -> AsyncGenerator[SocketClient]:
        """Open a socket that has said nothing yet."""
        async with unix_connect(
            str(self.path),
            uri=f"ws://localhost/terminals/{terminal_id}/socket",
            subprotocols=[Subprotocol("sidestage.terminal.v1")],
            max_size=None,
            max_queue=4,
            compression=None,
            close_timeout=0.2,  # many tests leave output unread
        ) as connection:
            yield SocketClient(connection)

    @asynccontextmanager
    async def connect(
        self,
        terminal: HostTerminal,
        *,
        mode: TicketMode = TicketMode.CONTROL,
        device: str = "device:a",
        ticket: str | None = None,
        **attach: int,
    ) -> AsyncGenerator[SocketClient]:
        """Attach with a ticket of that mode and device."""
        ticket = ticket or self.tickets.issue(terminal.terminal_id, mode, device)
        async with self.open(terminal.terminal_id) as client:
            await client.send(type="attach", ticket=ticket, **attach)
            yield client


@pytest.fixture
async def served(host: HostClient, state_dir: Path) -> AsyncGenerator[Served]:
    tickets = Tickets()
    async with open_gateway(host, tickets, tickets) as gateway:
        path = state_dir / "ws.sock"
        server = uvicorn.Server(
            uvicorn.Config(
                Starlette(routes=[gateway.route]),
                uds=str(path),
                log_level="warning",
                lifespan="off",
                ws="websockets-sansio",
                ws_per_message_deflate=False,
                timeout_graceful_shutdown=2,
            )
        )
        serving = asyncio.create_task(server._serve())
        while not server.started:
            await asyncio.wait([serving], timeout=0.01)
        yield Served(gateway, tickets, path)
        server.should_exit = True
        await gateway.close()
        await serving


@pytest.fixture
def new_terminal(tmp_path: Path) -> Callable[..., CreateTerminal]:
    """Makes requests with ids of their own."""
    count = iter(range(1000))

    def make(
        *argv: str, cols: int = 80, rows: int = 24, **other: str
    ) -> CreateTerminal:
        terminal_id = TerminalId(other.pop("terminal_id", f"terminal:{next(count)}"))
        return CreateTerminal(
            terminal_id=terminal_id,
            argv=argv or ("/bin/bash", "--norc", "--noprofile"),
            environment={
                "PATH": os.environ["PATH"],
                "TERM": "xterm-256color",
                "HOME": str(tmp_path),
                "PS1": "$ ",
                "LANG": "C.UTF-8",
                "SIDESTAGE_TERMINAL": terminal_id,
                **other,
            },
            directory=tmp_path,
            cols=cols,
            rows=rows,
        )

    return make
