"""`pair`, `devices` and `keys`, over a stand-in for the server's answers."""

import asyncio
import io
import sys
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from sidestage.command import pair
from sidestage.command.failure import CommandFailed
from sidestage.command.main import run
from sidestage.command.pair import wait_for_claim
from sidestage.settings import Settings, read_settings

Json = dict[str, Any]
LINK = "http://127.0.0.1:7433/pair#1.AAAA.BBBB.CCCC.host:1"
CLAIMED: Json = {
    "id": "p1",
    "state": "CLAIMED",
    "end": None,
    "name": "Ada’s \x1b[31mphone",
    "platform": "ios",
    "scopes": ["VIEW", "ANSWER"],
    "content": "SEALED",
}
DEVICE: Json = {
    "id": "device:" + "a1" * 16,
    "name": "Phone",
    "platform": "ios",
    "state": "ACTIVE",
    "scopes": ["VIEW"],
    "content": "CLEAR",
    "keyId": "k",
    "pairedAt": "2026-11-30T12:00:00Z",
    "lastSeenAt": None,
    "revokedAt": None,
}


def follow(*rows: Json) -> Any:
    async def subscribe(
        settings: Settings, document: str, variables: Mapping[str, Any]
    ) -> AsyncGenerator[dict[str, Any]]:
        for row in rows:
            yield {"pairingFeed": {"upserts": [row]}}

    return subscribe


@pytest.fixture
def claimed(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Json]) -> None:
    async def wait(*_: object) -> Json:
        return CLAIMED

    monkeypatch.setattr(pair, "wait_for_claim", wait)
    made = {
        "__typename": "CreatePairingPayload",
        "link": LINK,
        "expiresInSeconds": 300,
        "pairing": {"id": "p1"},
    }
    answers["mutation Create"] = {"data": {"createPairing": made}}
    done = {"__typename": "ConfirmPairingPayload", "device": {"id": "d", "name": "P"}}
    answers["mutation Confirm"] = {"data": {"confirmPairing": done}}
    answers["mutation Cancel"] = {"data": {"cancelPairing": {"__typename": "x"}}}


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.mark.usefixtures("claimed")
def test_the_code_is_typed_after_the_device_was_shown(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: list[Json],
) -> None:
    type_in(monkeypatch, "\n 482 913\n")
    assert run(["pair", "--sealed", "--name", "Mine"]) == 0
    told = capsys.readouterr().out
    assert LINK in told
    assert "view, answer, content sealed" in told
    assert "\x1b" not in told
    assert asked[0]["variables"]["input"] == {"name": "Mine", "content": "SEALED"}
    assert asked[-1]["variables"]["input"] == {"pairingId": "p1", "code": "482913"}


@pytest.mark.usefixtures("claimed")
@pytest.mark.parametrize(
    ("options", "scopes"),
    [
        (["--scope", "answer"], ["VIEW", "ANSWER"]),
        (["--admin"], ["VIEW", "READ", "ANSWER", "TERMINAL", "ADMIN"]),
        (["--admin", "--scope", "view"], ["VIEW", "ADMIN"]),
    ],
)
def test_scopes_are_the_owners_choice(
    monkeypatch: pytest.MonkeyPatch,
    asked: list[Json],
    options: list[str],
    scopes: list[str],
) -> None:
    type_in(monkeypatch, "1\n")
    assert run(["pair", *options]) == 0
    assert asked[0]["variables"]["input"]["scopes"] == scopes


@pytest.mark.usefixtures("claimed")
def test_nobody_at_the_keyboard_cancels_the_pairing(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: list[Json],
) -> None:
    type_in(monkeypatch, "")
    assert run(["pair"]) == 1
    assert "Cancelled" in capsys.readouterr().err
    assert asked[-1]["variables"] == {"input": {"pairingId": "p1"}}


@pytest.mark.usefixtures("claimed")
def test_a_wrong_code_is_asked_for_again_until_the_pairing_ends(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answers: dict[str, Json],
    asked: list[Json],
) -> None:
    wrong = {"__typename": "PairingCodeWrong", "code": "PAIRING_CODE_WRONG"}
    wrong["message"] = "The code is wrong."
    answers["mutation Confirm"] = {"data": {"confirmPairing": wrong}}
    type_in(monkeypatch, "1\n2\n")
    assert run(["pair"]) == 1
    assert capsys.readouterr().out.count("The code is wrong.") == 2
    wrong["message"] = "The code is wrong; the pairing has ended."
    asked.clear()
    type_in(monkeypatch, "1\n2\n")
    assert run(["pair"]) == 1
    assert "Nobody was let in" in capsys.readouterr().err


def test_an_agent_is_sent_to_its_owner(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    denied = {"message": "No.", "extensions": {"code": "PERMISSION_DENIED"}}
    answers["mutation Create"] = {"errors": [denied]}
    assert run(["pair"]) == 1
    assert "in your own terminal" in capsys.readouterr().err


def test_the_claim_of_this_pairing_is_waited_for() -> None:
    other = CLAIMED | {"id": "p2"}
    opened = CLAIMED | {"state": "OPEN"}
    subscribe = follow(other, opened, CLAIMED)
    waiting = wait_for_claim(read_settings({}), "p1", 5, subscribe=subscribe)
    assert asyncio.run(waiting) == CLAIMED


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([CLAIMED | {"state": "ENDED", "end": "TWO_DEVICES"}], "Two devices"),
        ([CLAIMED | {"state": "ENDED", "end": "LATER"}], "has ended"),
        ([], "The server ended"),
    ],
)
def test_a_pairing_that_ends_is_told(rows: list[Json], told: str) -> None:
    with pytest.raises(CommandFailed, match=told):
        asyncio.run(wait_for_claim(read_settings({}), "p1", 5, subscribe=follow(*rows)))


def test_a_server_that_tells_nothing_is_given_up() -> None:
    async def silent(*_: object) -> AsyncGenerator[dict[str, Any]]:
        await asyncio.Event().wait()
        yield {}

    with pytest.raises(CommandFailed, match="in time"):
        asyncio.run(wait_for_claim(read_settings({}), "p1", 0.01, subscribe=silent))


def devices(*rows: Json) -> Json:
    info = {"hasNextPage": False, "endCursor": None}
    return {"data": {"devices": {"nodes": list(rows), "pageInfo": info}}}


def test_revoked_devices_are_listed_on_demand(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["query Devices"] = devices(DEVICE | {"state": "REVOKED"})
    assert run(["devices", "list"]) == 0
    assert "No devices yet" in capsys.readouterr().out
    assert run(["devices", "list", "--all"]) == 0
    assert "revoked" in capsys.readouterr().out
    assert run(["devices", "list", "--all", "--json"]) == 0
    assert '"state": "REVOKED"' in capsys.readouterr().out


def test_a_live_device_is_meant_before_a_revoked_one_of_its_name(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str], asked: list[Json]
) -> None:
    old = DEVICE | {"id": "device:" + "b2" * 16, "state": "REVOKED"}
    answers["query Devices"] = devices(old, DEVICE)
    made = {"__typename": "RevokeDevicePayload", "wasRevoked": False, "device": DEVICE}
    answers["mutation Revoke"] = {"data": {"revokeDevice": made}}
    assert run(["devices", "revoke", "Phone"]) == 0
    assert asked[-1]["variables"]["input"] == {"deviceId": DEVICE["id"]}
    made["wasRevoked"] = True
    assert run(["devices", "revoke", "Phone"]) == 1
    assert "revoked already" in capsys.readouterr().err


def test_a_device_gets_another_name(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["query Devices"] = devices(DEVICE)
    made = {"__typename": "RenameDevicePayload", "device": DEVICE | {"name": "New"}}
    answers["mutation Rename"] = {"data": {"renameDevice": made}}
    assert run(["devices", "rename", "a1a1", "New"]) == 0
    assert "'New'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "told"),
    [([], "learn of it"), (["--compromised"], "Pair each again")],
)
def test_a_change_of_the_key_says_what_is_to_be_done(
    answers: dict[str, Json],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    told: str,
) -> None:
    answers["/control/keys/rotate"] = {"devices": 2}
    assert run(["keys", "rotate", *options]) == 0
    assert told in capsys.readouterr().out
