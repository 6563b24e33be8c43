"""The companion WebSocket's route: admits clients, knows them, lets them go."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from sidestage.devices.model import Principal
from sidestage.errors import HostUnavailable, SidestageError, TicketRefused
from sidestage.ids import DeviceId, TerminalId
from sidestage.terminals.desk import Admission
from sidestage.terminals.model import HostEventKind, TerminalState
from terminal_host.gateway.client import TerminalClient
from terminal_host.gateway.closing import Closing, close_socket
from terminal_host.gateway.host_client import HostClient
from terminal_host.gateway.messages import (
    SUBPROTOCOL,
    Attach,
    CloseCode,
    MessageInvalid,
    parse_message,
)
from terminal_host.gateway.sizes import Size, SizeOwners

PATH: Final = "/terminals/{terminal_id}/socket"
CLIENTS_LIMIT: Final = 256
"""Each holds up to 1 MiB on its way and a connection to the host."""
TOKEN_CLIENTS_LIMIT: Final = 64
"""Of these, with one token: a wall of terminals has room, and three others do too."""
STRANGERS_LIMIT: Final = 32
"""Sockets that have shown no ticket yet. Beyond them the oldest goes: an honest client
shows its ticket at once, so strangers keep nobody out."""
FIRST_MESSAGE_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)


class Tickets(Protocol):
    """Who spends tickets (`Terminals`)."""

    def spend_ticket(self, terminal_id: TerminalId, secret: str) -> Admission:
        """Use a ticket up; raises `TicketRefused`."""


class Door(Protocol):
    """Who knows whether a principal is still good (`Authenticator`)."""

    def is_current(self, principal: Principal) -> bool:
        """Tell whether the principal's token is still good (no I/O)."""


class TerminalGateway:
    """Serves the terminals of one host to WebSocket clients. Made by `open_gateway`."""

    def __init__(
        self,
        host: HostClient,
        tickets: Tickets,
        door: Door,
        *,
        first_message_seconds: float = FIRST_MESSAGE_SECONDS,
    ) -> None:
        self._host = host
        self._tickets = tickets
        self._door = door
        self._first_message_seconds = first_message_seconds
        self._clients: set[TerminalClient] = set()
        self._strangers: dict[asyncio.Timeout, None] = {}
        """What each may still take, the oldest first."""
        self._sizes = SizeOwners(self._resize)
        self._resizing: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def route(self) -> WebSocketRoute:
        """Return the route to mount, at the server's root."""
        return WebSocketRoute(PATH, self.serve, name="terminal-socket")

    @property
    def clients(self) -> int:
        """Return how many clients are attached."""
        return len(self._clients)

    async def serve(self, websocket: WebSocket) -> None:
        """Serve one socket from its handshake to its end."""
        if SUBPROTOCOL not in websocket.scope.get("subprotocols", ()):
            await websocket.close()  # before accepting it: the handshake answers 403
            return
        await websocket.accept(SUBPROTOCOL)
        try:
            client = await self._admit(websocket)
        except Closing as closing:
            await close_socket(websocket, closing)
            return
        except WebSocketDisconnect:
            return
        self._clients.add(client)
        try:
            await client.run()
        finally:
            self._clients.discard(client)

    def drop(
        self, *, token_id: str | None = None, device_id: DeviceId | None = None
    ) -> int:
        """End the clients of a token or device now; return how many there were.

        Nothing passes any more when this returns; their sockets close with 4401 within
        half a second.
        """
        dropped = 0
        for client in tuple(self._clients):
            principal = client.principal
            if (token_id is not None and principal.token_id == token_id) or (
                device_id is not None and principal.device_id == device_id
            ):
                client.kick(CloseCode.UNAUTHENTICATED, "The device was revoked.")
                dropped += 1
        return dropped

    async def close(self) -> None:
        """End every client with 1012 and let no more in. Ends within a second."""
        self._closed = True
        for client in tuple(self._clients):
            client.kick(CloseCode.RESTART, "The server restarts.")

    async def follow_host(self) -> None:
        """Pass on what the host tells about sizes, until cancelled."""
        async for event in self._host.watch():
            if event.kind is HostEventKind.REMOVED:
                continue  # the attachments end, and say so
            for terminal in event.terminals:
                # Without a program there is no size: each client is shown its own.
                if terminal.state is TerminalState.RUNNING:
                    size = (terminal.cols, terminal.rows)
                    self._note_size(terminal.terminal_id, size)

    async def _admit(self, websocket: WebSocket) -> TerminalClient:
        """Return the client that shows a good ticket in time; raises `Closing`."""
        if self._closed:
            raise Closing(CloseCode.RESTART, "The server restarts.")
        if len(self._clients) >= CLIENTS_LIMIT:
            _log.warning("a terminal's socket too many was refused")
            raise Closing(CloseCode.OVERLOAD, "Too many terminal sockets are open.")
        attach = await self._first_message(websocket)
        terminal_id = TerminalId(websocket.path_params["terminal_id"])
        try:
            admission = self._tickets.spend_ticket(terminal_id, attach.ticket)
        except TicketRefused as error:
            raise Closing(CloseCode.UNAUTHENTICATED, str(error)) from error
        self._check_quota(admission.principal)
        return TerminalClient(
            websocket,
            admission,
            attach,
            host=self._host,
            door=self._door,
            sizes=self._sizes,
        )

    def _check_quota(self, principal: Principal) -> None:
        """Raise `Closing` for one socket too many of a token."""
        owner = _owner(principal)
        held = sum(_owner(client.principal) == owner for client in self._clients)
        if held >= TOKEN_CLIENTS_LIMIT:
            _log.warning("a terminal's socket too many of one token was refused")
            raise Closing(
                CloseCode.QUOTA,
                f"{TOKEN_CLIENTS_LIMIT} terminal sockets are open with this token.",
            )

    async def _first_message(self, websocket: WebSocket) -> Attach:
        patience = asyncio.timeout(self._first_message_seconds)
        try:
            async with patience:
                self._make_room_for_strangers()
                self._strangers[patience] = None
                message = await websocket.receive()
        except TimeoutError as error:
            if patience not in self._strangers:
                reason = "Others came since, and no ticket did."
                raise Closing(CloseCode.OVERLOAD, reason) from error
            raise Closing(CloseCode.TIMEOUT, "No ticket came in time.") from error
        finally:
            self._strangers.pop(patience, None)
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1006))
        try:
            attach = parse_message(message.get("text") or "")
        except MessageInvalid as error:
            raise Closing(error.code, str(error)) from error
        if not isinstance(attach, Attach):
            raise Closing(CloseCode.INVALID, "The first message must be attach.")
        return attach

    def _make_room_for_strangers(self) -> None:
        if len(self._strangers) < STRANGERS_LIMIT:
            return
        oldest = next(iter(self._strangers))
        del self._strangers[oldest]
        if not oldest.expired():  # else it is about to go by itself
            oldest.reschedule(asyncio.get_running_loop().time())

    def _note_size(self, terminal_id: TerminalId, size: Size) -> None:
        self._sizes.noted(terminal_id, size)
        for client in self._clients:
            if client.terminal_id == terminal_id:
                client.resized(size)

    def _resize(self, terminal_id: TerminalId, size: Size) -> None:
        task = asyncio.get_running_loop().create_task(
            self._ask_resize(terminal_id, size)
        )
        self._resizing.add(task)
        task.add_done_callback(self._resizing.discard)

    async def _ask_resize(self, terminal_id: TerminalId, size: Size) -> None:
        try:
            await self._host.resize(terminal_id, cols=size[0], rows=size[1])
        except HostUnavailable:
            _log.warning("a terminal's size could not be set: no host")
        except SidestageError as error:  # it has ended meanwhile
            _log.debug("a terminal's size was not set: %s", error)


def _owner(principal: Principal) -> str:
    """Return whose sockets are counted together; the control socket shows no token."""
    return principal.token_id or principal.actor


@asynccontextmanager
async def open_gateway(
    host: HostClient, tickets: Tickets, door: Door
) -> AsyncGenerator[TerminalGateway]:
    """Serve terminals until the block ends; then close every socket with 1012."""
    gateway = TerminalGateway(host, tickets, door)
    following = asyncio.create_task(gateway.follow_host())
    try:
        yield gateway
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await gateway.close()
