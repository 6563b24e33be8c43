"""Conversations in memory, which a test can make longer."""

import asyncio
from collections.abc import AsyncIterator

from sidestage.errors import BadUserInput, OutsideSessionNotFound
from sidestage.ids import SessionId
from sidestage.sessions.transcript import (
    Branch,
    TranscriptEntry,
    TranscriptPage,
    Transcripts,
    TranscriptUpdate,
)


class FakeTranscripts(Transcripts):
    """Holds the entries it is given, one branch a session."""

    def __init__(self) -> None:
        self.entries: dict[str, list[TranscriptEntry]] = {}
        self.followers = 0
        """How many `follow` iterators are open now."""
        self.let_go = asyncio.Event()
        """Set while none is open."""
        self.let_go.set()
        self.follows = 0
        """How many were ever opened."""
        self._queues: dict[str, set[asyncio.Queue[TranscriptUpdate | None]]] = {}

    def put(self, session_id: str, *entries: TranscriptEntry) -> None:
        """Give the session these entries."""
        self.entries.setdefault(session_id, []).extend(entries)
        self._tell(session_id, TranscriptUpdate(reset=False, entries=entries))

    def switch(self, session_id: str, *entries: TranscriptEntry) -> None:
        """Make another branch the active one."""
        self.entries[session_id] = list(entries)
        self._tell(session_id, TranscriptUpdate(reset=True, entries=entries))

    def forget(self, session_id: str) -> None:
        """End every follower of the session."""
        self._tell(session_id, None)

    def _tell(self, session_id: str, update: TranscriptUpdate | None) -> None:
        for queue in self._queues.get(session_id, ()):
            queue.put_nowait(update)

    def _of(self, session_id: SessionId) -> list[TranscriptEntry]:
        if session_id not in self.entries:
            raise OutsideSessionNotFound("That session is no longer in the list.")
        return self.entries[session_id]

    async def page(
        self,
        session_id: SessionId,
        *,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
        branch: str | None = None,
    ) -> TranscriptPage:
        """Return entries, as the port says."""
        entries = self._of(session_id)
        orders = [entry.order for entry in entries]
        if branch not in (None, "main") or not {after, before} - {None} <= set(orders):
            raise BadUserInput("That is not of this branch.")
        start = orders.index(after) + 1 if after else 0
        end = orders.index(before) if before else len(entries)
        if last is not None:
            start = max(start, end - last)
        elif first is not None:
            end = min(end, start + first)
        return TranscriptPage(
            tuple(entries[start:end]),
            has_previous=start > 0,
            has_next=end < len(entries),
            branch_id="main",
            branches=(
                Branch("main", is_active=True, entries=3, last_at=None, preview="…"),
            ),
            total=len(entries),
            skipped_lines=0,
        )

    async def follow(
        self, session_id: SessionId, *, after: str | None, backlog: int = 50
    ) -> AsyncIterator[TranscriptUpdate]:
        """Yield the backlog, then what a test puts."""
        entries = self._of(session_id)
        queue: asyncio.Queue[TranscriptUpdate | None] = asyncio.Queue()
        self._queues.setdefault(session_id, set()).add(queue)
        self.followers += 1
        self.let_go.clear()
        self.follows += 1
        try:
            yield TranscriptUpdate(reset=False, entries=tuple(entries[-backlog:]))
            while update := await queue.get():
                yield update
        finally:
            self.followers -= 1
            if not self.followers:
                self.let_go.set()
            self._queues[session_id].discard(queue)
