from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sidestage.devices.model import (
    ANONYMOUS,
    ContentMode,
    DeviceState,
    PrincipalKind,
    Scope,
)
from sidestage.devices.pairing_rules import (
    LIFETIME,
    OPEN_LIMIT,
    WRONG_CODES_LIMIT,
    WRONG_PROOFS_LIMIT,
)
from sidestage.devices.pairings import PairingEnd, PairingState
from sidestage.devices.registry import DEVICES_LIMIT
from sidestage.devices.service import FIRST_CALL_WITHIN
from sidestage.devices.tokens import parse_token
from sidestage.envelopes.keys import PrivateKey
from sidestage.errors import (
    DeviceLimitReached,
    InvalidInput,
    PairingClosed,
    PairingCodeWrong,
    PairingLimitReached,
    PairingRefused,
    Unauthenticated,
)
from tests.fakes.phone import Phone
from tests.unit.devices.conftest import OWNER, Clock, Server

OTHER_KEY = PrivateKey.from_secret(b"\x07" * 32)


async def test_a_device_is_paired_by_link_code_and_first_call(server: Server) -> None:
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    assert len(shown["code"]) == 6
    device = await server.confirm(phone, shown["code"])
    assert device.state is DeviceState.PENDING
    given = await server.ask(phone)
    assert given["deviceId"] == device.id
    assert given["scopes"] == ["ANSWER", "READ", "TERMINAL", "VIEW"]
    principal = await server.call(given["token"])
    assert principal.kind is PrincipalKind.DEVICE
    assert principal.device_id == principal.actor == device.id
    active = server.registry.get(device.id)
    assert active.state is DeviceState.ACTIVE
    assert active.may_answer
    assert (active.name, active.platform) == ("Ada’s phone", "ios")
    actions = ("pairing.create", "pairing.claim", "device.pair", "device.activate")
    assert [len(await server.records(action)) for action in actions] == [1, 1, 1, 1]


async def test_a_repeated_request_gets_the_very_same_envelope(server: Server) -> None:
    phone = await server.open_pairing()
    request = phone.request()
    first = await server.pairings.claim(request, actor=ANONYMOUS)
    spent = server.rate.points
    again = await server.pairings.claim(replace(request), actor=ANONYMOUS)
    assert again == first
    await server.confirm(phone, phone.open(first.envelope)["code"])
    done = await server.pairings.claim(request, actor=ANONYMOUS)
    assert done.is_done
    assert await server.pairings.claim(request, actor=ANONYMOUS) == done
    assert server.rate.points == spent  # polling is free


async def test_after_the_code_was_typed_a_restart_changes_nothing(
    server: Server,
) -> None:
    """The token is kept as a hash only: without the stored envelope it were lost."""
    phone = await server.open_pairing()
    request = phone.request()
    shown = await server.ask(phone)
    device = await server.confirm(phone, shown["code"])
    again = await server.restart()
    first = await again.pairings.claim(request, actor=ANONYMOUS)
    once_more = await again.restart()
    second = await once_more.pairings.claim(request, actor=ANONYMOUS)
    assert first == second
    token = phone.open(second.envelope)["token"]
    assert (await once_more.call(token)).device_id == device.id
    last = await once_more.restart()
    assert (await last.call(token)).device_id == device.id
    with pytest.raises(PairingClosed):
        await last.pairings.claim(request, actor=ANONYMOUS)
    await last.stop()


async def test_before_the_code_was_typed_a_restart_voids_the_pairing(
    server: Server,
) -> None:
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    again = await server.restart()
    with pytest.raises(PairingRefused):
        await again.pairings.claim(phone.request(), actor=ANONYMOUS)
    with pytest.raises(PairingClosed):
        await again.confirm(phone, shown["code"])
    await again.stop()


async def test_after_the_first_call_the_request_is_worth_nothing(
    server: Server,
) -> None:
    phone, device, _ = await server.pair()
    with pytest.raises(PairingClosed):
        await server.pairings.claim(phone.request(), actor=ANONYMOUS)
    await server.desk.revoke(device.id, actor=OWNER)
    with pytest.raises(PairingClosed):
        await server.pairings.claim(phone.request(), actor=ANONYMOUS)
    with pytest.raises(PairingRefused):
        await server.ask(phone, proof=bytes(32))


async def test_a_second_device_with_the_link_ends_the_pairing(server: Server) -> None:
    """A photographed code: neither of the two gets in."""
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    thief = Phone(phone.link)
    with pytest.raises(PairingRefused):
        await server.ask(thief)
    with pytest.raises(PairingClosed):
        await server.confirm(phone, shown["code"])
    with pytest.raises(PairingRefused):
        await server.ask(phone)
    told = server.pairings.feed.get(phone.link.pairing_id)
    assert told is not None
    assert (told.state, told.end) == (PairingState.ENDED, PairingEnd.TWO_DEVICES)
    [burnt] = await server.records("pairing.burn")
    assert burnt.detail == "TWO_DEVICES"


async def test_the_same_device_with_another_name_changes_nothing(
    server: Server,
) -> None:
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    renamed = Phone(phone.link, name="Other", key=phone.key)
    with pytest.raises(PairingRefused):
        await server.ask(renamed)
    assert (await server.confirm(phone, shown["code"])).name == "Ada’s phone"


async def test_guessing_at_the_secret_ends_the_pairing(server: Server) -> None:
    phone = await server.open_pairing()
    for _ in range(WRONG_PROOFS_LIMIT):
        with pytest.raises(PairingRefused):
            await server.ask(phone, proof=bytes(32))
    with pytest.raises(PairingRefused):
        await server.ask(phone)
    told = server.pairings.feed.get(phone.link.pairing_id)
    assert told is not None
    assert told.end is PairingEnd.WRONG_PROOFS


async def test_fewer_wrong_proofs_harm_nobody(server: Server) -> None:
    phone = await server.open_pairing()
    for _ in range(WRONG_PROOFS_LIMIT - 1):
        with pytest.raises(PairingRefused):
            await server.ask(phone, proof=bytes(32))
    assert "code" in await server.ask(phone)


async def test_a_code_that_is_typed_wrong_three_times_ends_the_pairing(
    server: Server,
) -> None:
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    for number in range(WRONG_CODES_LIMIT):
        with pytest.raises(PairingCodeWrong):
            await server.confirm(phone, f"x{number}é")
    with pytest.raises(PairingClosed):
        await server.confirm(phone, shown["code"])
    assert server.registry.feed.values() == ()


async def test_typing_the_code_again_gives_the_same_device(server: Server) -> None:
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    device = await server.confirm(phone, shown["code"])
    assert await server.confirm(phone, shown["code"]) == device
    with pytest.raises(PairingCodeWrong):
        await server.confirm(phone, "000000x")
    assert len(server.registry.feed.values()) == 1


async def test_a_code_before_any_device_is_a_mistake(server: Server) -> None:
    phone = await server.open_pairing()
    with pytest.raises(InvalidInput, match="No device"):
        await server.confirm(phone, "000000")


async def test_a_pairing_ends_by_the_servers_clock(server: Server) -> None:
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    server.clock.now += LIFETIME
    with pytest.raises(PairingRefused):
        await server.ask(phone)
    with pytest.raises(PairingClosed):
        await server.confirm(phone, shown["code"])
    told = server.pairings.feed.get(phone.link.pairing_id)
    assert told is not None
    assert told.end is PairingEnd.EXPIRED


async def test_a_cancelled_pairing_is_over_however_often_it_is_cancelled(
    server: Server,
) -> None:
    phone = await server.open_pairing()
    for _ in range(2):
        ended = await server.pairings.cancel(phone.link.pairing_id, actor=OWNER)
        assert ended.end is PairingEnd.CANCELLED
    with pytest.raises(PairingRefused):
        await server.ask(phone)
    with pytest.raises(PairingClosed):
        await server.pairings.cancel("never", actor=OWNER)


async def test_three_pairings_may_be_open_at_once(server: Server) -> None:
    phones = [await server.open_pairing() for _ in range(OPEN_LIMIT)]
    with pytest.raises(PairingLimitReached):
        await server.open_pairing()
    await server.pairings.cancel(phones[0].link.pairing_id, actor=OWNER)
    await server.open_pairing()


async def test_ended_pairings_do_not_pile_up(server: Server) -> None:
    for _ in range(30):
        phone = await server.open_pairing()
        await server.pairings.cancel(phone.link.pairing_id, actor=OWNER)
    assert len(server.pairings.feed.values()) <= 11


async def test_a_registered_key_is_never_taken_again(server: Server) -> None:
    phone, device, _ = await server.pair()
    for _ in range(2):
        again = await server.open_pairing()
        again.key = phone.key
        with pytest.raises(InvalidInput, match="registered before"):
            await server.ask(again)
        await server.desk.revoke(device.id, actor=OWNER)


@pytest.mark.parametrize(
    "changes",
    [
        {"device_key": bytes(31)},
        {"nonce": bytes(15)},
        {"proof": bytes(33)},
        {"name": " \x07"},
        {"name": "x" * 65},
        {"name": "x" * 10_000},
        {"name": "\ud800"},
        {"platform": ""},
        {"platform": "x" * 33},
    ],
)
async def test_a_request_with_a_wrong_form_is_told(
    server: Server, changes: dict[str, Any]
) -> None:
    phone = await server.open_pairing()
    with pytest.raises((InvalidInput, PairingRefused)):
        await server.ask(phone, **changes)


async def test_a_point_of_small_order_is_no_key(server: Server) -> None:
    phone = await server.open_pairing()
    phone.key = replace(phone.key, public=replace(phone.key.public, raw=bytes(32)))
    with pytest.raises(InvalidInput, match="small order"):
        await server.ask(phone)


async def test_the_owner_names_the_device_and_bounds_it(server: Server) -> None:
    phone = await server.open_pairing(
        name="Kitchen tablet", scopes=frozenset({Scope.VIEW})
    )
    shown = await server.ask(phone)
    device = await server.confirm(phone, shown["code"])
    assert device.name == "Kitchen tablet"
    assert device.scopes == {Scope.VIEW}


async def test_a_sealed_device_gets_no_scope_that_shows_texts(server: Server) -> None:
    _, device, _ = await server.pair(content=ContentMode.SEALED)
    assert device.scopes == {Scope.VIEW, Scope.ANSWER}
    for scope in (Scope.READ, Scope.TERMINAL, Scope.ADMIN):
        with pytest.raises(InvalidInput, match="sealed"):
            await server.open_pairing(
                content=ContentMode.SEALED, scopes=frozenset({Scope.VIEW, scope})
            )


async def test_every_device_may_view(server: Server) -> None:
    with pytest.raises(InvalidInput, match="VIEW"):
        await server.open_pairing(scopes=frozenset({Scope.ANSWER}))


async def test_a_device_that_never_calls_is_forgotten(server: Server) -> None:
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    device = await server.confirm(phone, shown["code"])
    token = (await server.ask(phone))["token"]
    server.clock.now += FIRST_CALL_WITHIN - timedelta(seconds=1)
    await server.desk.tidy()
    assert server.registry.feed.get(device.id) is not None
    server.clock.now += timedelta(seconds=1)
    await server.desk.tidy()
    assert server.registry.feed.get(device.id) is None
    with pytest.raises(Unauthenticated):
        await server.call(token)
    with pytest.raises(PairingRefused):
        await server.pairings.claim(phone.request(), actor=ANONYMOUS)
    assert len(await server.records("device.expire")) == 1
    again = await server.restart()
    assert again.registry.feed.values() == ()
    await again.stop()


async def test_a_device_that_called_is_not_forgotten(server: Server) -> None:
    _, device, token = await server.pair()
    server.clock.now += FIRST_CALL_WITHIN * 2
    await server.desk.tidy()
    assert server.registry.feed.get(device.id) is not None
    await server.call(token)


async def test_devices_are_limited(server: Server, monkeypatch: Any) -> None:
    assert DEVICES_LIMIT == 20
    monkeypatch.setattr("sidestage.devices.pairing.DEVICES_LIMIT", 1)
    first, second = await server.open_pairing(), await server.open_pairing()
    codes = [(await server.ask(phone))["code"] for phone in (first, second)]
    device = await server.confirm(first, codes[0])
    with pytest.raises(DeviceLimitReached):
        await server.confirm(second, codes[1])
    with pytest.raises(DeviceLimitReached):
        await server.open_pairing()
    await server.desk.revoke(device.id, actor=OWNER)
    await server.confirm(second, codes[1])


async def test_the_database_holds_no_token_code_or_secret(tmp_path: Path) -> None:
    server = await Server.start(tmp_path, Clock())
    phone = await server.open_pairing()
    shown = await server.ask(phone)
    await server.confirm(phone, shown["code"])
    token = (await server.ask(phone))["token"]
    await server.stop()
    held = b"".join(path.read_bytes() for path in tmp_path.glob("sidestage.db*"))
    secret = parse_token(token)
    assert secret is not None
    for hidden in (
        token.encode(),
        secret.secret,
        phone.link.secret,
        phone.link.encode().encode(),
        server.keys.current.secret,
    ):
        assert hidden not in held
    assert secret.id.encode() in held
