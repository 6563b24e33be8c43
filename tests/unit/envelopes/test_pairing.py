from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestage.canonical import pae
from sidestage.envelopes.keys import PublicKey
from sidestage.envelopes.pairing import (
    LINK_LIMIT_CHARACTERS,
    PairingClaim,
    PairingLink,
    derive_pairing_key,
    parse_pairing_link,
)
from sidestage.errors import InvalidInput
from sidestage.ids import HostId
from tests.fakes.envelopes import EXAMPLES, STRANGER_KEY, vectors

VECTOR = vectors("pairing")
SECRET = bytes.fromhex(VECTOR["secret"])
CLAIM = PairingClaim(
    pairing_id=VECTOR["pairingId"],
    host_id=HostId(VECTOR["hostId"]),
    host_key=PublicKey(bytes.fromhex(VECTOR["hostKey"])),
    device_key=PublicKey(bytes.fromhex(VECTOR["deviceKey"])),
    name=VECTOR["name"],
    platform=VECTOR["platform"],
    nonce=bytes.fromhex(VECTOR["nonce"]),
)
LINK = PairingLink(
    base_url=VECTOR["baseUrl"],
    pairing_id=CLAIM.pairing_id,
    secret=SECRET,
    host_key=CLAIM.host_key,
    host_id=CLAIM.host_id,
)


def test_the_committed_proof_comes_out() -> None:
    assert derive_pairing_key(SECRET).hex() == VECTOR["key"]
    assert CLAIM.transcript.hex() == VECTOR["transcript"]
    assert CLAIM.prove(SECRET).hex() == VECTOR["proof"]
    assert CLAIM.is_proved_by(bytes.fromhex(VECTOR["proof"]), SECRET)


def test_the_transcript_is_every_part_in_order() -> None:
    assert CLAIM.transcript == pae(
        [
            "sidestage/pair/v1",
            CLAIM.pairing_id,
            CLAIM.host_id,
            CLAIM.host_key.raw,
            CLAIM.device_key.raw,
            "Ada’s phone",
            "ios",
            bytes(16),
        ]
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"pairing_id": "AAAAAAAAAAAAAAAAAAAAAQ"},
        {"host_id": HostId("SG9zdDoy")},
        {"host_key": STRANGER_KEY.public},
        {"device_key": STRANGER_KEY.public},
        {"host_key": CLAIM.device_key, "device_key": CLAIM.host_key},
        {"name": "Ada's phone"},
        {"name": "Ada’s phoneios", "platform": ""},
        {"platform": "iOS"},
        {"nonce": bytes(15) + b"\1"},
    ],
    ids=lambda changes: "-".join(changes) + repr(changes.get("name", "")),
)
def test_a_proof_is_good_for_its_own_claim_only(changes: dict[str, Any]) -> None:
    proof = CLAIM.prove(SECRET)
    assert not replace(CLAIM, **changes).is_proved_by(proof, SECRET)


@pytest.mark.parametrize(
    "proof", [b"", bytes(32), CLAIM.prove(SECRET)[:31], CLAIM.prove(SECRET) + b"\0"]
)
def test_another_proof_is_not_taken(proof: bytes) -> None:
    assert not CLAIM.is_proved_by(proof, SECRET)


def test_another_secret_proves_nothing() -> None:
    assert not CLAIM.is_proved_by(CLAIM.prove(bytes(16)), SECRET)


def test_a_name_without_utf8_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Unicode"):
        replace(CLAIM, name="\ud800").prove(SECRET)


def test_the_committed_link_is_written_and_read() -> None:
    assert LINK.encode() == VECTOR["link"]
    assert parse_pairing_link(VECTOR["link"]) == LINK


def test_a_link_holds_its_secrets_in_the_fragment_only() -> None:
    address, _, fragment = LINK.encode().partition("#")
    assert address == "https://host.example:8443/side/pair"
    assert fragment.split(".")[2] == "AAECAwQFBgcICQoLDA0ODw"
    assert SECRET.hex() not in repr(LINK)
    assert repr(SECRET) not in repr(LINK)


@settings(max_examples=EXAMPLES)
@given(st.binary(min_size=16, max_size=16), st.binary(min_size=32, max_size=32))
def test_any_secret_and_key_come_back_from_a_link(secret: bytes, key: bytes) -> None:
    link = replace(LINK, secret=secret, host_key=PublicKey(key))
    assert parse_pairing_link(link.encode()) == link


@pytest.mark.parametrize(
    "base_url",
    ["http://127.0.0.1:7373", "http://[::1]:7373", "https://a.example/x/y"],
)
def test_a_link_leads_to_any_address_of_a_server(base_url: str) -> None:
    link = replace(LINK, base_url=base_url, host_id=HostId("host:" + "0" * 32))
    assert parse_pairing_link(link.encode()) == link
    assert len(link.encode()) <= 200


@pytest.mark.parametrize(
    "changes",
    [
        {"secret": bytes(15)},
        {"host_key": PublicKey(bytes(31))},
        {"pairing_id": "short"},
        {"pairing_id": "A" * 21 + "B"},
        {"host_id": HostId("")},
        {"host_id": HostId("a.b")},
        {"host_id": HostId("a b")},
        {"host_id": HostId("a" * 129)},
        {"base_url": ""},
        {"base_url": "host.example"},
        {"base_url": "ftp://host.example"},
        {"base_url": "javascript:alert(1)"},
        {"base_url": "https://"},
        {"base_url": "https://host.example/"},
        {"base_url": "https://user@host.example"},
        {"base_url": "https://host.example?x"},
        {"base_url": "https://host.example#x"},
        {"base_url": "https://host.example:0"},
        {"base_url": "https://host.example:99999"},
        {"base_url": "https://[::1"},
        {"base_url": "https://host .example"},
        {"base_url": "https://höst.example"},
    ],
    ids=repr,
)
def test_what_cannot_stand_in_a_link_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        replace(LINK, **changes)


TEXT = LINK.encode()
PARTS = TEXT.partition("#")[2].split(".")


@pytest.mark.parametrize(
    "text",
    [
        "",
        TEXT.replace("#", "?"),
        TEXT.replace("/pair#", "/#"),
        TEXT.replace("#1.", "#2."),
        TEXT + ".more",
        TEXT + "\n",
        " " + TEXT,
        TEXT.replace(PARTS[2], PARTS[2][:-1]),
        TEXT.replace(PARTS[2], PARTS[2] + "=="),
        TEXT.replace(PARTS[3], PARTS[3][:-1] + "*"),
        TEXT.replace(".SG9", "..SG9"),
        TEXT.rpartition(".")[0],
        TEXT.replace("/side", "/side" * LINK_LIMIT_CHARACTERS),
    ],
    ids=lambda text: f"{len(text)}:{text[:40]}…{text[-6:]}",
)
def test_what_is_no_link_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_pairing_link(text)


@settings(max_examples=EXAMPLES)
@given(st.text(max_size=80))
def test_garbage_is_no_link(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_pairing_link(text)
