"""Runs each subscription once for everyone who asked the same thing.

Members with equal document, variables (but for `after`), operation and scopes form a
group. The group waits for changes, executes and encodes each message once, and keeps
the latest ones. A member reads them at its own pace: it catches up alone first (from a
shared snapshot, or by what it missed), then goes along the group's messages by index.
Whoever falls behind what is kept gets the changes merged, by the same way it would come
back after a lost connection. So no member has a queue, and none slows the others.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import orjson
from graphql.execution import Executor

from api.errors import masked, shown_error
from api.limits import Limits
from api.operations import Admitted, Operations, refusal, run_event
from api.sharing import split
from resolvers.context import Context
from resolvers.feeds import FeedStream, Message
from sidestage.errors import RateLimited, SidestageError
from sidestage.feeds import EndOfFeed, FeedKind, Position, Rows

FULL_RETRY_MS: Final = 5000
"""When to come back to a server that runs as many subscriptions as it may."""
SHARED_SECONDS: Final = 1.0
"""How long a snapshot is given to newcomers: they replay what came after it."""
SHARED_LIMIT: Final = 64
"""Catch-ups that a group holds for newcomers: a few cursors are held by many."""

Start: TypeAlias = tuple[tuple[bytes, ...], Position, int]
"""What a member gets first, where it is then, and the index it goes on with."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a group, encoded."""

    payload: bytes
    position: Position
    is_heartbeat: bool


class Group:
    """One running subscription and its latest messages."""

    def __init__(
        self, executor: Executor[Context], stream: FeedStream, limits: Limits
    ) -> None:
        self.ended = False
        self._executor = executor
        self._stream = stream
        self._limits = limits
        self._position = stream.view.position()
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._first = 0
        self._changed = asyncio.Event()
        self._shared: dict[Hashable, tuple[float, asyncio.Task[Start]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._told_at = time.monotonic()

    def begin(self) -> None:
        """Follow the view from now on; `close` ends it."""
        self._task = asyncio.create_task(self._run())

    @property
    def next_index(self) -> int:
        """The index of the message that comes next."""
        return self._first + len(self._entries)

    def entry(self, index: int) -> Entry | None:
        """Return the message at *index*; None if it is not there any more, or yet."""
        place = index - self._first
        return self._entries[place] if 0 <= place < len(self._entries) else None

    async def wait_for(self, index: int) -> None:
        """Return once there is a message at *index*, or the group has ended."""
        while index >= self.next_index and not self.ended:
            await self._changed.wait()

    async def start(self, after: str | None) -> Start:
        """Return the first payloads for the cursor *after*."""
        if after is None:
            return await self._snapshot()
        missed = await self._share(after, lambda: self._missed(after))
        return missed if missed[0] else await self._snapshot(reset=True)

    async def catch_up(self, position: Position) -> Start:
        """Return what a member that stands at *position* needs to go on."""
        index = self.next_index
        rows = await self._stream.view.changes(position)
        if rows is None:
            return await self._snapshot(reset=True)
        message = self._stream.message(FeedKind.DELTA, rows)
        payloads = () if rows.is_empty else (await self._render(message),)
        return payloads, rows.position, index

    async def _snapshot(self, *, reset: bool = False) -> Start:
        payloads, position, index = await self._share(None, self._reset)
        if index < self._first:
            # So much happened since that its continuation is not kept any more.
            payloads, position, index = await self._reset()
        return payloads if reset else payloads[1:], position, index

    async def _reset(self) -> Start:
        index = self.next_index
        messages, position = await self._stream.restart(reset=True)
        return await self._render_all(messages), position, index

    async def _missed(self, after: str) -> Start:
        index = self.next_index
        messages, position = await self._stream.start(after)
        if messages[0].kind is FeedKind.RESET:
            return (), position, index
        return await self._render_all(messages), position, index

    async def _share(
        self, key: Hashable, make: Callable[[], Awaitable[Start]]
    ) -> Start:
        """Make a start once for all who come within a moment."""
        now = time.monotonic()
        made_at, task = self._shared.get(key, (0.0, None))
        if task is None or now - made_at > SHARED_SECONDS:
            self._forget_shared(now)
            task = asyncio.ensure_future(make())
            self._shared[key] = (now, task)
        # A newcomer that gives up must not take the others' start with it.
        return await asyncio.shield(task)

    def _forget_shared(self, now: float) -> None:
        old = [
            key for key, (at, _) in self._shared.items() if now - at > SHARED_SECONDS
        ]
        while len(self._shared) - len(old) >= SHARED_LIMIT:
            old.append(next(key for key in self._shared if key not in old))
        for key in old:
            self._shared.pop(key)[1].cancel()

    async def _render_all(
        self, messages: tuple[Message[Any], ...]
    ) -> tuple[bytes, ...]:
        return tuple([await self._render(message) for message in messages])

    async def _render(self, message: Message[Any]) -> bytes:
        return orjson.dumps(await run_event(self._executor, message))

    async def _run(self) -> None:
        try:
            while True:
                await self._step()
        except EndOfFeed:
            pass
        except SidestageError as error:
            self._tell_the_end({"data": None, "errors": [shown_error(error)]})
        except Exception as error:  # noqa: BLE001 -- a task's top: members are told
            self._tell_the_end({"data": None, "errors": [masked(error)]})
        finally:
            self.ended = True
            self._wake()

    async def _step(self) -> None:
        # Counted from the last message, not the last change: a feed whose changes all
        # fail the filter is heard of, too.
        left = self._told_at + self._limits.heartbeat_seconds - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, left)):
                await self._stream.view.wait(self._position)
        except TimeoutError:
            position = self._stream.view.position()
            await self._publish_beat(replace(self._position, at=position.at))
            return
        # Once for all that comes close together: a burst is one message.
        await asyncio.sleep(self._limits.coalesce_seconds)
        rows = await self._stream.view.changes(self._position)
        if rows is None:
            self._lose_everyone()
            return
        self._position = rows.position
        if not rows.is_empty:
            await self._publish(self._stream.message(FeedKind.DELTA, rows), rows)

    async def _publish_beat(self, position: Position) -> None:
        self._position = position
        rows: Rows[Any] = Rows(position, ())
        await self._publish(self._stream.message(FeedKind.HEARTBEAT, rows), rows)

    async def _publish(self, message: Message[Any], rows: Rows[Any]) -> None:
        payload = await self._render(message)
        is_heartbeat = message.kind is FeedKind.HEARTBEAT
        self._append(Entry(payload, rows.position, is_heartbeat))

    def _append(self, entry: Entry) -> None:
        self._told_at = time.monotonic()
        self._entries.append(entry)
        self._bytes += len(entry.payload)
        while (
            len(self._entries) > self._limits.history_entries
            or self._bytes > self._limits.history_bytes
        ) and len(self._entries) > 1:
            self._bytes -= len(self._entries.popleft().payload)
            self._first += 1
        self._wake()

    def _lose_everyone(self) -> None:
        """Leave a gap in the indexes: every member starts anew."""
        self._first = self.next_index + 1
        self._entries.clear()
        self._bytes = 0
        self._position = self._stream.view.position()
        self._shared.clear()
        self._wake()

    def _tell_the_end(self, body: dict[str, Any]) -> None:
        self._append(Entry(orjson.dumps(body), self._position, is_heartbeat=True))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def close(self) -> None:
        """Stop. Nothing of the group runs when this returns."""
        tasks: list[asyncio.Task[Any]] = [task for _, task in self._shared.values()]
        if self._task is not None:
            tasks.append(self._task)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._shared.clear()
        await self._stream.aclose()


class Broadcast:
    """The groups of all subscriptions that run now."""

    def __init__(self, operations: Operations, limits: Limits) -> None:
        self._operations = operations
        self._limits = limits
        self._seats: dict[Hashable, _Seat] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return how many groups there are."""
        return len(self._seats)

    async def follow(self, admitted: Admitted) -> AsyncGenerator[bytes]:
        """Yield the payloads of a subscription, each an encoded response.

        Raises `Refused` if it does not open or go on. Close it with `aclosing`.
        """
        key, after, shared = split(admitted)
        seat = self._seat(key, shared)
        # Counted before it is open: who leaves meanwhile must not leave it behind.
        seat.members += 1
        try:
            # One member that gives up must not take the opening from the others.
            group = await asyncio.shield(seat.opening)
            async for payload in _read(group, after):
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
        group = Group(executor, stream, self._limits)
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


async def _read(group: Group, after: str | None) -> AsyncGenerator[bytes]:
    payloads, position, index = await group.start(after)
    while True:
        for payload in payloads:
            yield payload
        payloads = ()
        await group.wait_for(index)
        entry = group.entry(index)
        if entry is not None:
            index += 1
            if entry.is_heartbeat or not _is_known(entry.position, position):
                position = entry.position
                payloads = (entry.payload,)
        elif index < group.next_index:
            payloads, position, index = await group.catch_up(position)
        else:
            return


def _is_known(news: Position, position: Position) -> bool:
    """Tell whether a member at *position* has seen everything up to *news*."""
    return (
        news.epochs == position.epochs
        and news.at <= position.at
        and all(new <= old for new, old in zip(news.seqs, position.seqs, strict=True))
    )
