"""One terminal: its program, its output, its screen and its clients."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import UTC, datetime
from typing import Final

from sidestage.errors import TerminalNotRunning
from sidestage.ids import ConversationId
from sidestage.terminals.model import (
    CreateTerminal,
    HostTerminal,
    SandboxReport,
    TerminalState,
)
from sidestage.terminals.screens import StyledLine
from terminal_host.host.attachment import Attachment
from terminal_host.host.live_screen import LiveScreen, Notices
from terminal_host.host.pace import GATHER_BYTES, GATHER_SECONDS, Pace
from terminal_host.host.processes import ProcessKey
from terminal_host.host.pty import PtyProgram
from terminal_host.host.ring import Ring
from terminal_host.host.tail_screen import Picture
from terminal_host.host.tracker import ScreenTracker
from terminal_host.host_messages import Attached, AttachRequest
from terminal_host.input_kind import InputKind, classify_input
from terminal_host.utf8 import incomplete_suffix

HELD_LIMIT_BYTES: Final = 1 << 20
"""Output held for clients that come back: about 500 full screens of 80 by 24."""
AHEAD_LIMIT_BYTES: Final = 512 * 1024
"""The program is not read while even the fastest client is this far behind."""
STALL_SECONDS: Final = 2.0
"""A client that takes nothing for so long is no longer waited for."""
INPUT_LIMIT_BYTES: Final = 1 << 20
"""Input the program has not read; its sender is not read until there is room."""
FINAL_READ_LIMIT_BYTES: Final = 1 << 20
"""Read after the program's end; the kernel holds only some KiB."""
QUIET_SECONDS: Final = 1.0
"""Output alone tells watchers that a terminal changed, at most this often."""


class HostedTerminal:
    """A terminal of this host. Its registry spawns the program and ends it."""

    lost = False

    def __init__(
        self,
        request: CreateTerminal,
        program: PtyProgram,
        root: ProcessKey,
        *,
        screen: LiveScreen,
        executor: Executor,
        pace: Pace,
        sandbox: SandboxReport,
        on_change: Callable[["HostedTerminal"], None],
        on_screen: Callable[["HostedTerminal"], None],
        held_limit_bytes: int = HELD_LIMIT_BYTES,
    ) -> None:
        self.id = request.terminal_id
        self.root = root
        self.ring = Ring(held_limit_bytes)
        self.conversation_id: ConversationId | None = request.conversation_id
        self.had_input = False
        self.finished = False
        self.attachments: list[Attachment] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Set once the terminal is EXITED: nothing of it runs any more."""
        self._program = program
        self._pace = pace
        self._sandbox = sandbox
        self._on_change = on_change
        self._on_screen = on_screen  # called for each piece of output: it must be quick
        self._name, self._project_id = request.name, request.project_id
        self._size = (request.cols, request.rows)
        self._started_at = datetime.now(UTC)
        self._ended_at: datetime | None = None
        self._exit_status: int | None = None
        self._title: str | None = None
        self._output_at: datetime | None = None
        self._input_at: datetime | None = None
        self._bell_at: datetime | None = None
        self._loop = asyncio.get_running_loop()
        self._tracker = ScreenTracker(
            screen, executor, on_notices=self._act_on, on_room=self._update_reading
        )
        self._pins: list[int] = []
        self._input: deque[memoryview] = deque()
        self._input_bytes = 0
        self._input_full = False
        self._hung_up = False
        self._reading = False
        self._gathered_bytes = 0
        self._gathering: asyncio.TimerHandle | None = None
        self._stalling: asyncio.TimerHandle | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._update_reading()

    @property
    def running(self) -> bool:
        """Tell whether the program has not ended."""
        return self._ended_at is None

    def describe(self) -> HostTerminal:
        """Return the terminal as the host's clients see it."""
        cols, rows = self._size
        return HostTerminal(
            terminal_id=self.id,
            state=TerminalState.RUNNING if self.running else TerminalState.EXITED,
            cols=cols,
            rows=rows,
            pid=self.root.pid if self.running else None,
            exit_status=self._exit_status,
            title=self._title,
            started_at=self._started_at,
            ended_at=self._ended_at,
            last_output_at=self._output_at,
            last_input_at=self._input_at,
            bell_at=self._bell_at,
            attached_clients=len(self.attachments),
            sandbox=self._sandbox,
            conversation_id=self.conversation_id,
            name=self._name,
            project_id=self._project_id,
        )

    def resize(self, cols: int, rows: int) -> None:
        """Set the size; raises `TerminalNotRunning`."""
        if not self.running:
            raise TerminalNotRunning("This terminal has ended.")
        if (cols, rows) == self._size:
            return
        self._size = (cols, rows)
        self._program.resize(cols, rows)
        self._tracker.resize(cols, rows)
        self._on_screen(self)
        self._on_change(self)

    def rename(self, name: str) -> None:
        """Take another name, which the next record carries."""
        self._name = name
        self._on_screen(self)
        self._on_change(self)

    async def text(self, lines: int) -> str:
        """Return the last *lines* lines of the screen as plain text."""
        return await self._tracker.text(lines)

    async def styled(self, lines: int) -> tuple[StyledLine, ...]:
        """Return the last *lines* rows of history and screen."""
        return await self._tracker.styled(lines)

    async def picture(self, limit_bytes: int) -> tuple[Picture | None, int]:
        """Return the screen for a record, and the offset it stands for."""
        offset = self.ring.end
        return await self._tracker.picture(limit_bytes), offset

    async def open_at(self, request: AttachRequest) -> tuple[Attached, bytes]:
        """Return where a client's output begins, and the repaint that comes before."""
        after, repaint = request.after, b""
        if after is not None and self.ring.holds(after):
            offset = after
        else:
            offset, repaint = await self._repaint()
        cols, rows = self._size
        return Attached(
            offset=offset,
            repaint_bytes=len(repaint),
            cols=cols,
            rows=rows,
            running=self.running,
            exit_status=self._exit_status,
        ), repaint

    def add(self, attachment: Attachment) -> None:
        """Take a client in; `detached` is called when it goes."""
        self.attachments.append(attachment)
        self._on_change(self)

    def detached(self, attachment: Attachment) -> None:
        """Let a client go that was closed."""
        if attachment in self.attachments:
            self.attachments.remove(attachment)
            self._on_change(self)
        self._update_reading()

    def progressed(self) -> None:
        """Read the program again if it waited for a client."""
        if not self._reading:
            self._update_reading()

    def take_input(self, data: bytes) -> bool:
        """Write *data* to the program; False if no more must come until `wake`."""
        self._write(data)  # first: an echo waits for nothing
        self._pace.note_input()
        if classify_input(data) is not InputKind.REPORT:
            self.had_input = True
            self._input_at = datetime.now(UTC)
            self._change_soon()
        self._input_full = self._input_bytes > INPUT_LIMIT_BYTES
        return not self._input_full

    async def finish(self, exit_status: int) -> None:
        """Take note that the program and all it started have ended."""
        self._loop.remove_writer(self._program.fd)
        self._read_rest()
        self._hung_up = True
        self._stop_reading()
        self._program.close()
        await self._tracker.settle()
        self._exit_status = exit_status
        self._ended_at = datetime.now(UTC)
        self.finished = True
        for timer in (self._gathering, self._stalling, self._quiet):
            if timer is not None:
                timer.cancel()
        self._flush()
        self._on_screen(self)
        self._on_change(self)
        if not self.done.done():
            self.done.set_result(None)

    def close(self) -> None:
        """Close every attachment."""
        for attachment in tuple(self.attachments):
            attachment.close()

    async def _repaint(self) -> tuple[int, bytes]:
        offset = self.ring.end
        # Pinned: what comes behind the repaint must still be held when it is ready.
        self._pins.append(offset)
        try:
            repaint = await self._tracker.replay()
        finally:
            self._pins.remove(offset)
            self._update_reading()
        # A cut character is left to the output: no message may end inside one.
        cut = incomplete_suffix(repaint)
        if cut and self.ring.holds(offset - cut):
            return offset - cut, repaint[:-cut]
        return offset, repaint

    def _on_readable(self) -> None:
        turn = self._pace.turn_bytes()
        data, hung_up = self._program.read_turn(turn)
        self.ring.append(data)
        # Clients first: an echo waits for nothing.
        if len(data) >= turn and not hung_up:
            self._gather(len(data))
        else:
            self._flush()
        self._note_output(data)
        if hung_up:
            self._hung_up = True
            self._update_reading()

    def _read_rest(self) -> None:
        """Read what the ended program left behind."""
        left = FINAL_READ_LIMIT_BYTES
        while not self._hung_up and left > 0:
            data, self._hung_up = self._program.read_turn(left)
            if not data:
                return
            left -= len(data)
            self.ring.append(data)
            self._note_output(data)

    def _note_output(self, data: bytes) -> None:
        if not data:
            return
        self._tracker.add(data)
        self._output_at = datetime.now(UTC)
        self._on_screen(self)
        self._change_soon()
        self._update_reading()

    def _gather(self, count: int) -> None:
        self._gathered_bytes += count
        if self._gathered_bytes >= GATHER_BYTES:
            self._flush()
        elif self._gathering is None:
            self._gathering = self._loop.call_later(GATHER_SECONDS, self._flush)

    def _flush(self) -> None:
        self._gathered_bytes = 0
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        for attachment in tuple(self.attachments):
            attachment.flush()

    def _update_reading(self) -> None:
        wanted = not self._hung_up and self.running and not self._must_wait()
        if wanted and not self._reading:
            self._reading = True
            self._loop.add_reader(self._program.fd, self._on_readable)
        elif not wanted and self._reading:
            self._stop_reading()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._program.fd)

    def _must_wait(self) -> bool:
        """Tell whether the program is to wait: the kernel's buffer stops it."""
        if self._tracker.full:
            return True
        if self._pins and self.ring.end - min(self._pins) > AHEAD_LIMIT_BYTES:
            return True
        followed = [a.position for a in self.attachments if not a.stalled]
        if not followed or self.ring.end - max(followed) <= AHEAD_LIMIT_BYTES:
            return False
        if self._stalling is None:
            self._stalling = self._loop.call_later(
                STALL_SECONDS, self._give_up_waiting, {*followed}
            )
        return True

    def _give_up_waiting(self, positions: set[int]) -> None:
        """Wait no longer for the clients that still are where they were."""
        self._stalling = None
        for attachment in self.attachments:
            attachment.stalled = attachment.position in positions
        self._update_reading()

    def _act_on(self, notices: Notices) -> None:
        if notices.answers and self.running:
            self._write(notices.answers)
        if notices.title is not None:
            self._title = notices.title
            self._change_soon()  # some programs animate it
        if notices.bell:
            self._bell_at = datetime.now(UTC)
            self._on_change(self)

    def _write(self, data: bytes) -> None:
        if self._hung_up or self.finished:
            return
        self._input.append(memoryview(data))
        self._input_bytes += len(data)
        if len(self._input) == 1:
            self._write_more()

    def _write_more(self) -> None:
        while self._input:
            view = self._input.popleft()
            count = self._program.write(view)
            self._input_bytes -= count
            if count < len(view):
                self._input.appendleft(view[count:])
                self._loop.add_writer(self._program.fd, self._on_writable)
                return
        if self._input_full:
            self._input_full = False
            for attachment in self.attachments:
                attachment.wake()

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._program.fd)
        self._write_more()

    def _change_soon(self) -> None:
        if self._quiet is None:
            self._quiet = self._loop.call_later(QUIET_SECONDS, self._say_changed)

    def _say_changed(self) -> None:
        self._quiet = None
        self._on_change(self)
