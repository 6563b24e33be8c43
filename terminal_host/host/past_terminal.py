"""A terminal of a host before this one: its record, without a program behind it."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import TypeVar

from sidestage.errors import TerminalNotRunning
from sidestage.terminals.model import HostTerminal, TerminalState
from sidestage.terminals.screens import StyledLine
from terminal_host.host.attachment import Attachment
from terminal_host.host.ended_screen import (
    LOST_NOTICE,
    ended_screen,
    exited_notice,
    show_ended,
)
from terminal_host.host.record_format import RecordMeta, ScreenRecord
from terminal_host.host.ring import Ring
from terminal_host.host.tail_screen import TailScreen
from terminal_host.host_messages import Attached, AttachRequest

Answer = TypeVar("Answer")


class PastTerminal:
    """What a record says. LOST, or EXITED if its program had ended before its host did.

    Nothing that is typed goes anywhere, and each client has the screen at its own size.
    """

    running = False
    conversation_id = None
    had_input = False

    def __init__(
        self,
        meta: RecordMeta,
        find: Callable[[], Awaitable[ScreenRecord | None]],
        executor: Executor,
        *,
        on_change: Callable[["PastTerminal"], None],
    ) -> None:
        """Show what *find* returns; it is not kept, for it may have 4 MiB."""
        self.id = meta.terminal_id
        self.attachments: list[Attachment] = []
        self.ring = Ring(0)
        self.ring.start = self.ring.end = meta.offset
        self._meta = meta
        self._find = find
        self._executor = executor
        self._on_change = on_change
        self._closed = False

    @property
    def lost(self) -> bool:
        """Tell whether its program ran when its host went away."""
        return self._meta.ended_at is None

    @property
    def finished(self) -> bool:
        """Tell whether a client that was shown the screen is done.

        A LOST screen stays, for its client may change its size.
        """
        return self._closed or not self.lost

    def describe(self) -> HostTerminal:
        """Return the terminal as the host's clients see it."""
        meta = self._meta
        return HostTerminal(
            terminal_id=self.id,
            state=TerminalState.LOST if self.lost else TerminalState.EXITED,
            cols=meta.cols,
            rows=meta.rows,
            pid=None,
            exit_status=meta.exit_status,
            title=meta.title,
            started_at=meta.started_at,
            ended_at=meta.ended_at,
            last_output_at=meta.last_output_at,
            last_input_at=meta.last_input_at,
            bell_at=meta.bell_at,
            attached_clients=len(self.attachments),
            sandbox=meta.sandbox,
            name=meta.name,
            project_id=meta.project_id,
        )

    def resize(self, cols: int, rows: int) -> None:
        """Refuse: there is no program that would have a size."""
        del cols, rows
        raise TerminalNotRunning("This terminal has ended.")

    def rename(self, name: str) -> None:
        """Refuse: its record stays as its own host wrote it."""
        del name
        raise TerminalNotRunning("This terminal has ended.")

    async def text(self, lines: int) -> str:
        """Return the last *lines* lines of the screen as plain text."""
        return await self._ask(lambda screen: screen.text(lines))

    async def styled(self, lines: int) -> tuple[StyledLine, ...]:
        """Return the last *lines* rows of history and screen."""
        return await self._ask(lambda screen: screen.styled(lines))

    async def open_at(self, request: AttachRequest) -> tuple[Attached, bytes]:
        """Return the whole screen with its notice, at the client's size."""
        record = await self._record()
        own = (record.meta.cols, record.meta.rows)
        size = own
        if request.cols is not None and request.rows is not None:
            size = (request.cols, request.rows)
        notice = LOST_NOTICE if self.lost else exited_notice(self._meta.exit_status)
        repaint = await self._think(lambda: show_ended(record, notice, size=size))
        return Attached(
            # A client may have seen output that was never recorded.
            offset=max(self.ring.end, request.after or 0),
            repaint_bytes=len(repaint),
            cols=size[0],
            rows=size[1],
            running=False,
            exit_status=self._meta.exit_status,
            lost=self.lost,
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

    def progressed(self) -> None:
        """Do nothing: no program waits for a client."""

    def take_input(self, data: bytes) -> bool:
        """Forget *data*: there is no program to read it."""
        del data
        return True

    def close(self) -> None:
        """Close every attachment; one that is just opened ends by itself."""
        self._closed = True
        for attachment in tuple(self.attachments):
            attachment.close()

    async def _record(self) -> ScreenRecord:
        record = await self._find()
        if record is None:  # taken away by hand: what is known is shown without it
            return ScreenRecord(meta=self._meta, screen=b"", continuation=b"")
        return record

    async def _ask(self, question: Callable[[TailScreen], Answer]) -> Answer:
        record = await self._record()
        cols, rows = record.meta.cols, record.meta.rows
        return await self._think(lambda: question(ended_screen(record, cols, rows)))

    async def _think(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)
