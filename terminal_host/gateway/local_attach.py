"""`sidestage attach`: the terminal it was called in shows a terminal of ours.

Its bytes are copied; the terminal itself is never lent to a program.
"""

import asyncio
import fcntl
import json
import os
import signal
import struct
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from terminal_host.gateway.attach_filter import LEAVE, AttachFilter
from terminal_host.gateway.messages import (
    OFFSET_BYTES,
    Ack,
    Attach,
    ClientMessage,
    Pong,
    Resize,
    encode_message,
)

PREFIX_KEY: Final = b"\x1d"
"""Ctrl-]: telnet's escape, which no agent uses."""
DETACH_KEYS: Final = b"dD"
READ_BYTES: Final = 65536

_PREFIX_FORMS: Final = (b"\x1b[93;5u", b"\x1b[27;5;93~")
"""Ctrl-] from a terminal in which the program asked for fuller key reports: kitty's
keyboard protocol, and xterm's modifyOtherKeys."""
_WINSIZE = struct.Struct("HHHH")
_STOPPING = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attachment ended."""

    detached: bool
    """Whether the owner detached; the terminal goes on."""
    exit_status: int | None
    """The program's status, if it has ended."""
    close_code: int | None
    reason: str


class DetachKeys:
    """Finds the detach keys in what is typed: Ctrl-] d; Ctrl-] twice types one."""

    def __init__(self) -> None:
        self._prefixed = False
        self.detached = False

    def feed(self, data: bytes) -> bytes:
        """Return what is to be sent of *data*; nothing behind the detach keys."""
        sent = bytearray()
        for form in _PREFIX_FORMS:
            data = data.replace(form, PREFIX_KEY)
        for byte in data:
            key = bytes([byte])
            if self._prefixed:
                self._prefixed = False
                if key in DETACH_KEYS:
                    self.detached = True
                    break
                sent += key if key == PREFIX_KEY else PREFIX_KEY + key
            elif key == PREFIX_KEY:
                self._prefixed = True
            else:
                sent += key
        return bytes(sent)


class LocalAttachment:
    """Copies between an established WebSocket and a terminal's descriptors."""

    def __init__(
        self, connection: ClientConnection, *, keyboard: int, display: int, view: bool
    ) -> None:
        self._connection = connection
        self._keyboard = keyboard
        self._display = display
        self._view = view
        self._filter = AttachFilter()
        self._keys = DetachKeys()
        self._typed: asyncio.Queue[bytes] = asyncio.Queue(1)
        self._resized = asyncio.Event()
        self._stopped = asyncio.Event()
        self._offset = 0
        self._repaint_left = 0
        self._exit_status: int | None = None
        self._reason = ""

    async def run(self, ticket: str) -> Outcome:
        """Attach with *ticket*; copy until either side ends. Restore the terminal."""
        loop = asyncio.get_running_loop()
        cols, rows = terminal_size(self._display)
        await self._send(Attach(ticket=ticket, cols=cols, rows=rows))
        with _raw(self._keyboard), self._signals(loop):
            loop.add_reader(self._keyboard, self._on_key)
            try:
                await self._copy()
            finally:
                loop.remove_reader(self._keyboard)
                with suppress(OSError):
                    await asyncio.to_thread(_write_all, self._display, LEAVE)
        with suppress(ConnectionClosed):
            await self._connection.close()
        return Outcome(
            self._keys.detached,
            self._exit_status,
            self._connection.close_code,
            self._reason or self._connection.close_reason or "",
        )

    async def _copy(self) -> None:
        work = (
            self._show(),
            self._send_keys(),
            self._send_sizes(),
            self._stopped.wait(),
        )
        tasks = [asyncio.ensure_future(part) for part in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            error = task.exception()
            if error is not None and not isinstance(error, ConnectionClosed):
                raise error

    async def _show(self) -> None:
        """Show what the server sends, until it closes."""
        async for frame in self._connection:
            if isinstance(frame, str):
                await self._take(json.loads(frame))
            else:
                await self._show_output(frame)

    async def _show_output(self, frame: bytes) -> None:
        data = frame[OFFSET_BYTES:]
        await asyncio.to_thread(_write_all, self._display, self._filter.feed(data))
        if self._repaint_left > 0:
            self._repaint_left -= len(data)
        else:
            self._offset += len(data)
            await self._send(Ack(self._offset))

    async def _take(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "ping":
            await self._send(Pong())
        elif kind == "attached":
            self._offset = message["offset"]
        elif kind == "repaint":
            self._offset, self._repaint_left = message["offset"], message["length"]
            begin = self._filter.restart()
            await asyncio.to_thread(_write_all, self._display, begin)
        elif kind == "exit":
            self._exit_status = message.get("status")
        elif kind == "error":
            self._reason = str(message.get("message", ""))

    def _on_key(self) -> None:
        try:
            data = os.read(self._keyboard, READ_BYTES)
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            self._stopped.set()
            return
        keys = self._keys.feed(data)
        # A VIEW ticket admits no input: the server would end the connection.
        if keys and not self._view:
            # Full after one piece: the keyboard is read again once it is sent.
            asyncio.get_running_loop().remove_reader(self._keyboard)
            self._typed.put_nowait(keys)
        if self._keys.detached:
            self._stopped.set()

    async def _send_keys(self) -> None:
        while True:
            await self._connection.send(await self._typed.get())
            asyncio.get_running_loop().add_reader(self._keyboard, self._on_key)

    async def _send_sizes(self) -> None:
        while True:
            await self._resized.wait()
            self._resized.clear()
            if self._view:  # nor a size
                continue
            cols, rows = terminal_size(self._display)
            await self._send(Resize(cols, rows))

    async def _send(self, message: ClientMessage) -> None:
        await self._connection.send(encode_message(message))

    @contextmanager
    def _signals(self, loop: asyncio.AbstractEventLoop) -> Generator[None]:
        loop.add_signal_handler(signal.SIGWINCH, self._resized.set)
        for number in _STOPPING:  # so that the terminal is restored then too
            loop.add_signal_handler(number, self._stopped.set)
        try:
            yield
        finally:
            for number in (signal.SIGWINCH, *_STOPPING):
                loop.remove_signal_handler(number)


async def attach_local(
    connection: ClientConnection,
    ticket: str,
    *,
    keyboard: int = 0,
    display: int = 1,
    view: bool = False,
) -> Outcome:
    """Show the terminal that *ticket* admits to, on this process's own terminal.

    *connection* is a WebSocket to the terminal's path, with its subprotocol; it is
    closed at the end. With *view*, as a VIEW ticket demands, neither keys nor sizes are
    sent; the detach keys work. Raises `OSError` if *keyboard* is no terminal.
    """
    attachment = LocalAttachment(
        connection, keyboard=keyboard, display=display, view=view
    )
    return await attachment.run(ticket)


def terminal_size(descriptor: int) -> tuple[int, int]:
    """Return columns and rows of a terminal, at least 1 by 1."""
    data = fcntl.ioctl(descriptor, termios.TIOCGWINSZ, b"\0" * _WINSIZE.size)
    rows, cols, _, _ = _WINSIZE.unpack(data)
    return max(cols, 1), max(rows, 1)


@contextmanager
def _raw(descriptor: int) -> Generator[None]:
    """Take a terminal's own editing and echo away until the block ends."""
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error as error:  # which is no OSError
        raise OSError(*error.args) from error
    tty.setraw(descriptor)
    try:
        yield
    finally:
        # Gone terminals need none; and at once, since one that was stopped (Ctrl-S)
        # would never drain.
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
