"""Delivery of hook events: in order within a session, to every listener, bounded."""

import asyncio
import logging
import traceback
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final

from sidestage.ids import SessionId
from sidestage.sessions.hooks import Hold, HookEvent, HookListener

LISTENER_SECONDS: Final = 10.0
"""One listener's time for one event: it may read a long transcript to its end."""
QUEUE_LIMIT: Final = 256
"""Events that wait in one session's queue: more than two seconds of the most a session
may send. What comes on top is dropped and counted."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Delivery:
    event: HookEvent
    hold: Hold | None
    done: "asyncio.Future[None]"


@dataclass(slots=True)
class HookDelivery:
    """Gives each event to every listener. For one event loop; close it at the end.

    A listener that fails or takes too long is logged, and keeps nothing from the
    others. Sessions do not wait for each other.
    """

    dropped: int = 0
    failures: int = 0
    _listeners: list[HookListener] = field(default_factory=list)
    _queues: dict[SessionId, "asyncio.Queue[_Delivery]"] = field(default_factory=dict)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def add_listener(self, listener: HookListener) -> None:
        """Tell *listener* of every event from now on."""
        self._listeners.append(listener)

    def deliver(
        self, event: HookEvent, hold: Hold | None = None
    ) -> "asyncio.Future[None]":
        """Queue the event; the future is done once every listener was told.

        A permission request whose hook waits comes with its *hold*. It is the
        listeners' to answer, but let go here when it reaches none.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._queues.get(event.session_id)
        if queue is None:
            queue = self._queues[event.session_id] = asyncio.Queue(QUEUE_LIMIT)
            self._start(self._work(event.session_id, queue))
        try:
            queue.put_nowait(_Delivery(event, hold, done))
        except asyncio.QueueFull:
            self.dropped += 1
            done.set_result(None)
            if hold is not None:
                self._start(_let_go(hold))
        return done

    async def close(self) -> None:
        """Stop delivering; what is queued is not delivered any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: "_Work") -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(
        self, session_id: SessionId, queue: "asyncio.Queue[_Delivery]"
    ) -> None:
        try:
            while not queue.empty():
                await self._tell_all(queue.get_nowait())
        finally:
            # No await stands between the empty queue and this: none is left behind.
            del self._queues[session_id]

    async def _tell_all(self, delivery: _Delivery) -> None:
        try:
            for listener in tuple(self._listeners):
                await self._tell(listener, delivery)
            if delivery.hold is not None and not self._listeners:
                await delivery.hold.answer(None)
        finally:
            if not delivery.done.done():
                delivery.done.set_result(None)

    async def _tell(self, listener: HookListener, delivery: _Delivery) -> None:
        try:
            async with asyncio.timeout(LISTENER_SECONDS):
                if delivery.hold is None:
                    await listener.heard(delivery.event)
                else:
                    await listener.held(delivery.event, delivery.hold)
        except Exception as error:  # noqa: BLE001 a listener's bug is its own
            self.failures += 1
            # Not the error's own text: it may hold what an agent wrote.
            where = "".join(traceback.format_tb(error.__traceback__))
            kind = type(error).__name__
            _log.error("A hook's listener failed: %s\n%s", kind, where)


_Work = Awaitable[None]


async def _let_go(hold: Hold) -> None:
    await hold.answer(None)
