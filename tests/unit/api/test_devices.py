"""Devices over the application: who sees which envelope, and what strangers may."""

import base64
from typing import Any

import pytest

from api.presence import ConnectedDevices
from sidestage.devices.model import Scope
from sidestage.ids import DeviceId
from tests.fakes.device_desk import key_news
from tests.fakes.devices import a_device
from tests.fakes.parts import World, make_world
from tests.fakes.socket_client import connect
from tests.fakes.tokens import READER, VIEWER, device_principal

FOLLOW = """subscription { deviceFeed { kind upserts { id name isCaller
  hostKeyEnvelope { deviceId purpose ciphertext } } } }"""
PAIR = """mutation($input: PairDeviceInput!) { pairDevice(input: $input) {
  __typename
  ... on PairDevicePayload { state retryAfterMs envelope { purpose } }
  ... on UserError { code message } } }"""
REQUEST = {
    "pairingId": "AAAAAAAAAAAAAAAAAAAAAA",
    "deviceKey": base64.b64encode(bytes(32)).decode(),
    "name": "Phone",
    "platform": "ios",
    "nonce": base64.b64encode(bytes(16)).decode(),
    "proof": base64.b64encode(bytes(32)).decode(),
}


@pytest.fixture
def world() -> World:
    world = make_world()
    for number in (1, 2):
        device = a_device(number)
        world.devices.news[device.id] = key_news(device)
        world.tokens.principals[f"device-{number}"] = device_principal(
            str(number), Scope.VIEW
        )
    return world


async def test_two_devices_with_one_document_each_get_their_own_envelope(
    world: World,
) -> None:
    async with (
        connect(world.app, "device-1") as first,
        connect(world.app, "device-2") as second,
    ):
        for number, client in ((1, first), (2, second)):
            client.subscribe("1", FOLLOW)
            rows = (await client.next_feed("1", "deviceFeed"))["upserts"]
            own = [row for row in rows if row["hostKeyEnvelope"] is not None]
            assert [row["id"] for row in own] == [f"device:{number}"]
            assert [row["id"] for row in rows if row["isCaller"]] == [own[0]["id"]]
            assert own[0]["hostKeyEnvelope"]["deviceId"] == f"device:{number}"


async def test_who_has_no_key_gets_no_envelope(world: World) -> None:
    query = "{ devices { nodes { hostKeyEnvelope { enc } } } viewer { device { id } } }"
    async with world.client() as client:
        data = await client.data(query)
    assert data["devices"]["nodes"] == [{"hostKeyEnvelope": None}] * 2
    assert data["viewer"]["device"] is None


async def test_a_device_sees_itself(world: World) -> None:
    query = """{ viewer { kind scopes content device { id keyId state scopes } }
      server { hostKey hostKeyId contentMode } node(id: "device:1") { id } }"""
    async with world.client("device-1") as client:
        data = await client.data(query)
    device = a_device(1)
    assert data["viewer"] == {
        "kind": "DEVICE",
        "scopes": ["VIEW"],
        "content": "CLEAR",
        "device": {
            "id": device.id,
            "keyId": device.key_id,
            "state": "ACTIVE",
            "scopes": ["VIEW", "READ", "ANSWER"],
        },
    }
    assert data["server"]["hostKeyId"] == world.devices.host_key.key_id
    assert data["node"] == {"id": "device:1"}


async def test_a_new_device_is_told_to_all_the_others(world: World) -> None:
    async with connect(world.app, VIEWER) as client:
        client.subscribe("1", FOLLOW)
        await client.next_feed("1", "deviceFeed")
        world.devices.feed.upsert(a_device(3))
        told = await client.next_feed("1", "deviceFeed")
    assert [row["name"] for row in told["upserts"]] == ["Phone 3"]


@pytest.mark.parametrize(
    "mutation",
    [
        "createPairing(input: {})",
        'confirmPairing(input: {pairingId: "a", code: "1"})',
        'cancelPairing(input: {pairingId: "a"})',
        'renameDevice(input: {deviceId: "device:1", name: "x"})',
        'revokeDevice(input: {deviceId: "device:1"})',
    ],
)
async def test_devices_are_their_owners_business(world: World, mutation: str) -> None:
    async with world.client(READER) as client:
        query = f"mutation {{ {mutation} {{ __typename }} }}"
        assert await client.code(query) == "PERMISSION_DENIED"


async def test_the_owner_renames_and_revokes(world: World) -> None:
    query = """mutation { renameDevice(input: {deviceId: "device:1", name: "Mine"}) {
        ... on RenameDevicePayload { device { name } } }
      a: revokeDevice(input: {deviceId: "device:1"}) {
        ... on RevokeDevicePayload { wasRevoked device { state } } }
      b: revokeDevice(input: {deviceId: "device:1"}) {
        ... on RevokeDevicePayload { wasRevoked } }
      c: revokeDevice(input: {deviceId: "device:9"}) {
        ... on UserError { code } } }"""
    async with world.client() as client:
        data = await client.data(query)
    assert data["renameDevice"]["device"]["name"] == "Mine"
    assert data["a"] == {"wasRevoked": False, "device": {"state": "REVOKED"}}
    assert data["b"] == {"wasRevoked": True}
    assert data["c"] == {"code": "DEVICE_NOT_FOUND"}


async def test_a_token_without_a_device_cannot_be_refreshed(world: World) -> None:
    query = """mutation { refreshDeviceToken(input: {deviceKeyId: "x"}) {
        ... on UserError { code } } }"""
    async with world.client() as client:
        data = await client.data(query)
    assert data["refreshDeviceToken"]["code"] == "DEVICE_KEY_REQUIRED"


async def test_a_stranger_may_ask_to_be_paired_and_nothing_else(world: World) -> None:
    async with world.client(None) as client:
        data = await client.data(PAIR, {"input": REQUEST})
        assert data["pairDevice"]["code"] == "PAIRING_REFUSED"
        for query in (
            "{ viewer { kind } }",
            "{ devices { nodes { id } } }",
            'mutation { revokeDevice(input: {deviceId: "device:1"}) { __typename } }',
            "{ server { version hostKeyId } }",
        ):
            assert await client.code(query) == "UNAUTHENTICATED", query


async def test_a_strangers_mistake_does_not_tell_the_schema(world: World) -> None:
    async with world.client(None) as client:
        answer = await client.ask("{ server { state } }")
    [error] = answer["errors"]
    assert error["message"] == "The document is not valid."
    assert error["extensions"] == {"code": "GRAPHQL_VALIDATION_FAILED"}


async def test_a_strangers_request_has_four_kilobytes_at_most(world: World) -> None:
    long: dict[str, Any] = {"input": REQUEST | {"name": "x" * 4096}}
    async with world.client(None) as client:
        answer = await client.http.post("/graphql", json={"query": PAIR, **long})
        assert answer.status_code == 413
        body = {"query": PAIR, "variables": {"input": REQUEST}}
        chunks = (part for part in (b"x" * 2048, b"x" * 2049))

        async def slowly() -> Any:
            for chunk in chunks:
                yield chunk

        headers = {"content-type": "application/json"}
        answer = await client.http.post("/graphql", content=slowly(), headers=headers)
        assert answer.status_code == 413
        assert (await client.http.post("/graphql", json=body)).status_code == 200
    async with world.client() as client:
        answer = await client.http.post("/graphql", json={"query": PAIR, **long})
        assert answer.status_code == 200


async def test_who_is_connected_is_known_by_device(world: World) -> None:
    devices = {"token:1": DeviceId("device:1")}
    presence = ConnectedDevices(devices.get)
    assert presence.connected_devices() == frozenset()
    presence.follow(world.app.connections.tokens)
    async with connect(world.app, "device-1"), connect(world.app, VIEWER):
        assert presence.connected_devices() == {"device:1"}
