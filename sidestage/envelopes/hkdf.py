"""HKDF with SHA-256 (RFC 5869); libsodium's own is not in PyNaCl."""

import hmac
from typing import Final

HASH_BYTES: Final = 32
OUTPUT_LIMIT_BYTES: Final = 255 * HASH_BYTES
"""RFC 5869, section 2.3: the counter of the blocks is one byte."""


def extract(salt: bytes, key_material: bytes) -> bytes:
    """Return the 32-byte pseudorandom key of *key_material*.

    No salt is 32 zeros, as the RFC says: HMAC fills its key up with them anyway.
    """
    return hmac.digest(salt, key_material, "sha256")


def expand(pseudorandom_key: bytes, info: bytes, length_bytes: int) -> bytes:
    """Return *length_bytes* bytes for the use that *info* names.

    Raises `ValueError` above `OUTPUT_LIMIT_BYTES`.
    """
    if length_bytes > OUTPUT_LIMIT_BYTES:
        raise ValueError(f"HKDF gives at most {OUTPUT_LIMIT_BYTES} bytes.")
    output = block = b""
    for counter in range(1, -(-length_bytes // HASH_BYTES) + 1):
        block = hmac.digest(
            pseudorandom_key, block + info + counter.to_bytes(1, "big"), "sha256"
        )
        output += block
    return output[:length_bytes]
