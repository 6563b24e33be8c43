"""Envelopes and proofs between our code and `@hpke/core` with WebCrypto."""

import base64
import json
import secrets
from collections.abc import Generator
from typing import Any

import pytest

from sidestage.envelopes.encoding import encode_base64
from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.envelopes.keys import PrivateKey
from sidestage.envelopes.opening import (
    Caller,
    Expected,
    HostIdentity,
    Opened,
    open_answer,
)
from sidestage.envelopes.pairing import PairingClaim
from sidestage.envelopes.sealing import Parties, seal_envelope
from sidestage.errors import EnvelopeInvalid
from sidestage.ids import DeviceId, HostId, new_id
from tests.e2e.envelopes.javascript_device import JavaScriptDevice, open_device
from tests.fakes.envelopes import SEALED_AT_MS, vectors

ROUNDS = 50
CLEAR_FIELDS = [
    *("purpose", "hostId", "hostKeyId", "deviceId", "deviceKeyId", "subjectId"),
    *("sessionId", "messageId", "sealedAtMs", "expiresAtMs"),
]


@pytest.fixture(scope="module")
def device() -> Generator[JavaScriptDevice]:
    with open_device() as running:
        yield running


class Pair:
    """A host and a device with fresh keys, and an offer between them."""

    def __init__(self) -> None:
        self.host_key = PrivateKey.generate()
        self.device_key = PrivateKey.generate()
        self.parties = Parties(
            HostId(new_id("host")),
            self.host_key.public,
            DeviceId(new_id("device")),
            self.device_key.public,
        )
        self.offer = Subject(new_id("offer"), new_id("outside"), SEALED_AT_MS + 1000)

    def seal_offer(self, question: str) -> Envelope:
        texts = {"question": question, "summary": "s", "title": "t", "folder": "/p"}
        return seal_envelope(
            texts,
            purpose=Purpose.OFFER,
            parties=self.parties,
            subject=self.offer,
            sender=self.host_key,
            sealed_at_ms=SEALED_AT_MS,
        )

    def answer_header(self) -> dict[str, str]:
        return {
            "purpose": "handover-answer",
            "hostId": self.parties.host_id,
            "hostKeyId": self.host_key.public.key_id,
            "deviceId": self.parties.device_id,
            "deviceKeyId": self.device_key.public.key_id,
            "subjectId": self.offer.subject_id,
            "sessionId": self.offer.session_id,
            "messageId": base64.urlsafe_b64encode(secrets.token_bytes(16))
            .decode()
            .rstrip("="),
            "sealedAtMs": str(SEALED_AT_MS),
            "expiresAtMs": str(self.offer.expires_at_ms),
        }

    def keys(self) -> dict[str, str]:
        return {
            "secret": self.device_key.secret.hex(),
            "hostKey": self.host_key.public.raw.hex(),
        }

    def open(self, fields: dict[str, str]) -> dict[str, Any]:
        expected = Expected(
            purpose=Purpose.HANDOVER_ANSWER,
            host=HostIdentity(self.parties.host_id, (self.host_key,)),
            caller=Caller(self.parties.device_id, self.device_key.public),
            known=None,
            subject=self.offer,
            now_ms=SEALED_AT_MS,
        )
        opened = open_answer(Envelope.from_fields(fields), expected)
        assert isinstance(opened, Opened)
        return opened.content


def text_of(round_: int) -> str:
    """Return texts of many lengths, with characters of every width."""
    return "aé語👍\n" * round_ * 7


def answer_text(answer: str) -> str:
    value = {"v": 1, "answer": answer, "question": "q", "summary": ""}
    return json.dumps(value, ensure_ascii=False)


def test_the_device_opens_what_the_host_seals(device: JavaScriptDevice) -> None:
    for round_ in range(ROUNDS):
        pair = Pair()
        envelope = pair.seal_offer(text_of(round_)).to_fields()
        answer = device.ask("open", **pair.keys(), envelope=envelope)
        assert json.loads(answer["text"])["question"] == text_of(round_)
        assert len(answer["text"].encode()) % 256 == 0


def test_the_host_opens_what_the_device_seals(device: JavaScriptDevice) -> None:
    for round_ in range(ROUNDS):
        pair = Pair()
        sealed = device.ask(
            "seal",
            **pair.keys(),
            header=pair.answer_header(),
            text=answer_text(text_of(round_)),
        )
        assert pair.open(sealed["envelope"])["answer"] == text_of(round_)


def test_the_device_opens_the_committed_envelopes(device: JavaScriptDevice) -> None:
    committed = vectors("envelopes")
    for vector in committed["vectors"]:
        # What goes to the host opens there with the host's key; HPKE is symmetric.
        to_host = vector["envelope"]["purpose"] == "handover-answer"
        opened = device.ask(
            "open",
            secret=committed["hostSecret" if to_host else "deviceSecret"],
            hostKey=committed["deviceKey" if to_host else "hostKey"],
            envelope=vector["envelope"],
        )
        assert opened["text"].rstrip(" ") == vector["text"]
        assert len(opened["text"].encode()) == vector["plaintextBytes"]


@pytest.mark.parametrize("name", CLEAR_FIELDS)
def test_the_device_refuses_a_changed_clear_field(
    device: JavaScriptDevice, name: str
) -> None:
    pair = Pair()
    envelope = pair.seal_offer("Which one?").to_fields()
    changed = envelope | {name: envelope[name] + "1"}
    answer = device.ask("open", **pair.keys(), envelope=changed)
    assert answer == {"error": "OpenError"}


@pytest.mark.parametrize("name", ["sealedAtMs", "messageId"])
def test_the_host_refuses_a_clear_field_the_device_did_not_seal(
    device: JavaScriptDevice, name: str
) -> None:
    pair = Pair()
    sealed = device.ask(
        "seal", **pair.keys(), header=pair.answer_header(), text=answer_text("yes")
    )["envelope"]
    assert pair.open(sealed)["answer"] == "yes"
    other = {"sealedAtMs": "1", "messageId": "A" * 22}[name]
    with pytest.raises(EnvelopeInvalid):
        pair.open(sealed | {name: other})


def test_the_device_refuses_a_reflected_envelope(device: JavaScriptDevice) -> None:
    pair = Pair()
    header = pair.answer_header()
    sealed = device.ask("seal", **pair.keys(), header=header, text=answer_text("yes"))
    answer = device.ask("open", **pair.keys(), envelope=sealed["envelope"])
    assert answer == {"error": "OpenError"}


@pytest.mark.parametrize(
    "vector", vectors("keys")["smallOrder"], ids=lambda vector: str(vector["about"])
)
def test_the_device_refuses_points_of_small_order(
    device: JavaScriptDevice, vector: dict[str, str]
) -> None:
    pair = Pair()
    sealed = device.ask(
        "seal",
        secret=pair.device_key.secret.hex(),
        hostKey=vector["key"],
        header=pair.answer_header(),
        text=answer_text("yes"),
    )
    assert sealed == {"error": "EncapError"}
    envelope = pair.seal_offer("Which one?").to_fields()
    envelope["enc"] = encode_base64(bytes.fromhex(vector["key"]))
    answer = device.ask("open", **pair.keys(), envelope=envelope)
    assert answer == {"error": "DecapError"}


def test_the_device_proves_a_pairing_as_the_host_expects(
    device: JavaScriptDevice,
) -> None:
    committed = vectors("pairing")
    answer = device.ask("prove", secret=committed["secret"], claim=committed)
    assert answer == {"key": committed["key"], "proof": committed["proof"]}


def test_the_host_takes_a_fresh_proof_of_the_device(device: JavaScriptDevice) -> None:
    pair = Pair()
    secret, nonce = secrets.token_bytes(16), secrets.token_bytes(16)
    claim = PairingClaim(
        pairing_id="A" * 22,
        host_id=pair.parties.host_id,
        host_key=pair.host_key.public,
        device_key=pair.device_key.public,
        name="Zoë’s 📱",
        platform="web",
        nonce=nonce,
    )
    fields = {
        "pairingId": claim.pairing_id,
        "hostId": claim.host_id,
        "hostKey": claim.host_key.raw.hex(),
        "deviceKey": claim.device_key.raw.hex(),
        "name": claim.name,
        "platform": claim.platform,
        "nonce": nonce.hex(),
    }
    answer = device.ask("prove", secret=secret.hex(), claim=fields)
    assert claim.is_proved_by(bytes.fromhex(answer["proof"]), secret)


def test_the_device_names_keys_as_the_host_does(device: JavaScriptDevice) -> None:
    for vector in vectors("keys")["keyIds"]:
        assert device.ask("keyId", key=vector["key"]) == {"keyId": vector["keyId"]}
