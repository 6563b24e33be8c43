"""How a client's socket ends: the code it is told, and sends that come too late."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from terminal_host.gateway.messages import CloseCode, Error, encode_message

CLOSE_SECONDS: Final = 0.5
"""A client that does not read is not waited for: a revocation acts within a second."""


class Closing(Exception):
    """The socket is to be closed with *code*."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@contextmanager
def client_may_be_gone() -> Generator[None]:
    """Raise `WebSocketDisconnect` for a send on a socket that is closed already."""
    try:
        yield
    except RuntimeError as error:
        # The server closes it by itself when a client breaks WebSocket's own rules, and
        # calls what is sent from then on a mistake of ours.
        raise WebSocketDisconnect(1006) from error


async def close_socket(websocket: WebSocket, closing: Closing) -> None:
    """Say why, then close; a client that does not read is not waited for."""
    if websocket.client_state is not WebSocketState.CONNECTED:
        return
    with suppress(TimeoutError, RuntimeError, WebSocketDisconnect):
        async with asyncio.timeout(CLOSE_SECONDS):
            if closing.code is not CloseCode.ENDED:
                error = Error(code=closing.code.name, message=str(closing))
                await websocket.send_text(encode_message(error))
            await websocket.close(closing.code, str(closing))
