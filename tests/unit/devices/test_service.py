import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from api.wiring.background import running
from api.wiring.devices import FORGET_DEVICE
from sidestage.devices.host_keys import GRACE
from sidestage.devices.model import DeviceState
from sidestage.devices.service import FIRST_CALL_WITHIN
from sidestage.envelopes.encoding import decode_base64url
from sidestage.envelopes.envelope import Purpose
from sidestage.envelopes.keys import PublicKey
from sidestage.envelopes.sealing import unseal_envelope
from sidestage.errors import (
    DeviceKeyRequired,
    DeviceNotFound,
    EnvelopeInvalid,
    InvalidInput,
    PairingRefused,
    Unauthenticated,
)
from sidestage.ids import DeviceId
from sidestage.storage.offers import offer_envelopes
from tests.fakes.phone import Phone
from tests.fakes.waiting import wait_until_gone
from tests.unit.devices.conftest import OWNER, Clock, Server

NOBODY = DeviceId("device:0")


async def test_a_renamed_device_keeps_its_name(server: Server) -> None:
    _, device, _ = await server.pair()
    await server.desk.rename(device.id, "  Old\tphone ", actor=OWNER)
    again = await server.restart()
    assert again.registry.get(device.id).name == "Old phone"
    with pytest.raises(InvalidInput):
        await again.desk.rename(device.id, "\n", actor=OWNER)
    with pytest.raises(DeviceNotFound):
        await again.desk.rename(NOBODY, "x", actor=OWNER)
    await again.stop()


async def test_a_revoked_device_may_nothing_any_more(server: Server) -> None:
    _, device, token = await server.pair()
    actor = await server.call(token)
    await server.desk.refresh_token(device.key_id, actor=actor)
    told = asyncio.ensure_future(anext(server.keeper.watch_revocations()))
    await asyncio.to_thread(lambda: None)
    revoked = await server.desk.revoke(device.id, actor=OWNER)
    assert await asyncio.wait_for(told, 5) == actor.token_id
    assert not revoked.was_revoked
    assert revoked.device.state is DeviceState.REVOKED
    assert revoked.device.revoked_at == server.clock.now
    assert not server.keeper.is_current(actor)
    assert server.registry.list_answering() == ()
    with pytest.raises(DeviceKeyRequired):
        await server.desk.refresh_token(device.key_id, actor=actor)
    again = await server.restart()
    with pytest.raises(Unauthenticated):
        await again.call(token)
    async with again.database.read() as db:
        for table in ("kept_envelopes", "tokens"):
            rows = await db.execute(text(f"SELECT count(*) FROM {table}"))
            assert rows.scalar_one() == 0
    await again.stop()


async def test_revoking_twice_says_so(server: Server) -> None:
    _, device, _ = await server.pair()
    await server.desk.revoke(device.id, actor=OWNER)
    assert (await server.desk.revoke(device.id, actor=OWNER)).was_revoked
    assert len(await server.records("device.revoke")) == 1
    with pytest.raises(DeviceNotFound):
        await server.desk.revoke(NOBODY, actor=OWNER)


async def test_other_tables_forget_a_revoked_device_in_the_same_transaction(
    tmp_path: Path,
) -> None:
    forgotten: list[DeviceId] = []

    async def forget(db: AsyncConnection, device_id: DeviceId) -> None:
        state = await db.execute(text("SELECT state FROM devices"))
        assert state.scalar_one() == "REVOKED"
        forgotten.append(device_id)
        if len(forgotten) == 1:
            raise ConnectionError

    server = await Server.start(tmp_path, Clock(), forget)
    _, device, token = await server.pair()
    with pytest.raises(ConnectionError):
        await server.desk.revoke(device.id, actor=OWNER)
    await server.call(token)
    await server.desk.revoke(device.id, actor=OWNER)
    assert forgotten == [device.id] * 2
    await server.stop()


async def test_what_was_sealed_for_a_revoked_device_goes_with_it(
    tmp_path: Path,
) -> None:
    server = await Server.start(tmp_path, Clock(), *FORGET_DEVICE)
    _, device, _ = await server.pair()
    _, other, _ = await server.pair()
    async with server.database.write() as db:
        for each in (device, other):
            row = {"offer_id": "offer:1", "device_id": each.id, "envelope": "{}"}
            await db.execute(insert(offer_envelopes).values(row))
    await server.desk.revoke(device.id, actor=OWNER)
    async with server.database.read() as db:
        left = (await db.execute(select(offer_envelopes.c.device_id))).scalars().all()
    assert left == [other.id]
    await server.stop()


async def test_what_is_overdue_is_forgotten_without_being_asked(
    server: Server,
) -> None:
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    async with running(devices=server.desk.run()):
        device = await server.confirm(phone, shown["code"])
        server.clock.now += FIRST_CALL_WITHIN
        second = await server.open_pairing()
        await server.confirm(second, (await server.ask(second))["code"])
        await wait_until_gone(server.registry.feed, device.id)
    assert len(server.registry.feed.values()) == 1


def news_of(server: Server, phone: Phone, device_id: DeviceId) -> PublicKey:
    envelope = server.desk.find_key_news(device_id)
    assert envelope is not None
    assert envelope.header.purpose is Purpose.HOST_KEY
    raw = decode_base64url(phone.open(envelope)["hostKey"], length_bytes=32)
    return PublicKey(raw)


async def test_the_old_key_tells_each_device_of_the_new_one(server: Server) -> None:
    phone, device, _ = await server.pair()
    other, second, _ = await server.pair()
    seq = server.registry.feed.seq
    assert await server.change.rotate(compromised=False, actor=OWNER) == 2
    assert news_of(server, phone, device.id) == server.desk.host_key
    assert news_of(server, other, second.id) == server.desk.host_key
    changes = server.registry.feed.changes_after(seq)
    assert changes is not None
    assert {change.id for change in changes} == {device.id, second.id}
    envelope = server.desk.find_key_news(device.id)
    again = await server.restart()
    assert again.desk.find_key_news(device.id) == envelope
    await again.stop()


async def test_the_news_stays_when_the_grace_is_over(server: Server) -> None:
    phone, device, _ = await server.pair()
    await server.change.rotate(compromised=False, actor=OWNER)
    server.clock.now += GRACE * 2
    again = await server.restart()
    await again.desk.tidy()
    assert news_of(again, phone, device.id) == again.desk.host_key
    await again.stop()


async def test_a_device_that_was_paired_with_the_new_key_needs_no_news(
    server: Server,
) -> None:
    await server.change.rotate(compromised=False, actor=OWNER)
    server.clock.now += timedelta(seconds=1)
    _, device, _ = await server.pair()
    again = await server.restart()
    assert again.desk.find_key_news(device.id) is None
    await again.stop()


async def test_a_crash_between_the_key_and_its_news_is_made_good(
    server: Server,
) -> None:
    phone, device, _ = await server.pair()
    server.clock.now += timedelta(seconds=1)
    await server.keys.rotate(keep_previous=True)
    again = await server.restart()
    assert news_of(again, phone, device.id) == again.desk.host_key
    assert len(await again.records("keys.announce")) == 1
    await again.stop()


async def test_a_second_change_is_told_by_the_key_between(server: Server) -> None:
    phone, device, _ = await server.pair()
    for _ in range(2):
        server.clock.now += timedelta(seconds=1)
        await server.change.rotate(compromised=False, actor=OWNER)
        new = news_of(server, phone, device.id)
        assert new == server.desk.host_key
        phone.link = type(phone.link)(
            phone.link.base_url,
            phone.link.pairing_id,
            phone.link.secret,
            new,
            phone.link.host_id,
        )


async def test_a_change_of_the_key_voids_open_pairings(server: Server) -> None:
    phone = await server.open_pairing()
    await server.ask(phone)
    await server.change.rotate(compromised=False, actor=OWNER)
    with pytest.raises(PairingRefused):
        await server.ask(phone)


async def test_a_new_token_is_sealed_by_the_new_key(server: Server) -> None:
    phone, device, token = await server.pair()
    actor = await server.call(token)
    before = await server.desk.refresh_token(device.key_id, actor=actor)
    await server.change.rotate(compromised=False, actor=OWNER)
    after = await server.desk.refresh_token(device.key_id, actor=actor)
    assert after.header.host_key_id == server.desk.host_key.key_id
    opened = unseal_envelope(after, recipient=phone.key, sender=server.desk.host_key)
    await server.call(opened["token"])
    with pytest.raises(EnvelopeInvalid):
        phone.open(after)
    with pytest.raises(Unauthenticated):
        await server.call(phone.open(before)["token"])


async def test_after_a_compromise_every_device_is_paired_anew(server: Server) -> None:
    _, device, token = await server.pair()
    old = server.keys.current
    assert await server.change.rotate(compromised=True, actor=OWNER) == 1
    assert server.registry.get(device.id).state is DeviceState.REVOKED
    with pytest.raises(Unauthenticated):
        await server.call(token)
    assert server.keys.previous is None
    assert server.keys.current.public != old.public
    assert server.desk.find_key_news(device.id) is None
    [told] = await server.records("keys.rotate")
    assert told.detail == "compromised=true"
    again = await server.restart()
    await again.pair()
    await again.stop()
