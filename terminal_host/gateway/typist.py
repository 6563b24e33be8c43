"""Typing into a terminal from `serve` itself: the port `Typist`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

from sidestage.ids import TerminalId
from terminal_host.gateway.host_attachment import HostAttachment
from terminal_host.host_messages import AttachRequest, Holder

HOLDER: Final = Holder("sidestage")
"""No token's id: what is revoked never ends it."""
SCREEN_LIMIT_LINES: Final = 500
"""No screen has more rows."""


class TypedHost(Protocol):
    """What of the host a typist needs."""

    async def attach(self, request: AttachRequest) -> HostAttachment:
        """Open a client's end of a terminal; raises `TerminalNotFound`."""

    async def screen_text(self, terminal_id: TerminalId, *, lines: int) -> str:
        """Return the last *lines* lines of the screen as plain text."""


class HostKeyboard:
    """`sidestage.terminals.typist.Keyboard` over an attachment."""

    def __init__(
        self, host: TypedHost, terminal_id: TerminalId, attachment: HostAttachment
    ) -> None:
        self._host = host
        self._terminal_id = terminal_id
        self._attachment = attachment
        self._wrote = asyncio.Event()

    async def write(self, data: bytes) -> None:
        """Type *data*; a program that has ended takes none."""
        await self._attachment.send(data)

    async def screen(self) -> str:
        """Return the whole screen as plain text."""
        self._wrote.clear()
        return await self._host.screen_text(self._terminal_id, lines=SCREEN_LIMIT_LINES)

    async def wait_output(self, *, seconds: float) -> None:
        """Return once the program wrote since the last look, or after *seconds*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wrote.wait()
        self._wrote.clear()

    async def follow(self) -> None:
        """Take in what the program writes: the host drops whoever does not."""
        while await self._attachment.receive():
            self._wrote.set()


class HostTypist:
    """`sidestage.terminals.typist.Typist` over the host's socket."""

    def __init__(self, host: TypedHost) -> None:
        self._host = host

    @asynccontextmanager
    async def open_keyboard(
        self, terminal_id: TerminalId
    ) -> AsyncGenerator[HostKeyboard]:
        """Give the terminal's keyboard until the block ends."""
        attachment = await self._host.attach(
            AttachRequest(
                terminal_id=terminal_id, after=None, writable=True, holder=HOLDER
            )
        )
        keyboard = HostKeyboard(self._host, terminal_id, attachment)
        following = asyncio.create_task(keyboard.follow())
        try:
            yield keyboard
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
            attachment.close()
