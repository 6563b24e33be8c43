"""One mechanism for every live list: current values, a ring of changes, cursors.

A feed's position is `epoch:seq`. The epoch is new at each start of the server, `seq`
rises by one a change, so a cursor of another run is recognised as such. A `FeedView` is
one way to look at a feed: its rows that match a filter, as snapshot and as changes.
It remembers nothing, so any number of clients may look, each from its own position.
"""

import asyncio
import hashlib
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Generic, Protocol, TypeVar

from sidestage.errors import BadUserInput

Value = TypeVar("Value")

RING_LIMIT_CHANGES: Final = 10_000
"""Changes kept for clients that come back: ten minutes at 16 changes a second."""


@dataclass(frozen=True, slots=True)
class Change(Generic[Value]):
    """One value came (no *before*), changed, or went (no *after*)."""

    seq: int
    id: str
    before: Value | None
    after: Value | None
    at: datetime


class Feed(Generic[Value]):
    """The current values by id and their latest changes. For one event loop."""

    def __init__(
        self,
        key: Callable[[Value], str],
        *,
        ring_limit: int = RING_LIMIT_CHANGES,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.epoch = secrets.token_hex(4)
        self.seq = 0
        self._key = key
        self._clock = clock
        self._values: dict[str, Value] = {}
        self._ring: deque[Change[Value]] = deque(maxlen=ring_limit)
        self._changed = asyncio.Event()

    def get(self, id_: str) -> Value | None:
        """Return the current value with that id, or None."""
        return self._values.get(id_)

    def values(self) -> tuple[Value, ...]:
        """Return every current value, in the order in which they came."""
        return tuple(self._values.values())

    def upsert(self, value: Value) -> bool:
        """Put *value* under its id; False if an equal one is there already."""
        id_ = self._key(value)
        before = self._values.get(id_)
        if before == value:
            return False
        self._values[id_] = value
        self._record(id_, before, value)
        return True

    def remove(self, id_: str) -> bool:
        """Take the value with that id out; False if there is none."""
        before = self._values.pop(id_, None)
        if before is None:
            return False
        self._record(id_, before, None)
        return True

    def changes_after(self, seq: int) -> tuple[Change[Value], ...] | None:
        """Return the changes after *seq*, oldest first; None if some are forgotten."""
        if seq > self.seq or seq < 0:
            return None
        missed = self.seq - seq
        if missed > len(self._ring):
            return None
        if missed == 0:
            return ()
        return tuple(self._ring)[-missed:]

    async def wait_beyond(self, seq: int) -> None:
        """Return once there is a change after *seq*."""
        while self.seq <= seq:
            await self._changed.wait()

    def _record(self, id_: str, before: Value | None, after: Value | None) -> None:
        self.seq += 1
        self._ring.append(Change(self.seq, id_, before, after, self._clock()))
        # Whoever waits now is woken; whoever waits next gets a fresh event.
        self._changed.set()
        self._changed = asyncio.Event()


class FeedKind(StrEnum):
    """What a feed's message is."""

    SNAPSHOT = "SNAPSHOT"
    DELTA = "DELTA"
    HEARTBEAT = "HEARTBEAT"
    RESET = "RESET"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a reader stands: one `seq` a feed it depends on, and when it looked.

    *mark* is what a view needs besides, such as the last entry of a transcript.
    """

    epochs: tuple[str, ...]
    seqs: tuple[int, ...]
    at: datetime
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class Rows(Generic[Value]):
    """Rows to put, ids to forget, and the position after doing so."""

    position: Position
    upserts: tuple[Value, ...]
    removed_ids: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed for this view."""
        return not self.upserts and not self.removed_ids


class View(Protocol[Value]):
    """What a live list needs to be streamed to many readers at once."""

    name: str
    """Names feed and filter; cursors of another name are not taken."""

    def position(self) -> Position:
        """Return where a reader stands who has seen everything."""

    async def snapshot(self) -> Rows[Value]:
        """Return the current rows."""

    async def changes(self, since: Position) -> Rows[Value] | None:
        """Return what changed after *since*, merged by id; None if it is forgotten."""

    async def wait(self, since: Position) -> None:
        """Return once something may have changed after *since*.

        Raises `EndOfFeed` when nothing will change any more.
        """

    async def close(self) -> None:
        """Let go of what the view holds."""


class EndOfFeed(Exception):
    """The feed's subject is gone: readers are told that the stream is complete."""


@dataclass(frozen=True, slots=True)
class Follows:
    """Another feed whose changes show in a view's rows."""

    feed: Feed[Any]
    touched: Callable[[str], Iterable[str]]
    """The ids of the rows in which the value with that id shows."""


def always(_value: object, _at: datetime) -> bool:
    """Match every row at every time."""
    return True


@dataclass(slots=True)
class FeedView(Generic[Value]):
    """The rows of *feed* that match, and those of their changes that matter."""

    name: str
    feed: Feed[Value]
    key: Callable[[Value], str]
    matches: Callable[[Value, datetime], bool] = always
    may_have_matched: Callable[[Value, datetime], bool] | None = None
    """For filters that cannot be applied to the past: true for too many is harmless."""
    leaves_at: Callable[[Value], datetime | None] | None = None
    """When a row stops matching without a change of its own; None: never."""
    follows: Sequence[Follows] = ()
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def position(self) -> Position:
        """Return where a reader stands who has seen everything."""
        feeds = (self.feed, *(other.feed for other in self.follows))
        return Position(
            tuple(feed.epoch for feed in feeds),
            tuple(feed.seq for feed in feeds),
            self.clock(),
        )

    async def snapshot(self) -> Rows[Value]:
        """Return the rows that match now."""
        position = self.position()
        rows = tuple(v for v in self.feed.values() if self.matches(v, position.at))
        return Rows(position, rows)

    async def changes(self, since: Position) -> Rows[Value] | None:
        """Return what changed after *since*, merged by id; None if it is forgotten."""
        now = self.position()
        if since.epochs != now.epochs or len(since.seqs) != len(now.seqs):
            return None
        own = self.feed.changes_after(since.seqs[0])
        touched = self._touched(since)
        if own is None or touched is None:
            return None
        # Oldest first and never replaced: what the reader holds is the first `before`.
        befores: dict[str, Value | None] = {}
        for change in own:
            befores.setdefault(change.id, change.before)
        for id_ in touched:
            befores.setdefault(id_, self.feed.get(id_))
        merged = self._merge(befores, since.at, now)
        if self.leaves_at is None or since.at >= now.at:
            return merged
        return self._with_the_passing_of_time(merged, befores, since.at)

    def _touched(self, since: Position) -> list[str] | None:
        """Return the rows in which other feeds' changes show; None if forgotten."""
        ids: list[str] = []
        for other, seq in zip(self.follows, since.seqs[1:], strict=True):
            changes = other.feed.changes_after(seq)
            if changes is None:
                return None
            for id_ in dict.fromkeys(change.id for change in changes):
                ids.extend(other.touched(id_))
        return ids

    def _merge(
        self, befores: dict[str, Value | None], then: datetime, now: Position
    ) -> Rows[Value]:
        matched = self.may_have_matched or self.matches
        upserts: list[Value] = []
        removed: list[str] = []
        for id_, before in befores.items():
            after = self.feed.get(id_)
            if after is not None and self.matches(after, now.at):
                upserts.append(after)
            elif before is not None and matched(before, then):
                removed.append(id_)
        return Rows(now, tuple(upserts), tuple(removed))

    def _with_the_passing_of_time(
        self,
        merged: Rows[Value],
        befores: dict[str, Value | None],
        then: datetime,
    ) -> Rows[Value]:
        """Add the rows that left between *then* and now without a change."""
        left = [
            self.key(value)
            for value in self.feed.values()
            if self.key(value) not in befores
            and self.matches(value, then)
            and not self.matches(value, merged.position.at)
        ]
        return Rows(merged.position, merged.upserts, (*merged.removed_ids, *left))

    async def wait(self, since: Position) -> None:
        """Return once a feed changed after *since* or a row is due to leave."""
        feeds = (self.feed, *(other.feed for other in self.follows))
        waits = [
            asyncio.ensure_future(feed.wait_beyond(seq))
            for feed, seq in zip(feeds, since.seqs, strict=True)
        ]
        try:
            await asyncio.wait(
                waits,
                timeout=self._seconds_until_a_row_leaves(),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for waiting in waits:
                waiting.cancel()

    def _seconds_until_a_row_leaves(self) -> float | None:
        if self.leaves_at is None:
            return None
        now = self.clock()
        due = [
            leaves
            for value in self.feed.values()
            if self.matches(value, now) and (leaves := self.leaves_at(value))
        ]
        # A moment later, or the row would still match and the wait end at once again.
        return max(0.0, (min(due) - now).total_seconds()) + 0.001 if due else None

    async def close(self) -> None:
        """Hold nothing, so there is nothing to let go of."""


def binding(*parts: str) -> str:
    """Return a short digest that binds a cursor to feed, filter, scope and fields."""
    text = json.dumps(parts, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def write_cursor(bound_to: str, position: Position, *, unfinished: bool = False) -> str:
    """Return the opaque cursor of *position*; *unfinished* within a snapshot."""
    milliseconds = int(position.at.timestamp() * 1000)
    body = [
        bound_to,
        int(unfinished),
        milliseconds,
        *map(list, (position.epochs, position.seqs)),
        position.mark,
    ]
    text = json.dumps(body, separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, bound_to: str) -> Position | None:
    """Return the position that *cursor* names.

    None when it belongs to another feed, filter or scope, or to a snapshot that was
    not finished: the reader starts anew. Raises `BadUserInput` for what was never ours.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        bound, unfinished, milliseconds, epochs, seqs, mark = json.loads(
            urlsafe_b64decode(padded.encode("ascii"))
        )
        at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(milliseconds))
        position = Position(
            tuple(map(str, epochs)),
            tuple(map(int, seqs)),
            at,
            mark if mark is None else str(mark),
        )
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadUserInput("That is not a feed cursor.") from error
    if bound != bound_to or unfinished:
        return None
    return position
