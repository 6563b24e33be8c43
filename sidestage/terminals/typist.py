"""The port through which the server itself types into a terminal."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from sidestage.ids import TerminalId


class Keyboard(Protocol):
    """One terminal's keyboard and screen, for as long as it is held."""

    async def write(self, data: bytes) -> None:
        """Type *data*; a program that has ended takes none."""

    async def screen(self) -> str:
        """Return the whole screen as plain text, a line for each row.

        Raises `TerminalNotFound`, `HostUnavailable`.
        """

    async def wait_output(self, *, seconds: float) -> None:
        """Return once the program wrote since the last call, or after *seconds*."""


class Typist(Protocol):
    """Types into terminals, as a client with a CONTROL ticket would."""

    def open_keyboard(
        self, terminal_id: TerminalId
    ) -> AbstractAsyncContextManager[Keyboard]:
        """Give the terminal's keyboard until the block ends.

        Raises `TerminalNotFound`, `HostUnavailable`.
        """
