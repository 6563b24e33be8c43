from typing import Any

import pytest

from sidestage.envelopes.envelope import Envelope, Fault, Purpose, Subject
from sidestage.envelopes.keys import PrivateKey
from sidestage.envelopes.sealing import (
    Parties,
    seal_envelope,
    unseal_envelope,
)
from sidestage.errors import EnvelopeInvalid, InvalidInput
from sidestage.ids import DeviceId, HostId
from tests.fakes.envelopes import (
    DEVICE_KEY,
    HOST_KEY,
    OFFER,
    PARTIES,
    SEALED_AT_MS,
    seal_answer,
    vectors,
)

ALL = vectors("envelopes")
VECTORS = ALL["vectors"]
OFFERED = {"question": "Which one?", "summary": "", "title": "t", "folder": "/p"}


def test_the_keys_of_the_vectors_are_those_of_the_tests() -> None:
    assert HOST_KEY.public.raw.hex() == ALL["hostKey"]
    assert DEVICE_KEY.public.raw.hex() == ALL["deviceKey"]


def content_of(vector: dict[str, Any]) -> tuple[Envelope, dict[str, Any]]:
    """Return the vector's envelope and what it opens to."""
    envelope = Envelope.from_fields(vector["envelope"])
    own, other = HOST_KEY, DEVICE_KEY.public
    if envelope.header.purpose.direction == "HOST_TO_DEVICE":
        own, other = DEVICE_KEY, HOST_KEY.public
    return envelope, unseal_envelope(envelope, recipient=own, sender=other)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: str(v["about"]))
def test_the_committed_envelopes_open_and_are_sealed_again(
    vector: dict[str, Any],
) -> None:
    envelope, content = content_of(vector)
    header = envelope.header
    randomness = {
        16: bytes.fromhex(vector["messageIdBytes"]),
        32: bytes.fromhex(vector["ephemeralSecret"]),
    }
    device_to_host = header.purpose.direction == "DEVICE_TO_HOST"
    again = seal_envelope(
        content,
        purpose=header.purpose,
        parties=Parties(
            HostId("SG9zdDox"), HOST_KEY.public, header.device_id, DEVICE_KEY.public
        ),
        subject=Subject(header.subject_id, header.session_id, header.expires_at_ms),
        sender=DEVICE_KEY if device_to_host else HOST_KEY,
        sealed_at_ms=header.sealed_at_ms,
        entropy=lambda size: randomness[size],
    )
    assert again.to_fields() == vector["envelope"]


@pytest.mark.parametrize("purpose", Purpose)
def test_only_the_one_who_may_seals(purpose: Purpose) -> None:
    wrong = HOST_KEY if purpose.direction == "DEVICE_TO_HOST" else DEVICE_KEY
    with pytest.raises(ValueError, match="does not seal"):
        seal_answer({}, purpose=purpose, sender=wrong)


def test_each_envelope_has_its_own_message_id_and_ephemeral_key() -> None:
    envelopes = [seal_answer() for _ in range(20)]
    assert len({each.header.message_id for each in envelopes}) == 20
    assert len({each.sealed.enc for each in envelopes}) == 20
    assert len({each.sealed.ciphertext for each in envelopes}) == 20


def test_two_devices_get_two_envelopes_and_neither_opens_the_others() -> None:
    other_key = PrivateKey.from_secret(b"\x07" * 32)
    other = Parties(
        PARTIES.host_id, PARTIES.host_key, DeviceId("device:2"), other_key.public
    )
    one, two = (
        seal_answer(OFFERED, purpose=Purpose.OFFER, parties=parties, sender=HOST_KEY)
        for parties in (PARTIES, other)
    )
    for envelope, own, foreign in (
        (one, DEVICE_KEY, other_key),
        (two, other_key, DEVICE_KEY),
    ):
        opened = unseal_envelope(envelope, recipient=own, sender=HOST_KEY.public)
        assert opened == OFFERED
        with pytest.raises(EnvelopeInvalid):
            unseal_envelope(envelope, recipient=foreign, sender=HOST_KEY.public)


def test_content_that_cannot_be_sent_is_not_sealed() -> None:
    with pytest.raises(InvalidInput):
        seal_answer({"answer": "no question, no summary"})


def test_a_subject_whose_id_has_no_place_on_the_wire_is_not_sealed() -> None:
    with pytest.raises(EnvelopeInvalid) as refused:
        seal_answer(subject=Subject("two words", "", SEALED_AT_MS))
    assert refused.value.fault == Fault.FORM


@pytest.mark.parametrize("expires_at_ms", [-1, 10**16])
def test_a_time_that_has_no_place_on_the_wire_is_not_sealed(expires_at_ms: int) -> None:
    with pytest.raises(EnvelopeInvalid) as refused:
        seal_answer(subject=Subject("offer:1", "", expires_at_ms))
    assert refused.value.fault == Fault.FORM


def test_nothing_sealed_is_readable_in_what_travels() -> None:
    """Peers' push texts and clear headers told the question outside the envelope."""
    fields = seal_answer({"answer": "CANARY", "question": "CANARY", "summary": ""})
    assert "CANARY" not in str(fields.to_fields())
    assert b"CANARY" not in fields.sealed.ciphertext
    assert fields.header.expires_at_ms == OFFER.expires_at_ms
