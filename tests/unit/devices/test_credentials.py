import asyncio
from datetime import timedelta

import pytest

from sidestage.devices.keeper import DEVICE_IDLE
from sidestage.devices.model import ContentMode, DeviceState, Principal
from sidestage.errors import DeviceKeyRequired, InvalidInput, Unauthenticated
from tests.fakes.phone import Phone
from tests.unit.devices.conftest import OWNER, Server


async def refresh(server: Server, phone: Phone, actor: Principal) -> str:
    key_id = phone.key.public.key_id
    envelope = await server.desk.refresh_token(key_id, actor=actor)
    token: str = phone.open(envelope)["token"]
    return token


async def test_a_device_that_does_not_call_for_ninety_days_is_out(
    server: Server,
) -> None:
    _, _, token = await server.pair()
    server.clock.now += DEVICE_IDLE - timedelta(seconds=1)
    await server.call(token)
    server.clock.now += DEVICE_IDLE - timedelta(seconds=1)
    await server.call(token)
    server.clock.now += DEVICE_IDLE
    with pytest.raises(Unauthenticated, match="expired"):
        await server.call(token)


async def test_the_old_token_is_good_until_the_new_one_is_used(server: Server) -> None:
    phone, _, old = await server.pair()
    actor = await server.call(old)
    new = await refresh(server, phone, actor)
    assert new != old
    await server.call(old)
    assert server.keeper.is_current(actor)
    await server.call(new)
    assert not server.keeper.is_current(actor)
    with pytest.raises(Unauthenticated):
        await server.call(old)
    await server.call(new)


async def test_a_lost_answer_can_be_asked_for_again_also_after_a_restart(
    server: Server,
) -> None:
    phone, _, old = await server.pair()
    first = await refresh(server, phone, await server.call(old))
    assert await refresh(server, phone, await server.call(old)) == first
    again = await server.restart()
    assert await refresh(again, phone, await again.call(old)) == first
    await again.call(first)
    second = await refresh(again, phone, await again.call(first))
    assert second != first
    await again.stop()


async def test_the_use_of_a_replaced_token_is_audited_and_revokes_nothing(
    server: Server,
) -> None:
    phone, device, old = await server.pair()
    new = await refresh(server, phone, await server.call(old))
    await server.call(new)
    again = await server.restart()
    again.clock.now += timedelta(minutes=2)
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            await again.call(old)
    await again.call(new)
    await again.keeper.close()
    [told] = await again.records("token.replaced")
    assert told.actor == device.id
    await again.stop()


async def test_only_the_last_replaced_token_is_remembered(server: Server) -> None:
    phone, _, first = await server.pair()
    second = await refresh(server, phone, await server.call(first))
    third = await refresh(server, phone, await server.call(second))
    await server.call(third)
    for again in (server, await server.restart()):
        with pytest.raises(Unauthenticated, match="not known"):
            await again.call(first)
        with pytest.raises(Unauthenticated, match="place"):
            await again.call(second)
    await again.stop()


async def test_two_at_once_get_the_same_new_token(server: Server) -> None:
    phone, _, old = await server.pair()
    actor = await server.call(old)
    got = await asyncio.gather(*(refresh(server, phone, actor) for _ in range(3)))
    assert len(set(got)) == 1
    await asyncio.gather(*(server.call(got[0]) for _ in range(3)))
    assert len(await server.records("token.refresh")) == 1


async def test_a_new_token_that_lapsed_unused_is_made_anew(server: Server) -> None:
    phone, _, old = await server.pair()
    lapsed = await refresh(server, phone, await server.call(old))
    server.clock.now += DEVICE_IDLE - timedelta(seconds=1)
    await server.call(old)
    server.clock.now += timedelta(seconds=2)
    new = await refresh(server, phone, await server.call(old))
    assert new != lapsed
    with pytest.raises(Unauthenticated):
        await server.call(lapsed)


async def test_a_token_is_sealed_for_the_key_that_its_device_names(
    server: Server,
) -> None:
    _, _, token = await server.pair()
    actor = await server.call(token)
    with pytest.raises(InvalidInput):
        await server.desk.refresh_token("AAAAAAAAAAAAAAAA", actor=actor)
    with pytest.raises(DeviceKeyRequired):
        await server.desk.refresh_token("AAAAAAAAAAAAAAAA", actor=OWNER)


async def test_the_owner_of_tokens_does_not_see_those_of_devices(
    server: Server,
) -> None:
    _, _, token = await server.pair()
    principal = await server.call(token)
    assert server.keeper.list_tokens() == ()
    assert principal.token_id is not None
    assert not await server.keeper.revoke(principal.token_id, actor=OWNER)
    await server.call(token)


async def test_a_call_carries_how_much_its_device_is_shown(server: Server) -> None:
    _, _, clear = await server.pair()
    _, _, sealed = await server.pair(content=ContentMode.SEALED)
    assert (await server.call(clear)).content is ContentMode.CLEAR
    assert (await server.call(sealed)).content is ContentMode.SEALED


async def test_when_a_device_last_called_is_kept_to_the_minute(server: Server) -> None:
    _, device, token = await server.pair()
    await server.keeper.close()
    first = server.registry.get(device.id).last_seen_at
    server.clock.now += timedelta(seconds=59)
    await server.call(token)
    server.clock.now += timedelta(seconds=2)
    await server.call(token)
    again = await server.restart()
    seen = again.registry.get(device.id).last_seen_at
    assert first is not None
    assert seen == first + timedelta(seconds=61)
    await again.stop()


async def test_a_call_that_meets_a_revocation_is_refused(server: Server) -> None:
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    device = await server.confirm(phone, shown["code"])
    token = (await server.ask(phone))["token"]
    revoking = server.desk.revoke(device.id, actor=OWNER)
    results = await asyncio.gather(revoking, server.call(token), return_exceptions=True)
    assert isinstance(results[1], Unauthenticated)
    assert server.registry.get(device.id).state is DeviceState.REVOKED
