"""HPKE (RFC 9180), one message at a time, in the mode that proves the sender.

Mode Auth (2), DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305; sequence
number 0 only. There is no other mode on purpose: every envelope proves who sealed it.
Names in lower case are those of the RFC.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import nacl.bindings
import nacl.exceptions

from sidestage.envelopes.hkdf import expand, extract
from sidestage.envelopes.keys import (
    KEY_BYTES,
    KeyRefused,
    PrivateKey,
    PublicKey,
    agree,
    parse_public_key,
)
from sidestage.errors import EnvelopeInvalid

TAG_BYTES: Final = 16
NONCE_BYTES: Final = 12
_MODE_AUTH: Final = b"\x02"
_VERSION: Final = b"HPKE-v1"
_KEM_SUITE: Final = b"KEM" + bytes.fromhex("0020")
_HPKE_SUITE: Final = b"HPKE" + bytes.fromhex("002000010003")


class Sealed(NamedTuple):
    """What travels: *enc*, the ephemeral public key; the ciphertext with its tag."""

    enc: bytes
    ciphertext: bytes


@dataclass(frozen=True, slots=True)
class Schedule:
    """The key and nonce of one message. Neither is ever used for a second one."""

    key: bytes = field(repr=False)
    nonce: bytes


class SealBroken(EnvelopeInvalid):
    """The message does not open: other keys, other clear fields, or altered bytes."""

    def __init__(self) -> None:
        super().__init__("The envelope does not open.", fault="SEAL")


def seal(
    plaintext: bytes,
    *,
    info: bytes,
    aad: bytes,
    recipient: PublicKey,
    sender: PrivateKey,
    ephemeral: PrivateKey,
) -> Sealed:
    """Seal *plaintext* for *recipient*, so that it proves *sender*.

    *ephemeral* must be fresh for every message: two messages of one ephemeral key share
    key and nonce. Raises `KeyRefused` if *recipient* is a point of small order.
    """
    shared = encapsulate(recipient, sender=sender, ephemeral=ephemeral)
    schedule = derive_schedule(shared, info)
    ciphertext = nacl.bindings.crypto_aead_chacha20poly1305_ietf_encrypt(
        plaintext, aad, schedule.nonce, schedule.key
    )
    return Sealed(ephemeral.public.raw, ciphertext)


def unseal(
    sealed: Sealed,
    *,
    info: bytes,
    aad: bytes,
    recipient: PrivateKey,
    sender: PublicKey,
) -> bytes:
    """Return the plaintext that *sender* sealed for *recipient*.

    Raises `SealBroken` if it does not open, whatever the reason.
    """
    # PyNaCl 1.6 computes a negative length for it and fails with a ValueError.
    if len(sealed.ciphertext) < TAG_BYTES:
        raise SealBroken
    try:
        shared = decapsulate(sealed.enc, recipient=recipient, sender=sender)
        schedule = derive_schedule(shared, info)
        return nacl.bindings.crypto_aead_chacha20poly1305_ietf_decrypt(
            sealed.ciphertext, aad, schedule.nonce, schedule.key
        )
    except (KeyRefused, nacl.exceptions.CryptoError):
        raise SealBroken from None


def encapsulate(
    recipient: PublicKey, *, sender: PrivateKey, ephemeral: PrivateKey
) -> bytes:
    """Return the shared secret of `AuthEncap` (RFC 9180, section 4.1)."""
    dh = agree(ephemeral, recipient) + agree(sender, recipient)
    return _shared_secret(dh, ephemeral.public, recipient, sender.public)


def decapsulate(enc: bytes, *, recipient: PrivateKey, sender: PublicKey) -> bytes:
    """Return the shared secret of `AuthDecap`; raise `KeyRefused` for a bad *enc*."""
    ephemeral = parse_public_key(enc, own=recipient)
    dh = agree(recipient, ephemeral) + agree(recipient, sender)
    return _shared_secret(dh, ephemeral, recipient.public, sender)


def derive_schedule(shared_secret: bytes, info: bytes) -> Schedule:
    """Return key and nonce of the first message (RFC 9180, section 5.1, no PSK)."""
    psk_id_hash = _labeled_extract(_HPKE_SUITE, b"", b"psk_id_hash", b"")
    info_hash = _labeled_extract(_HPKE_SUITE, b"", b"info_hash", info)
    context = _MODE_AUTH + psk_id_hash + info_hash
    secret = _labeled_extract(_HPKE_SUITE, shared_secret, b"secret", b"")
    return Schedule(
        key=_labeled_expand(_HPKE_SUITE, secret, b"key", context, KEY_BYTES),
        nonce=_labeled_expand(_HPKE_SUITE, secret, b"base_nonce", context, NONCE_BYTES),
    )


def _shared_secret(
    dh: bytes, ephemeral: PublicKey, recipient: PublicKey, sender: PublicKey
) -> bytes:
    kem_context = ephemeral.raw + recipient.raw + sender.raw
    eae_prk = _labeled_extract(_KEM_SUITE, b"", b"eae_prk", dh)
    return _labeled_expand(
        _KEM_SUITE, eae_prk, b"shared_secret", kem_context, KEY_BYTES
    )


def _labeled_extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    return extract(salt, _VERSION + suite + label + ikm)


def _labeled_expand(
    suite: bytes, prk: bytes, label: bytes, info: bytes, length_bytes: int
) -> bytes:
    labeled = length_bytes.to_bytes(2, "big") + _VERSION + suite + label + info
    return expand(prk, labeled, length_bytes)
