"""One running subscription: its latest messages, encoded once for all its members.

A member that is up to date and whose connection takes ready frames rides along: the
group writes to it directly, and its task sleeps until the connection is full.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import orjson
from graphql.execution import Executor

from api.errors import masked, shown_error
from api.limits import Limits
from api.operations import run_event
from resolvers.context import Context
from resolvers.feeds import FeedStream, Message
from sidestage.errors import SidestageError
from sidestage.feeds import EndOfFeed, FeedKind, Position, Rows

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


Write: TypeAlias = Callable[[bytes], bool]
"""Writes a payload to a member's connection; False if it takes nothing just now."""


@dataclass(slots=True, eq=False)
class Rider:
    """A member that is up to date, written to by the group itself."""

    write: Write
    position: Position
    index: int
    """Of the message it gets next."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when its task must see to it again."""

    def take(self, entry: Entry) -> bool:
        """Write *entry*, if it is news; False if the connection does not take it."""
        if not entry.is_heartbeat and is_known(entry.position, self.position):
            self.index += 1
            return True
        if not self.write(entry.payload):
            self.left.set()
            return False
        self.position = entry.position
        self.index += 1
        return True


class Group:
    """One running subscription and its latest messages."""

    def __init__(
        self,
        executor: Executor[Context],
        stream: FeedStream,
        limits: Limits,
        counts: "Counter[str]",
    ) -> None:
        self.ended = False
        self._executor = executor
        self._stream = stream
        self._limits = limits
        self._counts = counts
        self._position = stream.view.position()
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._first = 0
        self._changed = asyncio.Event()
        self._riders: set[Rider] = set()
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

    async def carry(self, rider: Rider) -> None:
        """Write to *rider* what comes, until its connection is full or the group ends.

        It must be up to date: nothing is awaited between that and this call.
        """
        self._riders.add(rider)
        try:
            await rider.left.wait()
        finally:
            self._riders.discard(rider)

    def is_up_to_date(self, index: int) -> bool:
        """Tell whether whoever waits for the message at *index* has all there is."""
        return index == self.next_index and not self.ended

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
        self._counts["merged"] += 1
        message = self._stream.message(FeedKind.DELTA, rows)
        payloads = () if rows.is_empty else (await self._render(message),)
        return payloads, rows.position, index

    async def _snapshot(self, *, reset: bool = False) -> Start:
        self._counts["resets"] += reset
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
            self._let_riders_off()
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
        self._counts["messages"] += 1
        self._entries.append(entry)
        self._bytes += len(entry.payload)
        while (
            len(self._entries) > self._limits.history_entries
            or self._bytes > self._limits.history_bytes
        ) and len(self._entries) > 1:
            self._bytes -= len(self._entries.popleft().payload)
            self._first += 1
        for rider in tuple(self._riders):
            if not rider.take(entry):
                self._riders.discard(rider)
        self._wake()

    def _let_riders_off(self) -> None:
        for rider in self._riders:
            rider.left.set()
        self._riders.clear()

    def _lose_everyone(self) -> None:
        """Leave a gap in the indexes: every member starts anew."""
        self._first = self.next_index + 1
        self._entries.clear()
        self._bytes = 0
        self._position = self._stream.view.position()
        self._shared.clear()
        self._let_riders_off()
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


def is_known(news: Position, position: Position) -> bool:
    """Tell whether a member at *position* has seen everything up to *news*."""
    return (
        news.epochs == position.epochs
        and news.at <= position.at
        and all(new <= old for new, old in zip(news.seqs, position.seqs, strict=True))
    )
