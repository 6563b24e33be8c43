"""The control socket: HTTP and WebSocket for processes of the owner on this machine.

Who connects is known from the kernel (`SO_PEERCRED`, unix(7)), so it needs no token.
The same application answers as on the network; the connection's principal travels in
`scope["extensions"]["sidestage.principal"]`.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)

from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind, Scope

PRINCIPAL_EXTENSION: Final = "sidestage.principal"
BACKLOG_CONNECTIONS: Final = 64
_CREDENTIALS: Final = struct.Struct("3i")
"""`struct ucred`: pid, uid, gid."""

IsAgent = Callable[[int], bool]
"""Tells whether the process with that pid runs inside an agent."""


def open_control_socket(path: Path) -> socket.socket:
    """Bind the socket at *path* (0600), in place of one a dead server left.

    The caller holds the state folder's lock, so no live server listens there.
    """
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The folder is 0700; the umask closes the moment between bind and chmod besides.
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(BACKLOG_CONNECTIONS)
    listener.setblocking(False)  # noqa: FBT003 the socket's own signature
    return listener


def control_protocols(
    is_agent: IsAgent,
) -> tuple[type[asyncio.Protocol], type[asyncio.Protocol]]:
    """Return the HTTP and WebSocket protocol classes that know their peer.

    A process of another user is cut off. One that runs inside an agent may look, and
    nothing more: an agent that tries to widen its own rights is told to ask its owner.
    """

    class ControlWebSocket(WebSocketsSansIOProtocol):
        """A WebSocket whose scope says which process is on the other side."""

        async def run_asgi(self) -> None:
            extensions: dict[Any, Any] = {
                **self.scope.get("extensions", {}),
                PRINCIPAL_EXTENSION: principal_of(self.transport, is_agent),
            }
            self.scope["extensions"] = extensions
            await super().run_asgi()

    class ControlHttp(HttpToolsProtocol):
        """Requests whose scope says which process sent them; others are cut off."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the parent
            super().connection_made(transport)
            self._principal = principal_of(transport, is_agent)
            if self._principal is None:
                transport.abort()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            extensions: dict[str, Any] = {PRINCIPAL_EXTENSION: self._principal}
            self.scope["extensions"] = extensions

    return ControlHttp, ControlWebSocket


def principal_of(
    transport: asyncio.BaseTransport, is_agent: IsAgent
) -> Principal | None:
    """Return who is on the other side; None if that is another user."""
    peer = transport.get_extra_info("socket")
    raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    if uid != os.geteuid():
        return None
    principal = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, f"local:{pid}")
    if is_agent(pid):
        scopes = frozenset({Scope.VIEW, Scope.READ})
        return replace(principal, scopes=scopes, actor=f"agent:{pid}")
    return principal
