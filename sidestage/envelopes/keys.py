"""X25519 keys: making them, refusing bad ones, naming them, agreeing on secrets."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

import nacl.bindings
import nacl.exceptions

from sidestage.envelopes.encoding import encode_base64url
from sidestage.errors import InvalidInput

KEY_BYTES: Final = 32
KEY_ID_BYTES: Final = 12
"""96 bits: nobody finds a second key for one id, and it only looks keys up anyway."""
_FIELD_PRIME: Final = 2**255 - 19
_ID_DOMAIN: Final = b"sidestage/key/v1"


class KeyRefused(InvalidInput):
    """A public key that must not be used; the sentence says why."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key as it travels: 32 bytes. `parse_public_key` checks a stranger's."""

    raw: bytes

    @property
    def key_id(self) -> str:
        """Its name: 16 characters of base64url."""
        digest = hashlib.sha256(_ID_DOMAIN + self.raw).digest()
        return encode_base64url(digest[:KEY_ID_BYTES])


@dataclass(frozen=True, slots=True, eq=False)
class PrivateKey:
    """A private key and its public one. The secret is in no `repr` and no log."""

    secret: bytes = field(repr=False)
    public: PublicKey

    @classmethod
    def from_secret(cls, secret: bytes) -> Self:
        """Return the key whose 32 secret bytes these are.

        Raises `ValueError` for another length.
        """
        if len(secret) != KEY_BYTES:
            raise ValueError(f"A private key has {KEY_BYTES} bytes.")
        raw = nacl.bindings.crypto_scalarmult_base(secret)
        return cls(secret, PublicKey(raw))

    @classmethod
    def generate(cls, *, entropy: Callable[[int], bytes] = secrets.token_bytes) -> Self:
        """Return a fresh key of 32 bytes of *entropy*."""
        return cls.from_secret(entropy(KEY_BYTES))


def parse_public_key(raw: bytes, *, own: PrivateKey) -> PublicKey:
    """Return the public key *raw*, if *own* can safely agree on a secret with it.

    Raises `KeyRefused` for a wrong length, for a second spelling of a point (its
    integer must be below 2^255 - 19), for our own key come back, and for a point with
    which every secret is the same one.
    """
    key = _canonical(raw)
    if hmac.compare_digest(raw, own.public.raw):
        raise KeyRefused("The key is the recipient's own.")
    agree(own, key)
    return key


def agree(own: PrivateKey, other: PublicKey) -> bytes:
    """Return the 32 bytes that only the two keys' holders can compute.

    Raises `KeyRefused` if *other* is a point of small order.
    """
    try:
        shared = nacl.bindings.crypto_scalarmult(own.secret, other.raw)
    # libsodium refuses small orders. PyNaCl tells it by its RuntimeError, "Unexpected
    # library error", which is a CryptoError.
    except nacl.exceptions.CryptoError:
        raise KeyRefused("The key is a point of small order.") from None
    # RFC 9180, section 7.1.4, asks for this check; no trust in how libsodium was built.
    if hmac.compare_digest(shared, bytes(KEY_BYTES)):
        raise KeyRefused("The key is a point of small order.")
    return shared


def _canonical(raw: bytes) -> PublicKey:
    if len(raw) != KEY_BYTES:
        raise KeyRefused(f"A public key has {KEY_BYTES} bytes.")
    if int.from_bytes(raw, "little") >= _FIELD_PRIME:
        raise KeyRefused("The key is a second spelling of another one.")
    return PublicKey(raw)
