"""One mechanism for every live list: current values, a ring of changes, cursors.

A feed's position is `epoch:seq`. The epoch is new at each start of the server, `seq`
rises by one a change, so a cursor of another run is recognised as such.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Generic, TypeVar

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
