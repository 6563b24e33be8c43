"""Claude Code's transcripts as the port `Transcripts`: pages, branches, followers."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from sidestage.agents.claude_code.library import Transcript, TranscriptLibrary
from sidestage.agents.claude_code.outline import (
    BranchView,
    Outline,
    read_view,
    update_outline,
)
from sidestage.agents.claude_code.records import parse_time
from sidestage.agents.claude_code.scanning import stamp_file
from sidestage.errors import BadUserInput, OutsideSessionNotFound
from sidestage.ids import ConversationId, SessionId
from sidestage.sessions.model import Session
from sidestage.sessions.transcript import (
    Branch,
    TranscriptEntry,
    TranscriptPage,
    TranscriptUpdate,
)
from sidestage.text import shorten

PAGE_LIMIT_ENTRIES: Final = 200
"""Entries of one page or update; each has at most 64 Ki characters of text."""
PAGE_DEFAULT_ENTRIES: Final = 50
CACHE_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""Outlines kept: some fifty thousand records."""
PREVIEW_LIMIT_CHARACTERS: Final = 120

NOT_FOUND: Final = "That session is no longer in the list."

_EMPTY_PAGE: Final = TranscriptPage(
    entries=(),
    has_previous=False,
    has_next=False,
    branch_id=None,
    branches=(),
    total=0,
    skipped_lines=0,
)

Answer = TypeVar("Answer")


@dataclass(slots=True)
class _Slot:
    """A cached outline; whoever reads or changes it holds the lock."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    outline: Outline | None = None


@dataclass(frozen=True, slots=True)
class _Reader:
    """One consistent look at a transcript, in a thread."""

    path: Path
    outline: Outline
    views: tuple[BranchView, ...]
    session_hex: str

    def entries(
        self, view: BranchView, start: int, end: int
    ) -> tuple[TranscriptEntry, ...]:
        return read_view(
            self.path, self.outline, view, [(start, end)], self.session_hex
        )


class ClaudeTranscripts:
    """The port `Transcripts`. For one event loop; files are read in threads."""

    def __init__(
        self,
        library: TranscriptLibrary,
        find_session: Callable[[SessionId], Session | None],
    ) -> None:
        self._library = library
        self._find_session = find_session
        self._slots: OrderedDict[str, _Slot] = OrderedDict()

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
        """Return entries of the active branch, or of *branch*."""
        for count in (first, last):
            if count is not None and not 0 <= count <= PAGE_LIMIT_ENTRIES:
                raise BadUserInput(
                    f"A page has from 0 to {PAGE_LIMIT_ENTRIES} entries."
                )
        conversation = self._get_conversation(session_id)
        wanted = _Wanted(first, after, last, before, branch)
        page = await self._read(
            conversation, session_id, lambda reader: _read_page(reader, wanted)
        )
        return page or _EMPTY_PAGE

    async def follow(
        self, session_id: SessionId, *, after: str | None, backlog: int = 50
    ) -> AsyncGenerator[TranscriptUpdate]:
        """Yield the entries after *after*, or the last *backlog*, then what comes."""
        conversation = self._get_conversation(session_id)
        told, is_first = after, True
        while True:
            transcript = self._library.find(conversation)
            update = await self._read(
                conversation,
                session_id,
                partial(_read_update, told=told, backlog=backlog),
            )
            update = update or TranscriptUpdate(told is not None, ())
            if is_first or update.reset or update.entries:
                yield update
            is_first = False
            told = update.entries[-1].order if update.entries else told
            if update.reset and not update.entries:
                told = None
            if len(update.entries) < PAGE_LIMIT_ENTRIES:
                await self._library.wait_for_change(
                    conversation, transcript.stamp if transcript else None
                )
            if self._find_session(session_id) is None:
                raise OutsideSessionNotFound(NOT_FOUND)

    def _get_conversation(self, session_id: SessionId) -> ConversationId:
        session = self._find_session(session_id)
        if session is None:
            raise OutsideSessionNotFound(NOT_FOUND)
        return session.origin.conversation_id

    async def _read(
        self,
        conversation: ConversationId,
        session_id: SessionId,
        read: Callable[[_Reader], Answer],
    ) -> Answer | None:
        """Return what *read* makes of the transcript; None if there is none."""
        transcript = self._library.find(conversation)
        if transcript is None:
            return None
        slot = self._slot(transcript.stamp.path)
        session_hex = session_id.partition(":")[2]
        async with slot.lock:
            try:
                answer = await asyncio.to_thread(
                    _read_with, slot, transcript, session_hex, read
                )
            except OSError:
                return None  # it went away; the library will tell
        self._trim(keep=transcript.stamp.path)
        return answer

    def _slot(self, path: str) -> _Slot:
        slot = self._slots.setdefault(path, _Slot())
        self._slots.move_to_end(path)
        return slot

    def _trim(self, *, keep: str) -> None:
        """Forget the outlines that were not used for longest, down to the limit."""
        sizes = {
            path: slot.outline.size_bytes if slot.outline else 0
            for path, slot in self._slots.items()
        }
        excess = sum(sizes.values()) - CACHE_LIMIT_BYTES
        for path, size in sizes.items():
            if excess <= 0:
                return
            if path != keep and not self._slots[path].lock.locked():
                del self._slots[path]
                excess -= size


@dataclass(frozen=True, slots=True)
class _Wanted:
    first: int | None
    after: str | None
    last: int | None
    before: str | None
    branch: str | None


def _read_with(
    slot: _Slot,
    transcript: Transcript,
    session_hex: str,
    read: Callable[[_Reader], Answer],
) -> Answer:
    path = transcript.stamp.path
    stamp = stamp_file(path) or transcript.stamp
    outline = update_outline(slot.outline, stamp)
    slot.outline = outline
    return read(_Reader(Path(path), outline, outline.views(), session_hex))


def _read_page(reader: _Reader, wanted: _Wanted) -> TranscriptPage:
    view = _choose_view(reader, wanted.branch)
    low = 0 if wanted.after is None else _position(view, wanted.after) + 1
    high = view.total if wanted.before is None else _position(view, wanted.before)
    start, end = _slice(low, max(low, high), wanted)
    return TranscriptPage(
        entries=reader.entries(view, start, end),
        has_previous=start > 0,
        has_next=end < view.total,
        branch_id=_branch_id(reader, view),
        branches=tuple(
            _branch(reader, view, is_active=index == 0)
            for index, view in enumerate(reader.views)
            if view.leaf
        ),
        total=view.total,
        skipped_lines=reader.outline.skipped_lines,
    )


def _slice(low: int, high: int, wanted: _Wanted) -> tuple[int, int]:
    first, last = wanted.first, wanted.last
    if first is None and last is None:
        first = PAGE_DEFAULT_ENTRIES
    if first is not None:
        high = min(high, low + first)
    if last is not None:
        low = max(low, high - last)
    return low, high


def _read_update(reader: _Reader, told: str | None, backlog: int) -> TranscriptUpdate:
    view = reader.views[0]
    position = None if told is None else view.find(told)
    if position is None:
        start = max(0, view.total - min(backlog, PAGE_LIMIT_ENTRIES))
        return TranscriptUpdate(
            told is not None, reader.entries(view, start, view.total)
        )
    end = min(view.total, position + 1 + PAGE_LIMIT_ENTRIES)
    return TranscriptUpdate(
        reset=False, entries=reader.entries(view, position + 1, end)
    )


def _choose_view(reader: _Reader, branch: str | None) -> BranchView:
    if branch is None:
        return reader.views[0]
    for view in reader.views:
        if _branch_id(reader, view) == branch:
            return view
    raise BadUserInput("There is no such branch (any more).")


def _position(view: BranchView, order: str) -> int:
    position = view.find(order)
    if position is None:
        raise BadUserInput("That cursor is not of this branch of the transcript.")
    return position


def _branch_id(reader: _Reader, view: BranchView) -> str | None:
    return f"branch:{reader.session_hex}:{view.leaf}" if view.leaf else None


def _branch(reader: _Reader, view: BranchView, *, is_active: bool) -> Branch:
    last = reader.entries(view, max(0, view.total - 1), view.total)
    return Branch(
        id=_branch_id(reader, view) or "",
        is_active=is_active,
        entries=view.total,
        last_at=parse_time(view.last_time),
        preview=shorten(last[0].text, PREVIEW_LIMIT_CHARACTERS) if last else "",
    )
