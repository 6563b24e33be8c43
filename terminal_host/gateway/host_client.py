"""`serve`'s client of the terminal host: the port `TerminalHost`, over its socket."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from sidestage.errors import HostUnavailable, SettingsInvalid
from sidestage.ids import ConversationId, TerminalId
from sidestage.terminals.model import (
    CreateTerminal,
    HostEvent,
    HostEventKind,
    HostTerminal,
)
from sidestage.terminals.screens import ScreenMatches, StyledLine
from terminal_host.gateway.host_attachment import HostAttachment, open_attachment
from terminal_host.gateway.host_events import EventQueue
from terminal_host.gateway.host_link import HostLink, open_link
from terminal_host.gateway.host_start import start_host
from terminal_host.host_messages import (
    AttachRequest,
    Holder,
    decode_terminal,
    encode_create,
)
from terminal_host.screen_messages import decode_line, decode_matches
from terminal_host.wire import (
    SOCKET_NAME,
    SOCKET_PATH_LIMIT_BYTES,
    Frame,
    FrameInvalid,
)

CALL_SECONDS: Final = 5.0
"""The host does these at once; it is a queue or a crash if it takes longer."""
CREATE_SECONDS: Final = 30.0
"""The first sandbox of a host is tried out before."""
END_SECONDS: Final = 20.0
"""Hang-up, kill, and some rounds for programs that fork while they die."""
RETRY_SECONDS: Final = (0.05, 0.2, 1.0, 2.0)
"""Between attempts to reach a host; the last is repeated."""

Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


class HostClient:
    """Implements `TerminalHost`. Made by `open_host`; for one event loop."""

    def __init__(
        self, state_dir: Path, arguments: Sequence[str], *, start: bool
    ) -> None:
        self._state_dir = state_dir
        self._path = state_dir / SOCKET_NAME
        self._arguments = tuple(arguments)
        self._start = start
        self._link: HostLink | None = None
        self._linked = asyncio.Event()
        self._terminals: dict[TerminalId, HostTerminal] = {}
        self._queues: set[EventQueue] = set()

    @property
    def engine(self) -> str | None:
        """Return which screen engine the host runs, or None without a connection."""
        return None if self._link is None else str(self._link.greeting.get("engine"))

    def find_terminal(self, terminal_id: TerminalId) -> HostTerminal | None:
        """Return what the host said last about the terminal, or None."""
        return self._terminals.get(terminal_id)

    async def create(self, request: CreateTerminal) -> HostTerminal:
        """Start a program, or return the terminal that has this id already."""
        answer = await self._call(
            "create", seconds=CREATE_SECONDS, request=encode_create(request)
        )
        return _decode(answer.get("terminal"))

    async def list_terminals(self) -> tuple[HostTerminal, ...]:
        """Return every terminal the host has, ended ones included."""
        return _decode_list(await self._call("list"))

    async def resize(self, terminal_id: TerminalId, *, cols: int, rows: int) -> None:
        """Set the size; raises `TerminalNotFound`, `TerminalNotRunning`."""
        await self._call("resize", terminal_id=terminal_id, cols=cols, rows=rows)

    async def end(self, terminal_id: TerminalId, *, reason: str | None = None) -> None:
        """End every process of the terminal; returns when they are gone."""
        await self._call(
            "end", seconds=END_SECONDS, terminal_id=terminal_id, reason=reason
        )

    async def remove(self, terminal_id: TerminalId) -> None:
        """End the terminal and forget it; raises `TerminalNotFound`."""
        await self._call("remove", seconds=END_SECONDS, terminal_id=terminal_id)

    async def hold_conversation(
        self, terminal_id: TerminalId, conversation_id: ConversationId
    ) -> None:
        """Move the terminal's lock; raises `OutsideSessionResumed`."""
        await self._call(
            "hold_conversation",
            terminal_id=terminal_id,
            conversation_id=conversation_id,
        )

    async def had_input(self, terminal_id: TerminalId) -> bool:
        """Tell whether anyone typed into the terminal since its start."""
        answer = await self._call("had_input", terminal_id=terminal_id)
        return bool(answer.get("had_input"))

    async def screen_text(self, terminal_id: TerminalId, *, lines: int) -> str:
        """Return the last *lines* lines of the screen as plain text."""
        answer = await self._call("screen_text", terminal_id=terminal_id, lines=lines)
        return str(answer.get("text", ""))

    async def screen_lines(
        self, terminal_id: TerminalId, *, lines: int
    ) -> tuple[StyledLine, ...]:
        """Return the last *lines* rows of history and screen, as runs."""
        answer = await self._call_newer(
            "screen_lines", terminal_id=terminal_id, lines=lines
        )
        return _checked(lambda: tuple(map(decode_line, answer.get("lines") or ())))

    async def search(
        self, terminal_id: TerminalId, *, text: str, limit: int
    ) -> ScreenMatches:
        """Return where *text* stands on the screen and in the history."""
        answer = await self._call_newer(
            "search", terminal_id=terminal_id, text=text, limit=limit
        )
        return _checked(lambda: decode_matches(answer))

    async def drop(self, holder: Holder) -> int:
        """End the attachments of *holder*; return how many there were."""
        return int((await self._call("drop", holder=holder)).get("dropped", 0))

    async def drain(self) -> None:
        """Let the host start nothing more; what runs goes on."""
        await self._call("drain")

    async def shut_down(self) -> None:
        """End the host and every terminal of it."""
        await self._call("shutdown")

    async def attach(self, request: AttachRequest) -> HostAttachment:
        """Open a client's end of a terminal; raises `TerminalNotFound`.

        Whoever calls it closes what is returned.
        """
        return await open_attachment(self._path, request)

    async def watch(self) -> AsyncIterator[HostEvent]:
        """Yield what changes: first CONNECTED with the whole list; until closed."""
        queue = EventQueue()
        self._queues.add(queue)
        if self._link is not None:
            queue.put(self._connected())
        try:
            while True:
                for event in await queue.take():
                    yield event
        finally:
            self._queues.discard(queue)

    async def keep_connected(self) -> None:
        """Connect, start the host if there is none, and again after each loss."""
        attempt = 0
        while True:
            try:
                link = await self._connect()
                attempt = 0
                await self._follow(link)
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

    async def _connect(self) -> HostLink:
        try:
            return await open_link(self._path)
        except (FileNotFoundError, ConnectionRefusedError):
            if not self._start:
                raise
        await start_host(self._state_dir, self._arguments)
        return await open_link(self._path)

    async def _follow(self, link: HostLink) -> None:
        """Serve calls by *link* until it ends."""
        running = asyncio.create_task(link.run(self._on_event))
        try:
            listed = await link.call("watch", seconds=CALL_SECONDS)
            terminals = _decode_list(listed)
            self._terminals = {t.terminal_id: t for t in terminals}
            self._link = link
            self._linked.set()
            self._tell(self._connected())
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
        if self._link is link:
            self._link = None
            self._linked.clear()
            self._terminals = {}
            self._tell(HostEvent(HostEventKind.DISCONNECTED))

    async def _call(
        self, op: str, *, seconds: float = CALL_SECONDS, **fields: object
    ) -> Frame:
        await self.wait_connected(seconds)
        if self._link is None:
            raise HostUnavailable("The terminal host does not answer.")
        return await self._link.call(op, seconds=seconds, **fields)

    async def _call_newer(self, op: str, **fields: object) -> Frame:
        """Call what hosts of version 1 do not know."""
        await self.wait_connected(CALL_SECONDS)
        if self._link is not None and self._link.greeting.get("version") == 1:
            raise HostUnavailable(
                "The terminal host is older than the server and cannot do this. It is "
                "replaced once its terminals have ended."
            )
        return await self._call(op, seconds=CALL_SECONDS, **fields)

    def _connected(self) -> HostEvent:
        return HostEvent(HostEventKind.CONNECTED, tuple(self._terminals.values()))

    def _on_event(self, frame: Frame) -> None:
        if frame.get("event") == "changed":
            terminal = decode_terminal(frame.get("terminal"))
            self._terminals[terminal.terminal_id] = terminal
            self._tell(HostEvent(HostEventKind.CHANGED, (terminal,)))
        elif frame.get("event") == "removed":
            gone = self._terminals.pop(TerminalId(str(frame.get("terminal_id"))), None)
            if gone is not None:
                self._tell(HostEvent(HostEventKind.REMOVED, (gone,)))

    def _tell(self, event: HostEvent) -> None:
        for queue in self._queues:
            queue.put(event)


@asynccontextmanager
async def open_host(
    state_dir: Path, *, arguments: Sequence[str] = (), start: bool = True
) -> AsyncGenerator[HostClient]:
    """Keep a connection to the folder's host until the block ends.

    Starts the host, with *arguments*, when there is none (unless *start* is false); it
    and its terminals stay when the block ends. Raises `SettingsInvalid` if the folder's
    path is too long for a socket.
    """
    path = state_dir / SOCKET_NAME
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT_BYTES:
        raise SettingsInvalid(
            f"The path of the socket {path} is longer than {SOCKET_PATH_LIMIT_BYTES} "
            "bytes. Choose a shorter state folder."
        )
    client = HostClient(state_dir, arguments, start=start)
    keeping = asyncio.create_task(client.keep_connected())
    try:
        yield client
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


def _decode(value: object) -> HostTerminal:
    return _checked(lambda: decode_terminal(value))


def _checked(decode: Callable[[], Answer]) -> Answer:
    try:
        return decode()
    except FrameInvalid as error:
        raise HostUnavailable("The terminal host answers what no one asked.") from error


def _decode_list(answer: Frame) -> tuple[HostTerminal, ...]:
    return tuple(_decode(value) for value in answer.get("terminals") or ())
