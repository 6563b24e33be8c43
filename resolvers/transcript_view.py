"""One conversation as a live list: what was said lately, and what is said next.

It reads one `Transcripts.follow` and keeps the latest entries, so that any number of
readers may share it, each from its own position. A position's `mark` is the `order` of
the last entry it knows: with it a reader that comes back after the view was closed
still gets exactly what it missed.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from sidestage.errors import BadUserInput
from sidestage.feeds import EndOfFeed, Position, Rows
from sidestage.ids import SessionId
from sidestage.sessions.transcript import (
    TranscriptEntry,
    Transcripts,
    TranscriptUpdate,
)

BACKLOG_ENTRIES: Final = 50
"""What a reader gets first: a phone's screen or two."""
KEPT_ENTRIES: Final = 1000
"""For readers that come back; at 65,536 characters each 64 MB, in practice 1 or 2."""
MISSED_LIMIT_ENTRIES: Final = 500
"""More than that is paged with `transcript(before:)`, not sent at once."""
PAGE_ENTRIES: Final = 100


class TranscriptView:
    """The entries of one session, shared by its readers. Call `open`, then `close`."""

    name = "transcriptFeed"

    def __init__(
        self,
        transcripts: Transcripts,
        session_id: SessionId,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._transcripts = transcripts
        self._session_id = session_id
        self._clock = clock
        self._entries: deque[TranscriptEntry] = deque(maxlen=KEPT_ENTRIES)
        self._seq = 0
        self._epoch = secrets.token_hex(4)
        self._changed = asyncio.Event()
        self._ended = False
        self._failure: BaseException | None = None
        self._reader: asyncio.Task[None] | None = None
        self._updates: AsyncIterator[TranscriptUpdate] | None = None

    async def open(self) -> None:
        """Read the latest entries, then follow; raises `OutsideSessionNotFound`."""
        updates = self._updates = aiter(
            self._transcripts.follow(
                self._session_id, after=None, backlog=BACKLOG_ENTRIES
            )
        )
        with suppress(StopAsyncIteration):
            self._take(await anext(updates))
        self._reader = asyncio.create_task(self._read(updates))

    async def _read(self, updates: AsyncIterator[TranscriptUpdate]) -> None:
        try:
            async for update in updates:
                self._take(update)
        except Exception as error:  # noqa: BLE001 -- a task's top: `wait` raises it
            self._failure = error
        finally:
            self._ended = True
            self._wake()

    def _take(self, update: TranscriptUpdate) -> None:
        if update.reset:
            # Another branch: no position of before can be brought up to date.
            self._entries.clear()
            self._epoch = secrets.token_hex(4)
            self._seq += 1
        self._entries.extend(update.entries)
        self._seq += len(update.entries)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def position(self) -> Position:
        """Return where a reader stands who has seen everything."""
        mark = self._entries[-1].order if self._entries else None
        return Position((self._epoch,), (self._seq,), self._clock(), mark)

    async def snapshot(self) -> Rows[TranscriptEntry]:
        """Return the latest entries of the active branch."""
        return Rows(self.position(), tuple(self._entries)[-BACKLOG_ENTRIES:])

    async def changes(self, since: Position) -> Rows[TranscriptEntry] | None:
        """Return the entries after *since*; None if they cannot be told apart."""
        now = self.position()
        if since.epochs == now.epochs:
            missed = now.seqs[0] - since.seqs[0]
            if 0 <= missed <= len(self._entries):
                return Rows(now, tuple(self._entries)[len(self._entries) - missed :])
        if since.mark is None or since.epochs == now.epochs:
            return None
        return await self._changes_after_mark(since.mark, now)

    async def _changes_after_mark(
        self, mark: str, now: Position
    ) -> Rows[TranscriptEntry] | None:
        missed: list[TranscriptEntry] = []
        while True:
            try:
                page = await self._transcripts.page(
                    self._session_id, first=PAGE_ENTRIES, after=mark
                )
            except BadUserInput:  # the mark is of another branch
                return None
            missed.extend(page.entries)
            if len(missed) > MISSED_LIMIT_ENTRIES:
                return None
            if not page.has_next or not page.entries:
                return Rows(now, tuple(missed))
            mark = page.entries[-1].order

    async def wait(self, since: Position) -> None:
        """Return once there is an entry after *since*, or another branch.

        Raises `EndOfFeed` when the session is gone, or what reading it raised.
        """
        while (self._epoch,) == since.epochs and self._seq <= since.seqs[0]:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                raise EndOfFeed
            await self._changed.wait()

    async def close(self) -> None:
        """Stop following. Nothing of the view runs when this returns."""
        reader, self._reader = self._reader, None
        if reader is None:
            return
        reader.cancel()
        with suppress(asyncio.CancelledError):
            await reader
        # A reader that was cancelled before its first turn has not ended it.
        end = getattr(self._updates, "aclose", None)
        if end is not None:
            await end()
