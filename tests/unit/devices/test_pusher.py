"""Who is told of what, and when."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from api.wiring.background import running
from api.wiring.devices import FORGET_DEVICE
from sidestage.devices.model import Device, Principal, PrincipalKind, Scope
from sidestage.devices.push import Delivery, NewEndpoint, PushKind
from sidestage.devices.push_endpoints import PushEndpoints
from sidestage.devices.pusher import Pusher
from sidestage.errors import DeviceKeyRequired
from sidestage.storage.push import SqlPushStore
from tests.fakes.push import FakeCourier
from tests.fakes.requesting import FakePresence
from tests.unit.devices.conftest import OWNER, Clock, Server

URL = "https://fcm.googleapis.com/secret-path"


class Telling:
    """One paired device with a webhook, and who tells it."""

    def __init__(self, server: Server, device: Device) -> None:
        self.server, self.device = server, device
        self.courier, self.presence = FakeCourier(), FakePresence()
        self.store = SqlPushStore(server.database)

        async def no_key() -> str:
            return ""

        self.endpoints = PushEndpoints(
            server.registry, self.courier, self.store, no_key, clock=server.clock
        )
        self.pusher = Pusher(
            self.endpoints,
            server.registry,
            self.presence,
            self.courier,
            self.store,
            topic_secret=b"t",
            delays_seconds=(0.0, 0.0, 0.0),
        )

    async def register(self) -> None:
        actor = Principal(
            PrincipalKind.DEVICE,
            frozenset({Scope.VIEW}),
            self.device.id,
            device_id=self.device.id,
        )
        new = NewEndpoint(kind=PushKind.WEBHOOK, url=URL, secret=b"s" * 16)
        first = await self.endpoints.register(new, actor=actor)
        assert (await self.endpoints.register(new, actor=actor)).id == first.id


@pytest.fixture
async def telling(tmp_path: Path) -> AsyncGenerator[Telling]:
    server = await Server.start(tmp_path, Clock(), *FORGET_DEVICE)
    _, device, token = await server.pair()
    await server.call(token)
    telling = Telling(server, device)
    await telling.register()
    yield telling
    await telling.pusher.close()
    await server.stop()


async def test_a_question_is_told_once_and_withdrawn(telling: Telling) -> None:
    for _ in range(2):
        telling.pusher.waiting("request:1", "outside:1")
    await telling.courier.sent_until(1)
    telling.pusher.settled("request:1")
    sent = await telling.courier.sent_until(2)
    assert sent == [(URL, "waiting", 1), (URL, "settled", 0)]
    assert telling.courier.topics[0] == telling.courier.topics[1]
    assert "outside" not in telling.courier.topics[0]


async def test_a_connected_device_is_left_alone(telling: Telling) -> None:
    telling.presence.connected.add(telling.device.id)
    telling.pusher.waiting("request:1", "outside:1")
    telling.pusher.settled("request:1")
    telling.presence.connected.clear()
    telling.pusher.waiting("request:2", "outside:1")
    assert await telling.courier.sent_until(1) == [(URL, "waiting", 1)]


async def test_the_next_server_withdraws_what_this_one_told(telling: Telling) -> None:
    telling.pusher.waiting("request:1", "outside:1")
    await telling.courier.sent_until(1)
    await telling.pusher.close()
    later = Telling(telling.server, telling.device)
    await later.pusher.load()
    later.pusher.waiting("request:1", "outside:1")
    later.pusher.settled("request:1")
    assert await later.courier.sent_until(1) == [(URL, "settled", 0)]
    await later.pusher.close()


async def test_a_busy_service_is_tried_three_times_only(telling: Telling) -> None:
    telling.courier.outcomes[URL].extend([Delivery.LATER] * 3)
    telling.pusher.waiting("request:1", "outside:1")
    await telling.courier.sent_until(3)
    telling.pusher.waiting("request:2", "outside:2")
    sent = await telling.courier.sent_until(4)
    assert len(sent) == 4
    assert telling.pusher.counters()["pushFailed"] == 1


async def test_a_new_device_is_told_to_all(telling: Telling) -> None:
    async with running(push=telling.pusher.run()):
        await telling.server.pair()
        assert await telling.courier.sent_until(1) == [(URL, "devices", 0)]


async def test_a_revoked_device_is_not_told_and_its_rows_go(telling: Telling) -> None:
    assert telling.pusher.reaches_anyone()
    await telling.server.desk.revoke(telling.device.id, actor=OWNER)
    assert not telling.pusher.reaches_anyone()
    assert await telling.store.load() == ((), ())


async def test_only_a_device_has_endpoints(telling: Telling) -> None:
    new = NewEndpoint(kind=PushKind.WEBHOOK, url=URL, secret=b"s" * 16)
    with pytest.raises(DeviceKeyRequired):
        await telling.endpoints.register(new, actor=OWNER)
