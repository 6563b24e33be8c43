"""A terminal's output on its way to one client: offsets, whole characters, acks."""

import asyncio
from typing import Final

from terminal_host.gateway.messages import OFFSET_BYTES
from terminal_host.utf8 import incomplete_suffix

WINDOW_BYTES: Final = 1 << 20
"""Sent but not acknowledged: a browser parses it in 0.1 s, and Ctrl-C stays quick."""


class OutputFramer:
    """Turns a byte stream into binary frames that end with whole characters.

    xterm.js loses a character that two messages share.
    """

    def __init__(self, offset: int) -> None:
        self.offset = offset
        """The offset behind the last byte framed."""
        self._held = b""

    def frame(self, data: bytes) -> bytes | None:
        """Return the next frame, or None if *data* only begins a character."""
        if self._held:
            data, self._held = self._held + data, b""
        cut = incomplete_suffix(data)
        if cut:
            data, self._held = data[:-cut], data[-cut:]
        if not data:
            return None
        frame = self.offset.to_bytes(OFFSET_BYTES, "big") + data
        self.offset += len(data)
        return frame

    def rest(self) -> bytes | None:
        """Return a frame with the beginning of a character that was never ended."""
        if not self._held:
            return None
        data, self._held = self._held, b""
        frame = self.offset.to_bytes(OFFSET_BYTES, "big") + data
        self.offset += len(data)
        return frame


class Window:
    """How much output may be on its way to a client."""

    def __init__(self, limit_bytes: int = WINDOW_BYTES) -> None:
        self._limit = limit_bytes
        self._sent = 0
        self._acknowledged = 0
        self._opened = asyncio.Event()
        self._opened.set()

    def restart(self, offset: int) -> None:
        """Count anew from *offset*: what was on its way before is superseded."""
        self._sent = self._acknowledged = offset
        self._opened.set()

    def sent(self, offset: int) -> None:
        """Take note that the output up to *offset* was sent."""
        self._sent = offset
        self._update()

    def acknowledged(self, offset: int) -> bool:
        """Take note of an ack; False if the client cannot have that output."""
        if offset > self._sent:
            return False
        # A lower one may still be on its way from before a repaint.
        self._acknowledged = max(self._acknowledged, offset)
        self._update()
        return True

    async def wait_open(self) -> None:
        """Return once more may be sent."""
        await self._opened.wait()

    def _update(self) -> None:
        if self._sent - self._acknowledged < self._limit:
            self._opened.set()
        else:
            self._opened.clear()
