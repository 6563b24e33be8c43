"""One client's end of a terminal: a raw socket that output leaves and input enters."""

import asyncio
import socket
from typing import Final, Protocol

from terminal_host.host.ring import Ring
from terminal_host.host_messages import Holder

SEND_LIMIT_BYTES: Final = 1 << 18
"""Handed to the kernel in one call; more than a socket takes is no gain."""
RECEIVE_LIMIT_BYTES: Final = 1 << 16
FAREWELL_SECONDS: Final = 5.0
"""How long a client may take to read what is left of an ended terminal."""


class Source(Protocol):
    """The terminal, as its attachments see it."""

    @property
    def ring(self) -> Ring:
        """Return the latest output."""

    @property
    def finished(self) -> bool:
        """Tell whether the ring will never grow again."""

    def progressed(self) -> None:
        """Take note that an attachment has sent something."""

    def take_input(self, data: bytes) -> bool:
        """Write *data* to the program; False if no more must come before `wake`."""

    def detached(self, attachment: "Attachment") -> None:
        """Take note that an attachment is closed."""


class Attachment:
    """Sends the output from an offset on, as fast as its own client takes it.

    Owns the socket. It closes when the client goes, when the terminal has ended and all
    is sent, when the client has fallen behind what is held, or when it is dropped. A
    client that sees the end attaches again and is told which it was.
    """

    def __init__(
        self,
        source: Source,
        connection: socket.socket,
        *,
        writable: bool,
        holder: Holder,
    ) -> None:
        self.holder = holder
        self.position = source.ring.end
        self.stalled = False
        """Whether its client took nothing for so long that it is not waited for."""
        self._source = source
        self._socket = connection
        self._writable = writable
        self._prologue = memoryview(b"")
        self._blocked = False
        self._farewell: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()

    def start(self, prologue: bytes, position: int, early_input: bytes) -> None:
        """Send *prologue*, then the output from *position*; read the client's input."""
        self.position = position
        self._prologue = memoryview(prologue)
        self._loop.add_reader(self._socket.fileno(), self._on_readable)
        self.flush()
        if early_input and not self.closed.done():
            self._take(early_input)

    def flush(self) -> None:
        """Send what there is, as far as the socket takes it now."""
        if self.position < self._source.ring.start:
            self.close()  # fell behind what is held: its client comes back
        while not self._blocked and not self.closed.done():
            views = self._next_views()
            if not views:
                self._finish_if_over()
                return
            self._send(views)

    def wake(self) -> None:
        """Read the client's input again."""
        if not self.closed.done():
            self._loop.add_reader(self._socket.fileno(), self._on_readable)

    def close(self) -> None:
        """Close the socket. Closing twice is fine."""
        if self.closed.done():
            return
        self.closed.set_result(None)
        if self._farewell is not None:
            self._farewell.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self._source.detached(self)

    def _next_views(self) -> list[memoryview]:
        if self._prologue:
            return [self._prologue]
        if self.position >= self._source.ring.end:
            return []
        return self._source.ring.take(self.position, SEND_LIMIT_BYTES)

    def _send(self, views: list[memoryview]) -> None:
        try:
            count = self._socket.sendmsg(views)
        except BlockingIOError:
            count = 0
        except OSError:  # the client is gone
            self.close()
            return
        if self._prologue:
            self._prologue = self._prologue[count:]
        else:
            self.position += count
        if count < sum(map(len, views)):
            self._blocked = True
            self._loop.add_writer(self._socket.fileno(), self._on_writable)
        if count:
            self.stalled = False
            self._source.progressed()

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._socket.fileno())
        self._blocked = False
        self.flush()

    def _finish_if_over(self) -> None:
        if not self._source.finished or self._farewell is not None:
            return
        # Only half closed: closing with unread input would take the rest of the output
        # away from the client (unix sockets reset then).
        self._socket.shutdown(socket.SHUT_WR)
        self._farewell = self._loop.call_later(FAREWELL_SECONDS, self.close)

    def _on_readable(self) -> None:
        try:
            data = self._socket.recv(RECEIVE_LIMIT_BYTES)
        except BlockingIOError:
            return
        except OSError:  # the client is gone
            data = b""
        if data:
            self._take(data)
        else:
            self.close()

    def _take(self, data: bytes) -> None:
        if not self._writable:
            self.close()  # the gateway lets no input of a viewer through
        elif not self._source.take_input(data):
            self._loop.remove_reader(self._socket.fileno())
