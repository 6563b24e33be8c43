from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey, KEMKeyInterface, OpenError

from sidestage.envelopes import hpke
from sidestage.envelopes.hpke import SealBroken, Sealed
from sidestage.envelopes.keys import KeyRefused, PrivateKey, PublicKey
from sidestage.errors import ErrorCode
from tests.fakes.envelopes import DEVICE_KEY, EXAMPLES, HOST_KEY, STRANGER_KEY, vectors

RFC = {
    name: bytes.fromhex(text)
    for name, text in vectors("hpke").items()
    if name != "about"
}
RFC_SENDER = PrivateKey.from_secret(RFC["skS"])
RFC_RECIPIENT = PrivateKey.from_secret(RFC["skR"])
RFC_EPHEMERAL = PrivateKey.from_secret(RFC["skE"])
KEYS = vectors("keys")
BAD_KEYS = [
    *(vector["key"] for vector in KEYS["smallOrder"]),
    *(vector["key"] for vector in KEYS["secondSpellings"]),
    *KEYS["wrongLengths"],
    HOST_KEY.public.raw.hex(),
]

SUITE = CipherSuite.new(
    KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.CHACHA20_POLY1305
)
SECRETS = st.binary(min_size=32, max_size=32)
TEXTS = st.binary(max_size=300)


class Message(NamedTuple):
    info: bytes = b"info"
    aad: bytes = b"aad"


def sealed_for_host() -> Sealed:
    return hpke.seal(
        b"text",
        info=b"info",
        aad=b"aad",
        recipient=HOST_KEY.public,
        sender=DEVICE_KEY,
        ephemeral=PrivateKey.generate(),
    )


def unseal_at_host(sealed: Sealed, message: Message | None = None) -> bytes:
    info, aad = message or Message()
    return hpke.unseal(
        sealed, info=info, aad=aad, recipient=HOST_KEY, sender=DEVICE_KEY.public
    )


def test_the_keys_of_the_rfc_belong_together() -> None:
    assert RFC_SENDER.public.raw == RFC["pkS"]
    assert RFC_RECIPIENT.public.raw == RFC["pkR"]
    assert RFC_EPHEMERAL.public.raw == RFC["enc"]


def test_the_shared_secret_of_the_rfc_comes_out_on_both_sides() -> None:
    encapsulated = hpke.encapsulate(
        RFC_RECIPIENT.public, sender=RFC_SENDER, ephemeral=RFC_EPHEMERAL
    )
    decapsulated = hpke.decapsulate(
        RFC["enc"], recipient=RFC_RECIPIENT, sender=RFC_SENDER.public
    )
    assert encapsulated == decapsulated == RFC["sharedSecret"]


def test_the_key_schedule_of_the_rfc_comes_out() -> None:
    schedule = hpke.derive_schedule(RFC["sharedSecret"], RFC["info"])
    assert (schedule.key, schedule.nonce) == (RFC["key"], RFC["baseNonce"])
    assert RFC["key"].hex() not in repr(schedule)


def test_the_ciphertext_of_the_rfc_comes_out_and_opens() -> None:
    sealed = hpke.seal(
        RFC["plaintext"],
        info=RFC["info"],
        aad=RFC["aad"],
        recipient=RFC_RECIPIENT.public,
        sender=RFC_SENDER,
        ephemeral=RFC_EPHEMERAL,
    )
    assert sealed == Sealed(RFC["enc"], RFC["ciphertext"])
    plaintext = hpke.unseal(
        sealed,
        info=RFC["info"],
        aad=RFC["aad"],
        recipient=RFC_RECIPIENT,
        sender=RFC_SENDER.public,
    )
    assert plaintext == RFC["plaintext"]


def their_private(key: PrivateKey) -> KEMKeyInterface:
    return KEMKey.from_pyca_cryptography_key(
        X25519PrivateKey.from_private_bytes(key.secret)
    )


def their_public(key: PublicKey) -> KEMKeyInterface:
    return KEMKey.from_pyca_cryptography_key(X25519PublicKey.from_public_bytes(key.raw))


@settings(max_examples=EXAMPLES)
@given(SECRETS, SECRETS, TEXTS, TEXTS, TEXTS)
def test_another_implementation_opens_what_we_seal(
    sender_secret: bytes, recipient_secret: bytes, text: bytes, info: bytes, aad: bytes
) -> None:
    sender = PrivateKey.from_secret(sender_secret)
    recipient = PrivateKey.from_secret(recipient_secret)
    sealed = hpke.seal(
        text,
        info=info,
        aad=aad,
        recipient=recipient.public,
        sender=sender,
        ephemeral=PrivateKey.generate(),
    )
    opener = SUITE.create_recipient_context(
        sealed.enc,
        their_private(recipient),
        info=info,
        pks=their_public(sender.public),
    )
    assert opener.open(sealed.ciphertext, aad=aad) == text


@settings(max_examples=EXAMPLES)
@given(SECRETS, SECRETS, TEXTS, TEXTS, TEXTS)
def test_we_open_what_another_implementation_seals(
    sender_secret: bytes, recipient_secret: bytes, text: bytes, info: bytes, aad: bytes
) -> None:
    sender = PrivateKey.from_secret(sender_secret)
    recipient = PrivateKey.from_secret(recipient_secret)
    enc, sealer = SUITE.create_sender_context(
        their_public(recipient.public), info=info, sks=their_private(sender)
    )
    sealed = Sealed(enc, sealer.seal(text, aad=aad))
    opened = hpke.unseal(
        sealed, info=info, aad=aad, recipient=recipient, sender=sender.public
    )
    assert opened == text


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_an_altered_message_opens_neither_here_nor_elsewhere(
    data: st.DataObject,
) -> None:
    sealed = sealed_for_host()
    raw = bytearray(sealed.ciphertext)
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    altered = Sealed(sealed.enc, bytes(raw))
    with pytest.raises(SealBroken):
        unseal_at_host(altered)
    opener = SUITE.create_recipient_context(
        altered.enc,
        their_private(HOST_KEY),
        info=b"info",
        pks=their_public(DEVICE_KEY.public),
    )
    with pytest.raises(OpenError):
        opener.open(altered.ciphertext, aad=b"aad")


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 255))
def test_an_altered_ephemeral_key_does_not_open(bit: int) -> None:
    sealed = sealed_for_host()
    enc = bytearray(sealed.enc)
    enc[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SealBroken):
        unseal_at_host(Sealed(bytes(enc), sealed.ciphertext))


@pytest.mark.parametrize("enc", BAD_KEYS)
def test_a_bad_ephemeral_key_does_not_open(enc: str) -> None:
    sealed = sealed_for_host()
    with pytest.raises(SealBroken) as broken:
        unseal_at_host(Sealed(bytes.fromhex(enc), sealed.ciphertext))
    assert broken.value.code is ErrorCode.ENVELOPE_INVALID


def test_an_alias_as_ephemeral_key_does_not_open_though_it_was_sealed_with() -> None:
    """X25519 gives one secret for both spellings, so only our check refuses it."""
    key = PrivateKey.generate()
    raw = key.public.raw
    alias = PrivateKey(key.secret, PublicKey(raw[:31] + bytes([raw[31] | 0x80])))
    for ephemeral, opens in ((key, True), (alias, False)):
        sealed = hpke.seal(
            b"text",
            info=b"info",
            aad=b"aad",
            recipient=HOST_KEY.public,
            sender=DEVICE_KEY,
            ephemeral=ephemeral,
        )
        if opens:
            assert unseal_at_host(sealed) == b"text"
        else:
            with pytest.raises(SealBroken):
                unseal_at_host(sealed)


@pytest.mark.parametrize("length", range(20))
def test_a_cut_message_does_not_open(length: int) -> None:
    """One shorter than its tag made PyNaCl fail with a ValueError."""
    sealed = sealed_for_host()
    with pytest.raises(SealBroken):
        unseal_at_host(Sealed(sealed.enc, sealed.ciphertext[:length]))


@pytest.mark.parametrize(
    "message", [Message(info=b"info "), Message(info=b""), Message(aad=b"")]
)
def test_another_info_or_aad_does_not_open(message: Message) -> None:
    with pytest.raises(SealBroken):
        unseal_at_host(sealed_for_host(), message)


def test_a_message_proves_its_sender() -> None:
    sealed = sealed_for_host()
    with pytest.raises(SealBroken):
        hpke.unseal(
            sealed,
            info=b"info",
            aad=b"aad",
            recipient=HOST_KEY,
            sender=STRANGER_KEY.public,
        )


def test_a_message_opens_for_its_recipient_only() -> None:
    sealed = sealed_for_host()
    with pytest.raises(SealBroken):
        hpke.unseal(
            sealed,
            info=b"info",
            aad=b"aad",
            recipient=STRANGER_KEY,
            sender=DEVICE_KEY.public,
        )


def test_a_reflected_message_does_not_open() -> None:
    """The two static keys alone would give both directions one secret."""
    sealed = sealed_for_host()
    with pytest.raises(SealBroken):
        hpke.unseal(
            sealed,
            info=b"info",
            aad=b"aad",
            recipient=DEVICE_KEY,
            sender=HOST_KEY.public,
        )


def test_nothing_is_sealed_for_a_point_of_small_order() -> None:
    with pytest.raises(KeyRefused):
        hpke.seal(
            b"text",
            info=b"",
            aad=b"",
            recipient=PublicKey(bytes(32)),
            sender=DEVICE_KEY,
            ephemeral=PrivateKey.generate(),
        )
