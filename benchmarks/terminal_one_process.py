"""The terminal host and the gateway in one process: a peer of `benchmarks/terminal.py`.

    python -m benchmarks.terminal_one_process PORT FOLDER

POST /start/NAME starts a shell in FOLDER, or finds it, and returns a ticket.
"""

import asyncio
import os
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from sidestage.ids import TerminalId
from sidestage.terminals.desk import Admission, TicketMode
from sidestage.terminals.model import CreateTerminal
from terminal_host.gateway.host_client import open_host
from terminal_host.gateway.socket import open_gateway
from terminal_host.host.engines import ENGINE_NAME
from terminal_host.host.recorder import Recorder
from terminal_host.host.records import FOLDER_NAME, RecordLimits, RecordStore
from terminal_host.host.sandbox import BubblewrapConfiner
from terminal_host.host.server import HostServer, open_server
from terminal_host.host.terminals import HostedTerminals, HostLimits
from terminal_host.screen import make_engine
from terminal_host.wire import SOCKET_NAME


@dataclass
class Tickets:
    """Gives tickets to all who ask, and knows of no revocation."""

    admissions: dict[str, Admission] = field(default_factory=dict)

    def issue(self, terminal_id: TerminalId) -> str:
        """Return a ticket of that terminal."""
        secret = f"ticket-{len(self.admissions)}"
        principal = Principal(PrincipalKind.DEVICE, ADMIN_SCOPES, "benchmark")
        self.admissions[secret] = Admission(terminal_id, TicketMode.CONTROL, principal)
        return secret

    def spend_ticket(self, terminal_id: TerminalId, secret: str) -> Admission:
        """Return what the ticket admits to."""
        assert self.admissions[secret].terminal_id == terminal_id
        return self.admissions.pop(secret)

    def is_current(self, principal: Principal) -> bool:
        """Tell that it is."""
        return bool(principal.actor)


async def serve(port: int, folder: Path, state_dir: Path) -> None:
    tickets = Tickets()
    store = RecordStore(state_dir / FOLDER_NAME, RecordLimits())
    store.open()
    terminals = HostedTerminals(
        state_dir / "terminals",
        BubblewrapConfiner(allow_root=False),
        make_engine,
        recorder=Recorder(store),
        limits=HostLimits(),
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, terminals.reap)

    async def start(request: Request) -> JSONResponse:
        name = TerminalId(f"terminal:{request.path_params['name']}")
        size = {side: int(request.query_params[side]) for side in ("cols", "rows")}
        await terminals.create(
            CreateTerminal(
                terminal_id=name,
                argv=("/bin/sh",),
                environment={"PATH": os.defpath, "TERM": "xterm-256color"},
                directory=folder,
                cols=size["cols"],
                rows=size["rows"],
            )
        )
        return JSONResponse({"id": name, "ticket": tickets.issue(name)})

    async def alive(_: Request) -> JSONResponse:
        return JSONResponse({"status": "alive"})

    host = HostServer(terminals, engine=ENGINE_NAME, stop=lambda: None)
    async with (
        open_server(state_dir / SOCKET_NAME, host),
        open_host(state_dir) as client,
        open_gateway(client, tickets, tickets) as gateway,
    ):
        routes = [
            Route("/start/{name}", start, methods=["POST"]),
            Route("/healthz", alive),
            gateway.route,
        ]
        config = uvicorn.Config(
            Starlette(routes=routes),
            port=port,
            log_level="warning",
            lifespan="off",
            ws="websockets-sansio",
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=1,
        )
        await uvicorn.Server(config).serve()
        await terminals.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sto-") as state:
        asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2]), Path(state)))
