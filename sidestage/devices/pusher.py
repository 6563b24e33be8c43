"""Says once what waits, to devices that are away, and takes it back when it is over."""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from sidestage.devices.model import Presence
from sidestage.devices.push import (
    Courier,
    Delivery,
    PushEndpoint,
    PushMessage,
    PushStore,
    PushWord,
    Told,
)
from sidestage.devices.push_endpoints import PushEndpoints
from sidestage.devices.registry import DeviceRegistry
from sidestage.envelopes.encoding import encode_base64url
from sidestage.errors import StorageUnavailable
from sidestage.ids import DeviceId

ATTEMPT_DELAYS_SECONDS: Final = (0.0, 2.0, 15.0)
"""Before each attempt. A message lives ten minutes: more tries would outlive it."""
MESSAGES_LIMIT: Final = 256
"""On their way at once: three bursts to every endpoint of twenty devices."""
SENDING_LIMIT: Final = 8
"""Connections at once: each looks a name up in a thread."""
TOPIC_CHARACTERS: Final = 32
"""RFC 8030, 5.4: no more."""
_DEVICES_TOPIC: Final = "devices"

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiting:
    """A question that waits, and the devices that were told of it."""

    topic: str
    told: set[DeviceId] = field(default_factory=set)


@dataclass(slots=True)
class _Counters:
    delivered: int = 0
    failed: int = 0
    dropped: int = 0


class Pusher:
    """`sidestage.devices.push.Push`, over the endpoints. For one event loop.

    Messages to one endpoint keep their order; a dead one delays no other.
    """

    def __init__(
        self,
        endpoints: PushEndpoints,
        registry: DeviceRegistry,
        presence: Presence,
        courier: Courier,
        store: PushStore,
        *,
        topic_secret: bytes,
        delays_seconds: tuple[float, ...] = ATTEMPT_DELAYS_SECONDS,
    ) -> None:
        self._endpoints = endpoints
        self._registry = registry
        self._presence = presence
        self._courier = courier
        self._store = store
        self._topic_secret = topic_secret
        self._delays_seconds = delays_seconds
        self._count: Callable[[], int] = lambda: len(self._waiting)
        self._waiting: dict[str, _Waiting] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._order: dict[str, asyncio.Lock] = {}
        self._sending = asyncio.Semaphore(SENDING_LIMIT)
        self._counters = _Counters()

    async def load(self) -> None:
        """Read the endpoints, and of what devices were told before. Call it first."""
        endpoints, told = await self._store.load()
        self._endpoints.put_all(endpoints)
        for each in told:
            waiting = self._waiting.setdefault(each.subject_id, _Waiting(each.topic))
            waiting.told.add(each.device_id)

    def count_with(self, count: Callable[[], int]) -> None:
        """Learn from *count* how many questions wait: it knows older ones too."""
        self._count = count

    def counters(self) -> Mapping[str, int]:
        """Return counts for `server.health`."""
        return {
            "pushDelivered": self._counters.delivered,
            "pushFailed": self._counters.failed,
            "pushDropped": self._counters.dropped,
        }

    def reaches_anyone(self) -> bool:
        """Tell whether a device that may answer has an endpoint (no I/O)."""
        answering = self._registry.list_answering()
        return any(self._endpoints.list_of(device.id) for device in answering)

    def waiting(self, subject_id: str, session_id: str) -> None:
        """Say once that the offer or request waits; sent in the background."""
        if subject_id in self._waiting:
            return
        self._waiting[subject_id] = _Waiting(self._topic(session_id))
        for device in self._registry.list_answering():
            if not self._is_connected(device.id):
                for endpoint in self._endpoints.list_of(device.id):
                    self._start(self._say_waiting(subject_id, endpoint))

    def settled(self, subject_id: str) -> None:
        """Withdraw what was said of it, if anything was."""
        waiting = self._waiting.pop(subject_id, None)
        if waiting is None or not waiting.told:
            return
        self._start(self._forget(subject_id))
        for device_id in waiting.told:
            if not self._is_connected(device_id):
                for endpoint in self._endpoints.list_of(device_id):
                    self._start(self._say(endpoint, PushWord.SETTLED, waiting.topic))

    def devices_changed(self) -> None:
        """Tell every device, also one that is connected, to look at the devices."""
        topic = self._topic(_DEVICES_TOPIC)
        for device in self._registry.list_live():
            for endpoint in self._endpoints.list_of(device.id):
                self._start(self._say(endpoint, PushWord.DEVICES, topic))

    async def run(self) -> None:
        """Tell of changes of the devices, for ever."""
        feed = self._registry.feed
        seq, before = feed.seq, self._look()
        while True:
            await feed.wait_beyond(seq)
            seq, now = feed.seq, self._look()
            self._endpoints.forget_devices(frozenset(now))
            if any(before.get(id_) != seen for id_, seen in now.items()):
                self.devices_changed()
            before = now

    async def close(self) -> None:
        """Give up what is on its way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _look(self) -> dict[DeviceId, object]:
        """Return what of each device the others are told: not its name, nor use."""
        return {
            device.id: (device.scopes, device.content, device.announced_by)
            for device in self._registry.list_live()
        }

    def _is_connected(self, device_id: DeviceId) -> bool:
        return device_id in self._presence.connected_devices()

    def _topic(self, of: str) -> str:
        # Keyed: the push service learns no id, and cannot guess one.
        digest = hmac.new(self._topic_secret, of.encode(), hashlib.sha256).digest()
        return encode_base64url(digest)[:TOPIC_CHARACTERS]

    def _start(self, work: Coroutine[object, object, None]) -> None:
        if len(self._tasks) >= MESSAGES_LIMIT:
            work.close()
            self._counters.dropped += 1
            _log.warning("too many push messages are on their way; one was dropped")
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a push message failed: a bug of ours", exc_info=error)

    async def _say_waiting(self, subject_id: str, endpoint: PushEndpoint) -> None:
        async with self._in_order(endpoint):
            waiting = self._waiting.get(subject_id)
            if waiting is None or self._is_connected(endpoint.device_id):
                return
            # Before it is sent: one that was cut off may have arrived all the same.
            waiting.told.add(endpoint.device_id)
            await self._remember(Told(subject_id, endpoint.device_id, waiting.topic))
            await self._deliver(
                endpoint,
                PushWord.WAITING,
                waiting.topic,
                lambda: subject_id in self._waiting,
            )

    async def _say(self, endpoint: PushEndpoint, word: PushWord, topic: str) -> None:
        async with self._in_order(endpoint):
            await self._deliver(endpoint, word, topic, lambda: True)

    def _in_order(self, endpoint: PushEndpoint) -> asyncio.Lock:
        current = {key: lock for key, lock in self._order.items() if lock.locked()}
        self._order = current
        return current.setdefault(endpoint.id, asyncio.Lock())

    async def _remember(self, told: Told) -> None:
        try:
            await self._store.add_told(told)
        except StorageUnavailable as error:
            _log.warning("who was told cannot be kept for a restart: %s", error)
        if told.subject_id not in self._waiting:
            await self._forget(told.subject_id)  # it was settled in the meantime

    async def _forget(self, subject_id: str) -> None:
        with suppress(StorageUnavailable):  # at worst it is withdrawn once more
            await self._store.forget_told(subject_id)

    async def _deliver(
        self,
        endpoint: PushEndpoint,
        word: PushWord,
        topic: str,
        is_wanted: Callable[[], bool],
    ) -> None:
        for delay_seconds in self._delays_seconds:
            await asyncio.sleep(delay_seconds)
            async with self._sending:
                if not (is_wanted() and self._endpoints.is_current(endpoint)):
                    return
                message = PushMessage(word, self._count(), topic)
                outcome = await self._courier.deliver(endpoint, message)
            if outcome is not Delivery.LATER:
                await self._note(endpoint, outcome)
                return
        await self._note(endpoint, Delivery.LATER)

    async def _note(self, endpoint: PushEndpoint, outcome: Delivery) -> None:
        if outcome is Delivery.DELIVERED:
            self._counters.delivered += 1
            return
        self._counters.failed += 1
        _log.warning("push to %s (%s): %s", endpoint.host, endpoint.id, outcome)
        if outcome is Delivery.GONE:
            with suppress(StorageUnavailable):  # the next message finds it again
                await self._endpoints.drop_gone(endpoint)
