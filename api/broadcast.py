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
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import orjson
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    StringValueNode,
    ValueNode,
    VariableNode,
)
from graphql.execution import Executor

from api.documents import Operation
from api.errors import masked, shown_error
from api.limits import Limits
from api.operations import Admitted, Operations, Refused, Request, refusal, run_event
from resolvers.context import Context
from resolvers.feeds import FeedStream, Message
from resolvers.scalars import parse_feed_cursor
from sidestage.errors import BadUserInput, RateLimited, SidestageError
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


class Group:
    """One running subscription and its latest messages."""

    def __init__(
        self, executor: Executor[Context], stream: FeedStream, limits: Limits
    ) -> None:
        self.members = 0
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
        try:
            async with asyncio.timeout(self._limits.heartbeat_seconds):
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
        tasks = [self._task, *(task for _, task in self._shared.values())]
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
        self._groups: dict[Hashable, asyncio.Task[Group]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return how many groups there are."""
        return len(self._groups)

    async def follow(self, admitted: Admitted) -> AsyncGenerator[bytes]:
        """Yield the payloads of a subscription, each an encoded response.

        Raises `Refused` before the first if it does not open. Close it with `aclosing`.
        """
        key, after, shared = _split(admitted)
        opening = self._opening(key, shared)
        try:
            group = await asyncio.shield(opening)
        except Refused:
            self._groups.pop(key, None)
            raise
        group.members += 1
        try:
            async for payload in _read(group, after):
                yield payload
        except SidestageError as error:
            raise refusal([shown_error(error)]) from error
        finally:
            group.members -= 1
            if not group.members:
                self._let_go(key, opening, group)

    def _opening(self, key: Hashable, admitted: Admitted) -> asyncio.Task[Group]:
        opening = self._groups.get(key)
        is_over = (
            opening is not None
            and opening.done()
            and (opening.exception() is not None or opening.result().ended)
        )
        if opening is not None and not is_over:
            return opening
        if len(self._groups) >= self._limits.groups:
            raise refusal(
                [
                    shown_error(
                        RateLimited(
                            "Too many different subscriptions run.", retry_after_ms=5000
                        )
                    )
                ]
            )
        opening = asyncio.create_task(self._open(admitted))
        self._groups[key] = opening
        return opening

    async def _open(self, admitted: Admitted) -> Group:
        executor, stream = await self._operations.begin(admitted, admitted.principal)
        return Group(executor, stream, self._limits)

    def _let_go(
        self, key: Hashable, opening: asyncio.Task[Group], group: Group
    ) -> None:
        if self._groups.get(key) is opening:
            del self._groups[key]
        # In a task of its own: the member that leaves may be cancelled right here.
        closing = asyncio.create_task(group.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """End every group, and wait for those that are ending."""
        openings = list(self._groups.values())
        self._groups.clear()
        for opening in openings:
            opening.cancel()
            with suppress(asyncio.CancelledError, Refused):
                await (await opening).close()
        await asyncio.gather(*self._closing, return_exceptions=True)


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


def _split(admitted: Admitted) -> tuple[Hashable, str | None, Admitted]:
    """Return the group's key, the member's own cursor, and what the group runs."""
    operation, request = admitted.operation, admitted.request
    node = _after_argument(operation)
    variables = {
        definition.variable.name.value: request.variables[
            definition.variable.name.value
        ]
        for definition in operation.node.variable_definitions or ()
        if definition.variable.name.value in request.variables
    }
    after: object = None
    if isinstance(node, VariableNode) and node.name.value in variables:
        after = variables[node.name.value]
        # An empty cursor is none, and also fits a variable that must not be null.
        variables[node.name.value] = ""
    elif isinstance(node, StringValueNode):
        after = node.value
    cursor = None if after is None else _checked(after)
    principal = admitted.principal
    if not operation.is_device_dependent:
        principal = replace(principal, actor="feed", device_id=None, token_id=None)
    key = (
        request.query,
        operation.name,
        orjson.dumps(variables, option=orjson.OPT_SORT_KEYS),
        principal.scopes,
        principal.device_id,
    )
    shared = Request(request.query, variables, request.operation_name)
    return key, cursor, Admitted(operation, shared, principal)


def _checked(after: object) -> str | None:
    try:
        return parse_feed_cursor(after) or None
    except BadUserInput as error:
        raise refusal([shown_error(error)]) from error


def _after_argument(operation: Operation) -> ValueNode | None:
    """Return the node given as `after` to the feed's one root field."""
    fragments = {
        node.name.value: node
        for node in operation.document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    stack = list(operation.node.selection_set.selections)
    while stack:
        node = stack.pop(0)
        if isinstance(node, FieldNode):
            values = (a.value for a in node.arguments or () if a.name.value == "after")
            return next(values, None)
        if isinstance(node, InlineFragmentNode):
            stack = [*node.selection_set.selections, *stack]
        elif isinstance(node, FragmentSpreadNode):
            fragment = fragments[node.name.value]
            stack = [*fragment.selection_set.selections, *stack]
    return None
