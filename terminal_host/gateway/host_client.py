"""`serve`'s client of the terminal host: the port `TerminalHost`, over its socket."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from sidestage.errors import HostUnavailable, OutsideSessionResumed, SettingsInvalid
from sidestage.ids import ConversationId, TerminalId
from sidestage.terminals.model import (
    CreateTerminal,
    HostEvent,
    HostEventKind,
    HostTerminal,
    TerminalState,
)
from sidestage.terminals.screens import ScreenMatches, StyledLine
from terminal_host.gateway.host_attachment import HostAttachment, open_attachment
from terminal_host.gateway.host_connection import (
    CALL_SECONDS,
    HostConnection,
    HostGone,
    checked,
    decode_terminals,
)
from terminal_host.gateway.host_events import EventQueue
from terminal_host.gateway.host_link import (
    HostLink,
    find_link,
    is_current,
    open_link,
)
from terminal_host.gateway.host_start import start_host
from terminal_host.host_messages import (
    AttachRequest,
    Holder,
    decode_terminal,
    encode_create,
)
from terminal_host.screen_messages import decode_line, decode_matches
from terminal_host.wire import (
    BESIDE_SOCKET_NAME,
    SOCKET_NAME,
    SOCKET_PATH_LIMIT_BYTES,
    Frame,
)

CREATE_SECONDS: Final = 30.0
"""The first sandbox of a host is tried out before."""
END_SECONDS: Final = 20.0
"""Hang-up, kill, and some rounds for programs that fork while they die."""


class HostClient:
    """Implements `TerminalHost`. Made by `open_host`; for one event loop.

    An upgraded server may find a host of the protocol before. That one keeps its
    terminals and starts nothing more; a new host beside it takes the new ones, and each
    call goes to the host that has the terminal.
    """

    def __init__(
        self, state_dir: Path, arguments: Sequence[str], *, start: bool
    ) -> None:
        self._state_dir = state_dir
        self._arguments = tuple(arguments)
        self._start = start
        self._host = HostConnection(self._connect, self._on_event)
        self._older: HostConnection | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._queues: set[EventQueue] = set()

    @property
    def engine(self) -> str | None:
        """Return which screen engine the host runs, or None without a connection."""
        link = self._host.link
        return None if link is None else str(link.greeting.get("engine"))

    def find_terminal(self, terminal_id: TerminalId) -> HostTerminal | None:
        """Return what the host said last about the terminal, or None."""
        return self._all_terminals().get(terminal_id)

    async def create(self, request: CreateTerminal) -> HostTerminal:
        """Start a program, or return the terminal that has this id already."""
        self._check_conversation(request.conversation_id, request.terminal_id)
        answer = await self._host_of(request.terminal_id).call(
            "create", seconds=CREATE_SECONDS, request=encode_create(request)
        )
        return checked(lambda: decode_terminal(answer.get("terminal")))

    async def list_terminals(self) -> tuple[HostTerminal, ...]:
        """Return every terminal the host has, ended ones included."""
        listed = [await host.call("list") for host in self._hosts()]
        return tuple(one for answer in listed for one in decode_terminals(answer))

    async def resize(self, terminal_id: TerminalId, *, cols: int, rows: int) -> None:
        """Set the size; raises `TerminalNotFound`, `TerminalNotRunning`."""
        await self._call("resize", terminal_id=terminal_id, cols=cols, rows=rows)

    async def rename(self, terminal_id: TerminalId, name: str) -> None:
        """Let the record of the screen carry that name; waits for no host."""
        if self._host_of(terminal_id).link is None:
            raise HostUnavailable("The terminal host does not answer.")
        await self._call_newer("rename", terminal_id=terminal_id, name=name)

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
        self._check_conversation(conversation_id, terminal_id)
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
        return checked(lambda: tuple(map(decode_line, answer.get("lines") or ())))

    async def search(
        self, terminal_id: TerminalId, *, text: str, limit: int
    ) -> ScreenMatches:
        """Return where *text* stands on the screen and in the history."""
        answer = await self._call_newer(
            "search", terminal_id=terminal_id, text=text, limit=limit
        )
        return checked(lambda: decode_matches(answer))

    async def drop(self, holder: Holder) -> int:
        """End the attachments of *holder*; return how many there were."""
        answers = [await host.call("drop", holder=holder) for host in self._hosts()]
        return sum(int(answer.get("dropped", 0)) for answer in answers)

    async def drain(self) -> None:
        """Let the host start nothing more; what runs goes on."""
        await self._host.call("drain")

    async def shut_down(self) -> None:
        """End the host and every terminal of it, an older one's too."""
        for host in self._hosts():
            await host.call("shutdown")

    async def attach(self, request: AttachRequest) -> HostAttachment:
        """Open a client's end of a terminal; raises `TerminalNotFound`.

        Whoever calls it closes what is returned.
        """
        host = self._host_of(request.terminal_id)
        return await open_attachment(host.path, request)

    async def watch(self) -> AsyncIterator[HostEvent]:
        """Yield what changes: first CONNECTED with the whole list; until closed."""
        queue = EventQueue()
        self._queues.add(queue)
        if self._host.link is not None:
            queue.put(self._connected())
        try:
            while True:
                for event in await queue.take():
                    yield event
        finally:
            self._queues.discard(queue)

    async def keep_connected(self) -> None:
        """Connect, start the host if there is none, and again after each loss."""
        await self._host.keep()

    async def wait_connected(self, seconds: float) -> None:
        """Return once the host answers; raises `HostUnavailable`."""
        await self._host.wait_connected(seconds)

    async def close(self) -> None:
        """Let go of an older host. Call it once `keep_connected` has ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self) -> tuple[Path, HostLink]:
        """Reach the host that takes new terminals, started if need be."""
        usual = self._state_dir / SOCKET_NAME
        beside = self._state_dir / BESIDE_SOCKET_NAME
        newer = await find_link(beside)
        link = await find_link(usual) if self._older is None else None
        if link is not None:
            # With no other host in sight, an older one is better than none.
            if is_current(link) or not (newer or self._start):
                return usual, link
            link.close()
            await self._keep_older(usual)
        if newer is not None:
            return beside, newer
        if not self._start:
            raise HostUnavailable("There is no terminal host.")
        if self._older is None:
            await start_host(self._state_dir, self._arguments)
            return usual, await open_link(usual)
        spared = (word for each in self._older.terminals for word in ("--spare", each))
        await start_host(self._state_dir, (*self._arguments, "--beside", *spared))
        return beside, await open_link(beside)

    async def _keep_older(self, path: Path) -> None:
        """Let the older host at *path* keep what it runs, until that has ended."""

        async def connect() -> tuple[Path, HostLink]:
            link = await find_link(path)
            if link is None:
                raise HostGone
            return path, link

        older = HostConnection(connect, self._on_older)
        self._older = older
        self._do(self._follow_older(older))
        async with asyncio.timeout(CALL_SECONDS):
            await older.settled.wait()

    async def _follow_older(self, older: HostConnection) -> None:
        try:
            await older.keep()
        finally:
            self._older = None
        if self._host.link is not None:
            self._tell(self._connected())  # what it ran until now is LOST

    def _on_older(self, event: HostEvent) -> None:
        if event.kind is HostEventKind.DISCONNECTED:
            return  # it answers soon, or is gone
        if self._host.link is not None:
            connected = event.kind is HostEventKind.CONNECTED
            self._tell(self._connected() if connected else event)
        if self._older is not None:
            if event.kind is HostEventKind.CONNECTED:
                self._do(self._order(self._older, "drain"))
            if not self._older.terminals:
                self._do(self._order(self._older, "shutdown"))

    async def _order(self, older: HostConnection, op: str) -> None:
        with suppress(HostUnavailable):  # then it is told when it answers again
            await older.call(op)

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _hosts(self) -> list[HostConnection]:
        return [host for host in (self._older, self._host) if host is not None]

    def _host_of(self, terminal_id: TerminalId) -> HostConnection:
        older = self._older
        has_it = older is not None and terminal_id in older.terminals
        return older if older is not None and has_it else self._host

    def _check_conversation(
        self, conversation_id: ConversationId | None, terminal_id: TerminalId
    ) -> None:
        """Hold one host's lock against the other; each holds its own by itself."""
        own = self._host_of(terminal_id)
        for host in self._hosts():
            for terminal in () if host is own else host.terminals.values():
                held = terminal.state is TerminalState.RUNNING and conversation_id
                if held and terminal.conversation_id == conversation_id:
                    raise OutsideSessionResumed(
                        "This session is already open in a terminal.",
                        terminal_id=terminal.terminal_id,
                    )

    async def _call(
        self,
        op: str,
        *,
        terminal_id: TerminalId,
        seconds: float = CALL_SECONDS,
        **fields: object,
    ) -> Frame:
        """Call the host that has the terminal."""
        host = self._host_of(terminal_id)
        return await host.call(op, seconds=seconds, terminal_id=terminal_id, **fields)

    async def _call_newer(
        self, op: str, *, terminal_id: TerminalId, **fields: str | int
    ) -> Frame:
        """Call what hosts of version 1 do not know."""
        host = self._host_of(terminal_id)
        await host.wait_connected(CALL_SECONDS)
        if host.link is not None and host.link.greeting.get("version") == 1:
            raise HostUnavailable(
                "The terminal's host is older than the server and cannot do this. It "
                "is replaced once its terminals have ended."
            )
        return await host.call(
            op, seconds=CALL_SECONDS, terminal_id=terminal_id, **fields
        )

    def _all_terminals(self) -> dict[TerminalId, HostTerminal]:
        older = {} if self._older is None else self._older.terminals
        # Out of reach, the host's own terminals are nobody's knowledge.
        own = self._host.terminals if self._host.link is not None else {}
        return {**older, **own}

    def _connected(self) -> HostEvent:
        everything = tuple(self._all_terminals().values())
        return HostEvent(HostEventKind.CONNECTED, everything)

    def _on_event(self, event: HostEvent) -> None:
        connected = event.kind is HostEventKind.CONNECTED
        self._tell(self._connected() if connected else event)

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
        await client.close()
