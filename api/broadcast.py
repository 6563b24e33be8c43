"""Runs each subscription once for everyone who asked the same thing.

Members with equal document, variables (but for `after`), operation and scopes form a
group. The group waits for changes, executes and encodes each message once, and keeps
the latest ones. A member reads them at its own pace: it catches up alone first (from a
shared snapshot, or by what it missed), then goes along the group's messages by index.
Whoever falls behind what is kept gets the changes merged, by the same way it would come
back after a lost connection. So no member has a queue, and none slows the others.
A member whose connection takes ready frames rides along while it is up to date: the
group writes to it directly, and its task sleeps until the connection's buffer is full.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Hashable
from dataclasses import dataclass
from typing import Final

from api.errors import shown_error
from api.group import Group, Rider, Write, is_known
from api.limits import Limits
from api.operations import Admitted, Operations, refusal
from api.sharing import split
from sidestage.errors import RateLimited, SidestageError

FULL_RETRY_MS: Final = 5000
"""When to come back to a server that runs as many subscriptions as it may."""


class Broadcast:
    """The groups of all subscriptions that run now."""

    def __init__(self, operations: Operations, limits: Limits) -> None:
        self._operations = operations
        self._limits = limits
        self.counts: Counter[str] = Counter()
        """Messages encoded, catch-ups merged, and resets, since the start."""
        self._seats: dict[Hashable, _Seat] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return how many groups there are."""
        return len(self._seats)

    @property
    def members(self) -> int:
        """How many subscribe."""
        return sum(seat.members for seat in self._seats.values())

    async def follow(
        self, admitted: Admitted, write: Write | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield the payloads of a subscription, each an encoded response.

        With *write*, payloads that it takes are not yielded: give it what writes to
        the connection at once. A payload it refuses is yielded, and may be waited for.
        Raises `Refused` if it does not open or go on. Close it with `aclosing`.
        """
        key, after, shared = split(admitted)
        seat = self._seat(key, shared)
        # Counted before it is open: who leaves meanwhile must not leave it behind.
        seat.members += 1
        try:
            # One member that gives up must not take the opening from the others.
            group = await asyncio.shield(seat.opening)
            async for payload in _read(group, after, write):
                yield payload
        except SidestageError as error:
            raise refusal([shown_error(error)]) from error
        finally:
            seat.members -= 1
            if not seat.members:
                self._let_go(key, seat)

    def _seat(self, key: Hashable, admitted: Admitted) -> "_Seat":
        seat = self._seats.get(key)
        if seat is not None and not seat.is_over:
            return seat
        if len(self._seats) >= self._limits.groups:
            error = RateLimited(
                "Too many different subscriptions run.", retry_after_ms=FULL_RETRY_MS
            )
            raise refusal([shown_error(error)])
        seat = _Seat(asyncio.create_task(self._open(admitted)))
        self._seats[key] = seat
        return seat

    async def _open(self, admitted: Admitted) -> Group:
        executor, stream = await self._operations.begin(admitted, admitted.principal)
        group = Group(executor, stream, self._limits, self.counts)
        group.begin()
        return group

    def _let_go(self, key: Hashable, seat: "_Seat") -> None:
        if self._seats.get(key) is seat:
            del self._seats[key]
        # In a task of its own: the member that leaves may be cancelled right here.
        closing = asyncio.create_task(seat.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """End every group, and wait for those that are ending."""
        for key, seat in list(self._seats.items()):
            self._let_go(key, seat)
        await asyncio.gather(*self._closing, return_exceptions=True)


@dataclass(slots=True)
class _Seat:
    """A group that is being opened or is open, and how many wait for it or read it."""

    opening: asyncio.Task[Group]
    members: int = 0

    @property
    def is_over(self) -> bool:
        """Whether newcomers need another group."""
        if not self.opening.done():
            return False
        failed = self.opening.cancelled() or self.opening.exception() is not None
        return failed or self.opening.result().ended

    async def close(self) -> None:
        """Close the group, or do not open it at all."""
        self.opening.cancel()
        await asyncio.wait({self.opening})
        if not self.opening.cancelled() and self.opening.exception() is None:
            await self.opening.result().close()


async def _read(
    group: Group, after: str | None, write: Write | None
) -> AsyncGenerator[bytes]:
    payloads, position, index = await group.start(after)
    while True:
        for payload in payloads:
            yield payload
        payloads = ()
        if write is not None and group.is_up_to_date(index):
            rider = Rider(write, position, index)
            await group.carry(rider)
            position, index = rider.position, rider.index
        await group.wait_for(index)
        entry = group.entry(index)
        if entry is not None:
            index += 1
            if entry.is_heartbeat or not is_known(entry.position, position):
                position = entry.position
                payloads = (entry.payload,)
        elif index < group.next_index:
            payloads, position, index = await group.catch_up(position)
        else:
            return
