"""The sockets on which hooks hand over what they were told.

One is shared by the agents the owner starts. Each terminal of ours has its own, and
that socket is its identity. Who connects is known from the kernel; another user is cut
off (docs/security.md, "Hooks").
"""

import asyncio
import logging
import os
import signal
import socket
import struct
import traceback
from collections import Counter
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from api.hook_frames import (
    HEADER_LIMIT_BYTES,
    TAKEN,
    FrameHeader,
    FrameInvalid,
    digest_of,
    parse_header,
)
from api.hook_hold import SocketHold
from sidestage.agents.claude_code.hook_intake import HookPeer
from sidestage.agents.processes import list_ancestors
from sidestage.ids import TerminalId
from sidestage.sessions.hooks import Hold
from sidestage.sessions.model import Process

SOCKET_NAME: Final = "hook.sock"
BACKLOG_CONNECTIONS: Final = 64
SHARED_LIMIT_CONNECTIONS: Final = 256
"""Hooks at once on the shared socket: some twenty that wait in each of ten sessions."""
TERMINAL_LIMIT_CONNECTIONS: Final = 32
"""Hooks at once of one terminal: twenty that wait, and a few that only tell."""
FRAME_SECONDS: Final = 2.0
"""For a whole frame: the hook program has it ready and gives up after 0.15 s."""
_CREDENTIALS: Final = struct.Struct("3i")
"""`struct ucred`: pid, uid, gid (unix(7))."""

_log = logging.getLogger(__name__)


class Intake(Protocol):
    """Takes events in, and knows whose they are."""

    async def take(self, data: bytes, peer: HookPeer, hold: Hold | None = None) -> None:
        """Take one event in; lets go the hold of one that it drops."""


def bind_hook_socket(folder: Path) -> socket.socket:
    """Listen at `hook.sock` (0600) in *folder*, in place of what was left there.

    The folder is opened and named by its descriptor: its own path may have more than
    the 107 bytes of a socket's. Raises `OSError`.
    """
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        (folder / SOCKET_NAME).unlink(missing_ok=True)
        listener.bind(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
        listener.listen(BACKLOG_CONNECTIONS)
        listener.setblocking(False)  # noqa: FBT003 the socket's own signature
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
        os.close(directory)
    return listener


class HookSocket:
    """Answers hooks on one listening socket, from `start` until `close`."""

    def __init__(
        self,
        listener: socket.socket,
        intake: Intake,
        counts: "Counter[str]",
        *,
        terminal_id: TerminalId | None = None,
    ) -> None:
        self._listener = listener
        self._intake = intake
        self._counts = counts
        self._terminal_id = terminal_id
        self._limit = (
            SHARED_LIMIT_CONNECTIONS
            if terminal_id is None
            else TERMINAL_LIMIT_CONNECTIONS
        )
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Begin to accept; who connected before is answered now."""
        self._server = await asyncio.start_unix_server(
            self._accept, sock=self._listener, limit=HEADER_LIMIT_BYTES
        )

    def stop_listening(self) -> None:
        """Take no further connection."""
        if self._server is not None:
            self._server.close()
        self._listener.close()

    async def close(self) -> None:
        """Cut every connection. A hook that waits tries to come back for a while."""
        self.stop_listening()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if len(self._tasks) >= self._limit:
            self._counts["hook_connections_refused"] += 1
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await self._answer(reader, writer)
        except (FrameInvalid, TimeoutError, asyncio.IncompleteReadError):
            self._counts["hook_frames_bad"] += 1
        except OSError:
            self._counts["hook_frames_bad"] += 1  # it hung up in the middle
        except Exception as error:  # noqa: BLE001 the top of a task: a bug of ours
            # Not the error's own text: it may hold what an agent wrote.
            where = "".join(traceback.format_tb(error.__traceback__))
            _log.error("A hook was not taken in: %s\n%s", type(error).__name__, where)
        finally:
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        pid, uid = read_credentials(writer.get_extra_info("socket"))
        if uid != os.geteuid():
            self._counts["hook_foreign_users"] += 1
            return
        async with asyncio.timeout(FRAME_SECONDS):
            header = parse_header(await _read_line(reader))
            payload = await reader.readexactly(header.length)
            # While the hook waits for this it lives, so its pid is its own.
            peer = await self._look_at(pid)
            writer.write(TAKEN)
            await writer.drain()
        if header.claim is None:
            writer.close()
            await self._intake.take(payload, peer)
        else:
            await self._wait(reader, writer, header, payload, peer)

    async def _wait(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        header: FrameHeader,
        payload: bytes,
        peer: HookPeer,
    ) -> None:
        claim = digest_of(header.claim or b"")
        hold = SocketHold(writer, digest=digest_of(payload), claim=claim)
        watching = asyncio.create_task(_watch_end(reader, hold))
        try:
            await self._intake.take(payload, peer, hold)
            await hold.wait_closed()
        finally:
            hold.gone()
            watching.cancel()

    async def _look_at(self, pid: int) -> HookPeer:
        if self._terminal_id is not None:
            return HookPeer(terminal_id=self._terminal_id)
        return HookPeer(ancestors=await asyncio.to_thread(look_at_peer, pid))


class HookSockets:
    """The shared socket and those of our terminals. For one event loop.

    What is added before `start` is answered then: its hooks wait in the backlog.
    """

    def __init__(
        self, intake: Intake, *, state_dir: Path, counts: "Counter[str]"
    ) -> None:
        self._intake = intake
        self._counts = counts
        self._state_dir = state_dir
        self._sockets: dict[TerminalId | None, HookSocket] = {}
        self._is_started = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Answer on every socket, the shared one among them. Raises `OSError`."""
        self._add(None, self._state_dir)
        self._is_started = True
        for each in self._sockets.values():
            await each.start()

    async def close(self) -> None:
        """Close every socket."""
        for each in self._sockets.values():
            await each.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def add_terminal(self, terminal_id: TerminalId) -> None:
        """Make the terminal's own socket, if it has a folder for one.

        Without it the agent runs as if there were no hooks: that is told, and no more.
        """
        self.remove_terminal(terminal_id)
        folder = self._state_dir / "terminals" / terminal_id / "hook"
        if not folder.is_dir():
            return  # a shell, which runs no hooks
        try:
            added = self._add(terminal_id, folder)
        except OSError as error:
            _log.error("No hook socket for %s: %s", terminal_id, error.strerror)
            return
        if self._is_started:
            self._start(added.start())

    def remove_terminal(self, terminal_id: TerminalId) -> None:
        """Close the terminal's socket; unknown ids are fine."""
        removed = self._sockets.pop(terminal_id, None)
        if removed is not None:
            removed.stop_listening()
            self._start(removed.close())

    def _add(self, terminal_id: TerminalId | None, folder: Path) -> HookSocket:
        listener = bind_hook_socket(folder)
        added = HookSocket(
            listener, self._intake, self._counts, terminal_id=terminal_id
        )
        self._sockets[terminal_id] = added
        return added

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def read_credentials(peer: Any) -> tuple[int, int]:  # noqa: ANN401 uvloop's socket is no `socket`
    """Return pid and user of the process that connected."""
    raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return pid, uid


def look_at_peer(pid: int) -> tuple[Process, ...]:
    """Return the process and its parents; nothing if it ended meanwhile. Blocks."""
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return ()
    try:
        found = list_ancestors(pid)
        # It still exists, so its pid was nobody else's while we looked.
        signal.pidfd_send_signal(held, 0)
    except OSError:
        return ()
    else:
        return found
    finally:
        os.close(held)


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError as error:
        raise FrameInvalid("no header") from error


async def _watch_end(reader: asyncio.StreamReader, hold: SocketHold) -> None:
    """Wait until the hook goes away; it has nothing more to say."""
    with suppress(OSError):  # cut off is gone too
        await reader.read(1)
    hold.gone()
