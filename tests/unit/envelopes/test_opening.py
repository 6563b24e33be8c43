from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestage.envelopes import hpke
from sidestage.envelopes.envelope import (
    Envelope,
    Fault,
    Header,
    Purpose,
    Subject,
)
from sidestage.envelopes.hpke import Sealed
from sidestage.envelopes.keys import PrivateKey
from sidestage.envelopes.opening import (
    Caller,
    HostIdentity,
    Opened,
    Settled,
    open_answer,
)
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.errors import DeviceKeyRequired, EnvelopeInvalid, EnvelopeReplayed
from sidestage.ids import DeviceId, HostId
from tests.fakes.envelopes import (
    ANSWER,
    CALLER,
    DEVICE_ID,
    DEVICE_KEY,
    EXAMPLES,
    HOST,
    HOST_ID,
    HOST_KEY,
    OFFER,
    PARTIES,
    STRANGER_KEY,
    expect,
    seal_answer,
    vectors,
)

ENVELOPE = seal_answer()
HEADER = ENVELOPE.header
OTHER_MESSAGE_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def fault_of(envelope: Envelope, **expected: Any) -> str:
    """Return why the host refuses *envelope*."""
    with pytest.raises(EnvelopeInvalid) as refused:
        open_answer(envelope, expect(**expected))
    return refused.value.fault


def with_header(**changes: Any) -> Envelope:
    """Return the answer with other clear fields and the seal it had."""
    return replace(ENVELOPE, header=replace(HEADER, **changes))


def test_a_right_answer_opens() -> None:
    assert open_answer(ENVELOPE, expect()) == Opened(ANSWER, is_retry=False)


def test_an_answer_to_a_request_opens_for_that_purpose_only() -> None:
    content = {"decision": "allow", "note": "", "selections": [], "shown": "00"}
    envelope = seal_answer(content, purpose=Purpose.REQUEST_ANSWER)
    opened = open_answer(envelope, expect(purpose=Purpose.REQUEST_ANSWER))
    assert opened == Opened(content, is_retry=False)
    assert fault_of(envelope) == Fault.PURPOSE


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"purpose": Purpose.REQUEST_ANSWER}, Fault.PURPOSE),
        ({"purpose": Purpose.OFFER}, Fault.PURPOSE),
        ({"host_id": HostId("host:2")}, Fault.HOST),
        ({"host_id": HostId("")}, Fault.HOST),
        ({"host_key_id": STRANGER_KEY.public.key_id}, Fault.HOST),
        ({"host_key_id": HEADER.device_key_id}, Fault.HOST),
        ({"device_id": DeviceId("device:2")}, Fault.DEVICE),
        ({"device_id": DeviceId("")}, Fault.DEVICE),
        ({"device_key_id": STRANGER_KEY.public.key_id}, Fault.DEVICE),
        ({"device_key_id": HEADER.host_key_id}, Fault.DEVICE),
        ({"subject_id": "offer:2"}, Fault.SUBJECT),
        ({"subject_id": ""}, Fault.SUBJECT),
        ({"session_id": "outside:2"}, Fault.SUBJECT),
        ({"expires_at_ms": HEADER.expires_at_ms + 1}, Fault.EXPIRY),
        ({"expires_at_ms": HEADER.expires_at_ms - 1}, Fault.EXPIRY),
        ({"message_id": OTHER_MESSAGE_ID}, Fault.SEAL),
        ({"sealed_at_ms": HEADER.sealed_at_ms + 1}, Fault.SEAL),
    ],
    ids=lambda each: str(each) if isinstance(each, dict) else "",
)
def test_a_changed_clear_field_is_noticed(
    changes: dict[str, Any], fault: Fault
) -> None:
    assert fault_of(with_header(**changes)) == fault


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"purpose": Purpose.REQUEST_ANSWER}, {"purpose": Purpose.REQUEST_ANSWER}),
        (
            {"host_id": HostId("host:2")},
            {"host": HostIdentity(HostId("host:2"), (HOST_KEY,))},
        ),
        (
            {"host_key_id": STRANGER_KEY.public.key_id},
            {"host": HostIdentity(HOST_ID, (STRANGER_KEY,))},
        ),
        (
            {"device_id": DeviceId("device:2")},
            {"caller": Caller(DeviceId("device:2"), DEVICE_KEY.public)},
        ),
        (
            {"device_key_id": STRANGER_KEY.public.key_id},
            {"caller": Caller(DEVICE_ID, STRANGER_KEY.public)},
        ),
        ({"subject_id": "offer:2"}, {"subject": replace(OFFER, subject_id="offer:2")}),
        ({"session_id": "o:2"}, {"subject": replace(OFFER, session_id="o:2")}),
        (
            {"expires_at_ms": OFFER.expires_at_ms + 1},
            {"subject": replace(OFFER, expires_at_ms=OFFER.expires_at_ms + 1)},
        ),
        ({"sealed_at_ms": 0}, {}),
        ({"message_id": OTHER_MESSAGE_ID}, {}),
    ],
    ids=lambda each: ",".join(each),
)
def test_an_answer_moved_to_where_its_fields_would_fit_does_not_open(
    changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    """To another purpose, host, key, device, offer: the seal binds them all."""
    assert fault_of(with_header(**changes), **expected) == Fault.SEAL


NEIGHBOURS = [
    ("host_id", "device_id"),
    ("host_key_id", "device_key_id"),
    ("subject_id", "session_id"),
    ("device_id", "subject_id"),
    ("sealed_at_ms", "expires_at_ms"),
]


@pytest.mark.parametrize("pair", NEIGHBOURS, ids="-".join)
def test_swapped_fields_do_not_open_even_where_they_are_expected(
    pair: tuple[str, str],
) -> None:
    one, other = pair
    header = replace(
        HEADER, **{one: getattr(HEADER, other), other: getattr(HEADER, one)}
    )
    assert header.aad != HEADER.aad
    with pytest.raises(hpke.SealBroken):
        hpke.unseal(
            ENVELOPE.sealed,
            info=header.purpose.info,
            aad=header.aad,
            recipient=HOST_KEY,
            sender=DEVICE_KEY.public,
        )


def test_a_boundary_moved_between_two_fields_does_not_open() -> None:
    """Joined without lengths, `offer:1` + `outside:1` had many readings."""
    whole = HEADER.subject_id + HEADER.session_id
    for cut in range(len(whole) + 1):
        if cut == len(HEADER.subject_id):
            continue
        subject = Subject(whole[:cut], whole[cut:], OFFER.expires_at_ms)
        moved = with_header(
            subject_id=subject.subject_id, session_id=subject.session_id
        )
        assert fault_of(moved, subject=subject) == Fault.SEAL


def test_an_offer_reflected_to_the_host_is_refused() -> None:
    offered = {"question": "q", "summary": "", "title": "", "folder": ""}
    offer = seal_answer(offered, purpose=Purpose.OFFER, sender=HOST_KEY)
    assert fault_of(offer) == Fault.PURPOSE
    # Nor for a host that would expect it: an offer is never the host's to open.
    assert fault_of(offer, purpose=Purpose.OFFER) == Fault.PURPOSE
    relabelled = replace(
        offer, header=replace(offer.header, purpose=Purpose.HANDOVER_ANSWER)
    )
    assert fault_of(relabelled) == Fault.SEAL


def test_an_answer_forged_with_a_stolen_token_alone_does_not_open() -> None:
    """The thief has the device's token, so is the caller, but not its key."""
    stolen = replace(PARTIES, device_key=STRANGER_KEY.public)
    forged = seal_answer(parties=stolen, sender=STRANGER_KEY)
    assert fault_of(forged) == Fault.DEVICE
    relabelled = replace(
        forged, header=replace(forged.header, device_key_id=CALLER.key.key_id)
    )
    assert fault_of(relabelled) == Fault.SEAL


def test_another_devices_answer_is_not_the_callers() -> None:
    other = Caller(DeviceId("device:2"), STRANGER_KEY.public)
    assert fault_of(ENVELOPE, caller=other) == Fault.DEVICE


def test_a_revoked_device_is_refused() -> None:
    assert fault_of(ENVELOPE, caller=replace(CALLER, is_revoked=True)) == Fault.DEVICE


def test_a_caller_without_a_key_is_told_so() -> None:
    with pytest.raises(DeviceKeyRequired):
        open_answer(ENVELOPE, expect(caller=None))


def test_a_key_in_grace_still_opens_and_an_erased_one_does_not() -> None:
    new_key = PrivateKey.generate()
    in_grace = HostIdentity(HOST_ID, (new_key, HOST_KEY))
    assert isinstance(open_answer(ENVELOPE, expect(host=in_grace)), Opened)
    assert fault_of(ENVELOPE, host=HostIdentity(HOST_ID, (new_key,))) == Fault.HOST


def test_a_subject_that_is_gone_is_refused() -> None:
    assert fault_of(ENVELOPE, subject=None) == Fault.SUBJECT


@pytest.mark.parametrize(("late_ms", "opens"), [(-1, True), (0, False), (1, False)])
def test_an_answer_expires_by_the_servers_clock(late_ms: int, opens: bool) -> None:
    expected = expect(now_ms=OFFER.expires_at_ms + late_ms)
    if opens:
        assert isinstance(open_answer(ENVELOPE, expected), Opened)
        return
    with pytest.raises(EnvelopeInvalid) as refused:
        open_answer(ENVELOPE, expected)
    assert refused.value.fault == Fault.EXPIRED


@pytest.mark.parametrize("skew_ms", [-(10**12), 10**12], ids=["behind", "ahead"])
def test_a_devices_clock_does_not_matter(skew_ms: int) -> None:
    header = replace(HEADER, sealed_at_ms=HEADER.sealed_at_ms + skew_ms)
    assert isinstance(open_answer(reseal(header), expect()), Opened)


def reseal(header: Header, plaintext: bytes | None = None) -> Envelope:
    """Return what the device seals under *header*, by hand."""
    text = b'{"v":1,"answer":"a","question":"q","summary":""}'
    sealed = hpke.seal(
        text if plaintext is None else plaintext,
        info=header.purpose.info,
        aad=header.aad,
        recipient=HOST_KEY.public,
        sender=DEVICE_KEY,
        ephemeral=PrivateKey.generate(),
    )
    return Envelope(header, sealed)


@pytest.mark.parametrize(
    "plaintext", [b"x", b"[1]", b'{"v":2}', b'{"v":1,"answer":""}']
)
def test_a_sealed_text_that_is_no_answer_is_refused(plaintext: bytes) -> None:
    assert fault_of(reseal(HEADER, plaintext)) == Fault.CONTENT


@pytest.mark.parametrize(
    "key",
    [vector["key"] for vector in vectors("keys")["smallOrder"]]
    + [vector["key"] for vector in vectors("keys")["secondSpellings"]],
)
def test_a_bad_ephemeral_key_does_not_open(key: str) -> None:
    """A point of small order ended in INTERNAL, not in a refusal."""
    sealed = Sealed(bytes.fromhex(key), ENVELOPE.sealed.ciphertext)
    assert fault_of(replace(ENVELOPE, sealed=sealed)) == Fault.SEAL


def test_a_cut_or_lengthened_ciphertext_does_not_open() -> None:
    enc, ciphertext = ENVELOPE.sealed
    for other in (ciphertext[:-1], ciphertext[1:], ciphertext[:17], ciphertext + b"\0"):
        changed = replace(ENVELOPE, sealed=Sealed(enc, other))
        assert fault_of(changed) == Fault.SEAL


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 8 * (32 + 272) - 1))
def test_no_bit_of_the_seal_can_be_flipped(bit: int) -> None:
    raw = bytearray(b"".join(ENVELOPE.sealed))
    raw[bit // 8] ^= 1 << bit % 8
    sealed = Sealed(bytes(raw[:32]), bytes(raw[32:]))
    assert fault_of(replace(ENVELOPE, sealed=sealed)) == Fault.SEAL


SEEN = SeenEnvelope.of(ENVELOPE)


def test_the_same_envelope_again_gets_its_outcome() -> None:
    settled = open_answer(ENVELOPE, expect(known=replace(SEEN, outcome="CONTINUED")))
    assert settled == Settled("CONTINUED")


def test_the_outcome_is_told_after_the_expiry_and_without_the_subject_too() -> None:
    expected = expect(
        known=replace(SEEN, outcome="CONTINUED"),
        subject=None,
        now_ms=OFFER.expires_at_ms + 1,
    )
    assert open_answer(ENVELOPE, expected) == Settled("CONTINUED")


def test_the_same_envelope_without_a_final_outcome_opens_again() -> None:
    """A start that failed before a process existed is started once more."""
    assert open_answer(ENVELOPE, expect(known=SEEN)) == Opened(ANSWER, is_retry=True)


def test_another_envelope_with_a_known_message_id_is_a_replay() -> None:
    other = reseal(HEADER)
    for known in (SEEN, replace(SEEN, outcome="CONTINUED")):
        with pytest.raises(EnvelopeReplayed):
            open_answer(other, expect(known=known))


def test_the_same_seal_with_other_clear_fields_is_a_replay() -> None:
    with pytest.raises(EnvelopeReplayed):
        open_answer(with_header(sealed_at_ms=1), expect(known=SEEN))


FAULTS_IN_ORDER: list[tuple[dict[str, Any], Fault]] = [
    ({"purpose": Purpose.REQUEST_ANSWER}, Fault.PURPOSE),
    ({"host_id": HostId("host:2")}, Fault.HOST),
    ({"device_id": DeviceId("device:2")}, Fault.DEVICE),
    ({"subject_id": "offer:2"}, Fault.SUBJECT),
    ({"expires_at_ms": 0}, Fault.EXPIRY),
]


@pytest.mark.parametrize("first", range(len(FAULTS_IN_ORDER)))
def test_of_several_faults_the_first_in_the_order_is_told(first: int) -> None:
    changes: dict[str, Any] = {}
    for change, _ in FAULTS_IN_ORDER[first:]:
        changes |= change
    assert fault_of(with_header(**changes)) == FAULTS_IN_ORDER[first][1]


def test_a_replay_is_told_before_the_subject_and_after_the_device() -> None:
    known = replace(SEEN, outcome="CONTINUED")
    with pytest.raises(EnvelopeReplayed):
        open_answer(with_header(subject_id="offer:2"), expect(known=known))
    stranger = with_header(device_id=DeviceId("device:2"))
    assert fault_of(stranger, known=known) == Fault.DEVICE


def test_nothing_is_computed_with_a_key_before_all_clear_fields_are_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*arguments: Any, **named: Any) -> bytes:
        raise AssertionError("unsealed too early")

    monkeypatch.setattr(hpke, "unseal", fail)
    for change, fault in FAULTS_IN_ORDER:
        assert fault_of(with_header(**change)) == fault
    with pytest.raises(AssertionError, match="too early"):
        open_answer(ENVELOPE, expect(host=HOST))
