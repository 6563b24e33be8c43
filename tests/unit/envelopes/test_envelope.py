import hashlib
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestage.canonical import pae
from sidestage.envelopes.encoding import encode_base64
from sidestage.envelopes.envelope import (
    CIPHERTEXT_LIMIT_BYTES,
    Direction,
    Envelope,
    Fault,
    Header,
    Purpose,
)
from sidestage.envelopes.hpke import Sealed
from sidestage.errors import EnvelopeInvalid
from sidestage.ids import HostId
from tests.fakes.envelopes import EXAMPLES, seal_answer, vectors

ENVELOPE = seal_answer()
FIELDS = ENVELOPE.to_fields()
VECTORS = vectors("envelopes")["vectors"]


def refused(**changes: str) -> EnvelopeInvalid:
    with pytest.raises(EnvelopeInvalid) as raised:
        Envelope.from_fields(FIELDS | changes)
    return raised.value


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: str(v["about"]))
def test_the_committed_envelopes_have_their_aad(vector: dict[str, Any]) -> None:
    envelope = Envelope.from_fields(vector["envelope"])
    aad = envelope.header.aad
    assert aad.hex() == vector["aad"]
    assert hashlib.sha256(aad).hexdigest() == vector["aadSha256"]
    assert envelope.header.purpose.info.decode() == vector["info"]
    assert envelope.sealed.enc.hex() == vector["encHex"]
    ciphertext = envelope.sealed.ciphertext
    assert len(ciphertext) == vector["ciphertextBytes"]
    assert hashlib.sha256(ciphertext).hexdigest() == vector["ciphertextSha256"]
    assert envelope.to_fields() == vector["envelope"]


def test_the_aad_is_every_clear_field_in_order() -> None:
    header = ENVELOPE.header
    parts = [str(getattr(header, each.name)) for each in fields(Header)]
    assert header.aad == pae(["sidestage/envelope/v1", *parts])


def test_the_fields_of_an_envelope_bring_it_back() -> None:
    assert Envelope.from_fields(FIELDS) == ENVELOPE


@pytest.mark.parametrize("purpose", Purpose)
def test_only_answers_go_from_a_device_to_the_host(purpose: Purpose) -> None:
    is_answer = purpose.value in {"handover-answer", "request-answer"}
    expected = Direction.DEVICE_TO_HOST if is_answer else Direction.HOST_TO_DEVICE
    assert purpose.direction is expected
    assert purpose.info == f"sidestage/hpke/v1/{purpose.value}".encode()


@pytest.mark.parametrize("size", [0, 1, 31, 33, 64])
def test_an_ephemeral_key_of_another_size_is_refused(size: int) -> None:
    assert refused(enc=encode_base64(bytes(size))).fault == Fault.SIZE


@pytest.mark.parametrize("size", [0, 16, CIPHERTEXT_LIMIT_BYTES + 1])
def test_a_ciphertext_of_a_wrong_size_is_refused(size: int) -> None:
    assert refused(ciphertext=encode_base64(bytes(size))).fault == Fault.SIZE


@pytest.mark.parametrize("size", [17, CIPHERTEXT_LIMIT_BYTES])
def test_the_smallest_and_largest_ciphertexts_are_taken(size: int) -> None:
    fields_ = FIELDS | {"ciphertext": encode_base64(bytes(size))}
    assert len(Envelope.from_fields(fields_).sealed.ciphertext) == size


@pytest.mark.parametrize("name", ["enc", "ciphertext"])
def test_a_huge_text_is_refused_before_it_is_decoded(name: str) -> None:
    # Not even Base64, so that decoding it would tell another fault.
    assert refused(**{name: "!" * 10_000_000}).fault == Fault.SIZE


@pytest.mark.parametrize("name", ["enc", "ciphertext"])
@pytest.mark.parametrize("text", vectors("base64")["refused"], ids=repr)
def test_other_spellings_of_the_bytes_are_refused(name: str, text: str) -> None:
    assert refused(**{name: text}).fault == Fault.FORM


def test_the_same_bytes_spelled_otherwise_are_refused() -> None:
    """`QR==` for `QQ==`: a replay with another text, had the text been compared."""
    enc = FIELDS["enc"]
    assert enc.endswith("=")
    other = enc[:-2] + chr(ord(enc[-2]) + 1) + "="
    assert refused(enc=other).fault == Fault.FORM


@pytest.mark.parametrize("purpose", ["", "OFFER", "offer ", "handover", "v1/offer"])
def test_an_unknown_purpose_is_refused(purpose: str) -> None:
    assert refused(purpose=purpose).fault == Fault.PURPOSE


def test_sizes_are_looked_at_before_the_purpose() -> None:
    assert refused(enc="", purpose="unknown").fault == Fault.SIZE


@pytest.mark.parametrize(
    "time",
    [
        *("", "-1", "+1", "01", "00", "1.0", "1e3", " 1", "1 ", "1\n"),
        *("10000000000000000", "１", "0x1", "1_000"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", ["sealedAtMs", "expiresAtMs"])
def test_a_time_has_one_spelling(name: str, time: str) -> None:
    assert refused(**{name: time}).fault == Fault.FORM


@pytest.mark.parametrize("time", ["0", "9999999999999999"])
def test_the_first_and_last_time_are_taken(time: str) -> None:
    envelope = Envelope.from_fields(FIELDS | {"sealedAtMs": time})
    assert envelope.to_fields()["sealedAtMs"] == time


@pytest.mark.parametrize("name", ["hostId", "deviceId", "subjectId", "sessionId"])
@pytest.mark.parametrize(
    "text", ["a b", "a\n", "é", "\ud800", "\x00", "a" * 129], ids=repr
)
def test_an_id_of_another_form_is_refused(name: str, text: str) -> None:
    assert refused(**{name: text}).fault == Fault.FORM


@pytest.mark.parametrize("name", ["hostKeyId", "deviceKeyId", "messageId"])
@pytest.mark.parametrize("change", ["cut", "padded", "alphabet", "empty"])
def test_a_key_or_message_id_of_another_form_is_refused(name: str, change: str) -> None:
    text = FIELDS[name]
    changed = {
        "cut": text[:-1],
        "padded": text + "=",
        "alphabet": "+" + text[1:],
        "empty": "",
    }[change]
    assert refused(**{name: changed}).fault == Fault.FORM


def test_a_message_id_has_one_spelling() -> None:
    """16 bytes leave four bits of the last character unused."""
    assert refused(messageId="A" * 21 + "B").fault == Fault.FORM


def test_a_missing_field_is_a_bug_of_the_caller() -> None:
    with pytest.raises(KeyError):
        Envelope.from_fields({name: FIELDS[name] for name in FIELDS if name != "enc"})


@settings(max_examples=EXAMPLES)
@given(st.dictionaries(st.sampled_from(sorted(FIELDS)), st.text(max_size=40)))
def test_garbage_in_any_field_is_refused_or_comes_back_as_it_was(
    changes: dict[str, str],
) -> None:
    try:
        envelope = Envelope.from_fields(FIELDS | changes)
    except EnvelopeInvalid:
        return
    assert envelope.to_fields() == FIELDS | changes


def test_the_digest_covers_every_field() -> None:
    header, sealed = ENVELOPE.header, ENVELOPE.sealed
    others = [
        replace(ENVELOPE, header=replace(header, host_id=HostId("host:2"))),
        replace(ENVELOPE, header=replace(header, sealed_at_ms=1)),
        replace(ENVELOPE, sealed=Sealed(bytes(32), sealed.ciphertext)),
        replace(ENVELOPE, sealed=Sealed(sealed.enc, bytes(17))),
    ]
    digests = {each.digest for each in (ENVELOPE, *others)}
    assert len(digests) == 5
    assert Envelope.from_fields(FIELDS).digest == ENVELOPE.digest
