"""Feeds a screen beside the byte path: in order, its engine in a thread, bounded."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sidestage.terminals.screens import StyledLine
from terminal_host.host.live_screen import NOTHING, LiveScreen, Notices
from terminal_host.host.tail_screen import Picture

BACKLOG_LIMIT_BYTES: Final = 1 << 20
"""Output not yet fed; at 20 MB/s it is 50 ms. Beyond it the program is not read."""
PIECE_LIMIT_BYTES: Final = 120 * 1024
"""Fed in one go: large enough to hide the thread's cost, small enough for a replay."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class _Ask:
    """Something to be done with the screen between two pieces of output."""

    call: Callable[[], Any]
    answer: asyncio.Future[Any]


class ScreenTracker:
    """One terminal's screen, and the work that waits for it. For one event loop."""

    def __init__(
        self,
        screen: LiveScreen,
        executor: Executor,
        *,
        on_notices: Callable[[Notices], None],
        on_room: Callable[[], None],
    ) -> None:
        self._screen = screen
        self._executor = executor
        self._on_notices = on_notices
        self._on_room = on_room
        self._work: deque[bytes | _Ask] = deque()
        self._backlog_bytes = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Tell whether so much waits that the program must not be read now."""
        return self._backlog_bytes > BACKLOG_LIMIT_BYTES

    def add(self, data: bytes) -> None:
        """Take output in; it is fed in this order, with all else that is asked for."""
        self._backlog_bytes += len(data)
        if self._task is None and self._absorb(data):
            return
        self._work.append(data)
        self._start()

    def resize(self, cols: int, rows: int) -> None:
        """Queue a new size, at its place in the output."""
        self._ask(lambda: self._screen.resize(cols, rows))

    async def replay(self) -> bytes:
        """Return the repaint of the screen after all output that was added before."""
        return await self._ask(self._screen.replay)

    async def text(self, lines: int) -> str:
        """Return the last *lines* lines of the screen as plain text."""
        return await self._ask(lambda: self._screen.text(lines))

    async def styled(self, lines: int) -> tuple[StyledLine, ...]:
        """Return the last *lines* rows of history and screen."""
        return await self._ask(lambda: self._screen.styled(lines))

    async def picture(self, limit_bytes: int) -> Picture | None:
        """Return the screen for a record after all output that was added before."""
        return await self._ask(lambda: self._screen.picture(limit_bytes))

    async def settle(self) -> None:
        """Return once all that was queued before is done."""
        await self._ask(lambda: None)

    def _ask(self, call: Callable[[], Answer]) -> asyncio.Future[Answer]:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._work.append(_Ask(call, answer))
        self._start()
        return answer

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._work:
            item = self._work.popleft()
            if isinstance(item, bytes):
                if not self._absorb(item):
                    await self._feed(item)
            else:
                await self._answer(item)
        self._task = None

    def _absorb(self, data: bytes) -> bool:
        """Take *data* in here and now if the engine need not be fed.

        No thread is at work then. Handing over would cost more than taking in, and a
        thread that holds the interpreter's lock keeps the loop from reading.
        """
        notices = self._screen.absorb(data)
        if notices is None:
            return False
        self._done(len(data), notices)
        return True

    async def _feed(self, first: bytes) -> None:
        data = self._join(first)
        loop = asyncio.get_running_loop()
        notices = await loop.run_in_executor(self._executor, self._screen.feed, data)
        self._done(len(data), notices)

    def _done(self, count: int, notices: Notices) -> None:
        was_full = self.full
        self._backlog_bytes -= count
        if notices != NOTHING:
            self._on_notices(notices)
        if was_full and not self.full:
            self._on_room()

    def _join(self, first: bytes) -> bytes:
        """Return *first* and the output queued right behind it, up to one piece."""
        pieces, count = [first], len(first)
        while self._work and isinstance(self._work[0], bytes):
            if count + len(self._work[0]) > PIECE_LIMIT_BYTES:
                break
            piece = self._work.popleft()
            assert isinstance(piece, bytes)
            pieces.append(piece)
            count += len(piece)
        return b"".join(pieces)

    async def _answer(self, ask: _Ask) -> None:
        loop = asyncio.get_running_loop()
        try:
            result = await loop.run_in_executor(self._executor, ask.call)
        except Exception as error:  # noqa: BLE001  # whoever asked gets it, whatever it is
            if not ask.answer.done():
                ask.answer.set_exception(error)
        else:
            if not ask.answer.done():
                ask.answer.set_result(result)
