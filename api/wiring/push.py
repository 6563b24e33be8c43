"""Push: the endpoints of devices, and who speaks to them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from api.push.courier import WebCourier
from api.push.vapid import VapidKey
from api.wiring.background import running
from api.wiring.devices import DeviceParts
from api.wiring.ground import Ground
from sidestage.devices.push_endpoints import PushEndpoints
from sidestage.devices.push_rules import PushRules
from sidestage.devices.pusher import Pusher
from sidestage.handover.desk import Handovers
from sidestage.handover.model import OfferState
from sidestage.requests.model import Requests
from sidestage.settings import Settings
from sidestage.state import read_machine_secret
from sidestage.storage.push import SqlPushStore
from sidestage.storage.stores import utc_now


@dataclass(frozen=True, slots=True)
class PushParts:
    """The endpoints, and who tells them."""

    endpoints: PushEndpoints
    pusher: Pusher


@asynccontextmanager
async def open_push(
    settings: Settings, ground: Ground, devices: DeviceParts
) -> AsyncGenerator[PushParts]:
    """Tell devices until the block ends; what is on its way then is given up."""
    key = VapidKey(settings.vapid_key_file, contact=settings.push_contact)
    rules = PushRules(settings.push_hosts, settings.push_allow_loopback)
    courier = WebCourier(rules, key)
    store = SqlPushStore(ground.database)
    endpoints = PushEndpoints(
        devices.registry, courier, store, key.public_key, clock=utc_now
    )
    pusher = Pusher(
        endpoints,
        devices.registry,
        devices.presence,
        courier,
        store,
        topic_secret=await asyncio.to_thread(read_machine_secret, settings.state_dir),
    )
    await pusher.load()
    async with running(push=pusher.run()):
        try:
            yield PushParts(endpoints, pusher)
        finally:
            await pusher.close()
            await courier.close()


def count_open(requests: Requests, handovers: Handovers) -> int:
    """Return how many questions wait for a person."""
    asked = sum(request.state.is_open for request in requests.feed.values())
    pending = OfferState.PENDING
    offered = sum(offer.state is pending for offer in handovers.feed.values())
    return asked + offered
