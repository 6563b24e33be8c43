"""Push without a network: a courier that remembers, and a desk for the API."""

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sidestage.audit import AuditRecord
from sidestage.devices.model import Principal
from sidestage.devices.push import (
    Courier,
    Delivery,
    NewEndpoint,
    PushDesk,
    PushEndpoint,
    PushMessage,
    PushStore,
    Told,
)
from sidestage.errors import DeviceKeyRequired, PushEndpointNotFound
from sidestage.ids import DeviceId

POINT = bytes.fromhex(
    # The example's subscriber in RFC 8291, 5.
    "042571b2becdfde360551aaf1ed0f4cd366c11cebe555f89bcb7b186a53339173168ece2ebe018597bd30479b86e3c8f8eced577ca59187e9246990db682008b0e"
)


class FakePushDesk(PushDesk):
    """Keeps endpoints; checks nothing but whose they are."""

    def __init__(self) -> None:
        self.endpoints: dict[str, PushEndpoint] = {}

    def list_of(self, device_id: DeviceId) -> tuple[PushEndpoint, ...]:
        found = self.endpoints.values()
        return tuple(each for each in found if each.device_id == device_id)

    async def register(self, new: NewEndpoint, *, actor: Principal) -> PushEndpoint:
        if actor.device_id is None:
            raise DeviceKeyRequired("Only a paired device can be told by push.")
        endpoint = PushEndpoint(
            id=f"push:{len(self.endpoints) + 1}",
            device_id=actor.device_id,
            url=new.url,
            created_at=datetime(2026, 12, 1, tzinfo=UTC),
            secret=new.secret,
        )
        self.endpoints[endpoint.id] = endpoint
        return endpoint

    async def remove(self, endpoint_id: str, *, actor: Principal) -> PushEndpoint:
        endpoint = self.endpoints.pop(endpoint_id, None)
        if endpoint is None:
            raise PushEndpointNotFound("There is no such push endpoint.")
        return endpoint

    async def vapid_public_key(self) -> str:
        return "BKey"


@dataclass
class FakeCourier(Courier):
    """Remembers what was sent to whom; `outcomes` are given in turn, then DELIVERED."""

    sent: list[tuple[str, str, int]] = field(default_factory=list)
    """Endpoint's URL, word, count."""
    topics: list[str] = field(default_factory=list)
    outcomes: dict[str, deque[Delivery]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    open: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared: what is being sent waits."""
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.open.set()

    async def check(self, endpoint: PushEndpoint) -> None:
        return

    async def deliver(self, endpoint: PushEndpoint, message: PushMessage) -> Delivery:
        self.sent.append((endpoint.url, message.word.value, message.count))
        self.topics.append(message.topic)
        self.news.set()
        await self.open.wait()
        outcomes = self.outcomes[endpoint.url]
        return outcomes.popleft() if outcomes else Delivery.DELIVERED

    async def sent_until(self, number: int) -> list[tuple[str, str, int]]:
        """Return what was sent, once it is *number* messages."""
        async with asyncio.timeout(5):
            while len(self.sent) < number:
                self.news.clear()
                await self.news.wait()
        return self.sent


@dataclass
class FakePushStore(PushStore):
    """Keeps what it is given, and the audit records."""

    endpoints: dict[str, PushEndpoint] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    records: list[AuditRecord] = field(default_factory=list)

    async def load(self) -> tuple[tuple[PushEndpoint, ...], tuple[Told, ...]]:
        return tuple(self.endpoints.values()), tuple(self.told)

    async def put(self, endpoint: PushEndpoint, record: AuditRecord) -> None:
        self.endpoints[endpoint.id] = endpoint
        self.records.append(record)

    async def remove(self, endpoint_id: str, record: AuditRecord) -> None:
        del self.endpoints[endpoint_id]
        self.records.append(record)

    async def add_told(self, told: Told) -> None:
        self.told.append(told)

    async def forget_told(self, subject_id: str) -> None:
        self.told = [each for each in self.told if each.subject_id != subject_id]
