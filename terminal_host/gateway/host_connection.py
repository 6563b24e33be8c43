"""A connection to one terminal host: kept up, its terminals followed, calls made."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from sidestage.errors import HostUnavailable
from sidestage.ids import TerminalId
from sidestage.terminals.model import HostEvent, HostEventKind, HostTerminal
from terminal_host.gateway.host_link import HostLink
from terminal_host.host_messages import decode_terminal
from terminal_host.wire import Frame, FrameInvalid

CALL_SECONDS: Final = 5.0
"""The host does these at once; it is a queue or a crash if it takes longer."""
RETRY_SECONDS: Final = (0.05, 0.2, 1.0, 2.0)
"""Between attempts to reach a host; the last is repeated."""

Value = TypeVar("Value")
_log = logging.getLogger(__name__)


class HostGone(Exception):
    """Nobody listens there, and nobody will: the connection need not be kept up."""


class HostConnection:
    """One host, whichever *connect* reaches. `keep` must run for it to work."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[tuple[Path, HostLink]]],
        on_event: Callable[[HostEvent], None],
    ) -> None:
        self.path = Path()
        """Where the host listens that was reached last."""
        self.terminals: dict[TerminalId, HostTerminal] = {}
        """What the host said last about each; kept while it is out of reach."""
        self.link: HostLink | None = None
        self._connect = connect
        self._on_event = on_event
        self._linked = asyncio.Event()
        self.settled = asyncio.Event()
        """Set once the host has told what it has, or is gone."""

    async def keep(self) -> None:
        """Connect, and again after each loss; returns once the host is gone."""
        attempt = 0
        while True:
            try:
                path, link = await self._connect()
                attempt, self.path = 0, path
                await self._follow(link)
            except HostGone:
                self.terminals = {}
                self.settled.set()
                self._linked.set()  # whoever waits is told at once that it is in vain
                return
            except (OSError, HostUnavailable, FrameInvalid) as error:
                _log.warning("no terminal host: %s", error)
            except Exception:  # noqa: BLE001  # a task's top: else nothing reconnects
                _log.exception("the terminal host's connection failed")
            await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
            attempt += 1

    async def wait_connected(self, seconds: float) -> None:
        """Return once the host answers; raises `HostUnavailable`."""
        try:
            async with asyncio.timeout(seconds):
                await self._linked.wait()
        except TimeoutError as error:
            raise HostUnavailable("The terminal host does not answer.") from error

    async def call(
        self, op: str, *, seconds: float = CALL_SECONDS, **fields: object
    ) -> Frame:
        """Ask the host for *op*; raises what it refuses with, or `HostUnavailable`."""
        await self.wait_connected(seconds)
        if self.link is None:
            raise HostUnavailable("The terminal host does not answer.")
        return await self.link.call(op, seconds=seconds, **fields)

    async def _follow(self, link: HostLink) -> None:
        """Serve calls by *link* until it ends."""
        running = asyncio.create_task(link.run(self._take_event))
        try:
            listed = await link.call("watch", seconds=CALL_SECONDS)
            terminals = decode_terminals(listed)
            self.terminals = {t.terminal_id: t for t in terminals}
            self.link = link
            self._linked.set()
            self.settled.set()
            self._on_event(HostEvent(HostEventKind.CONNECTED, terminals))
            await asyncio.wait([running])
        except HostUnavailable as error:
            _log.warning("the terminal host was lost at once: %s", error)
        finally:
            self._lose(link)
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            await link.wait_closed()

    def _lose(self, link: HostLink) -> None:
        link.close()
        if self.link is link:
            self.link = None
            self._linked.clear()
            self._on_event(HostEvent(HostEventKind.DISCONNECTED))

    def _take_event(self, frame: Frame) -> None:
        if frame.get("event") == "changed":
            terminal = decode_terminal(frame.get("terminal"))
            self.terminals[terminal.terminal_id] = terminal
            self._on_event(HostEvent(HostEventKind.CHANGED, (terminal,)))
        elif frame.get("event") == "removed":
            gone = self.terminals.pop(TerminalId(str(frame.get("terminal_id"))), None)
            if gone is not None:
                self._on_event(HostEvent(HostEventKind.REMOVED, (gone,)))


def checked(decode: Callable[[], Value]) -> Value:
    """Return what *decode* makes of an answer; a wrong one is `HostUnavailable`."""
    try:
        return decode()
    except FrameInvalid as error:
        raise HostUnavailable("The terminal host answers what no one asked.") from error


def decode_terminals(answer: Frame) -> tuple[HostTerminal, ...]:
    """Return the terminals that an answer lists."""
    values = answer.get("terminals") or ()
    return checked(lambda: tuple(map(decode_terminal, values)))
