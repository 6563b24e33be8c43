"""Canonical encodings: one byte string for one tuple of values, in any language."""

from collections.abc import Iterable


def pae(parts: Iterable[str | bytes]) -> bytes:
    """Return the pre-authentication encoding of *parts*: injective, length-prefixed.

    A big-endian 32-bit count, then for each part its big-endian 32-bit length and its
    bytes. Strings are UTF-8. The construction is PASETO's, with 32-bit lengths
    (docs/security.md, "Canonical form").
    """
    encoded = [part.encode() if isinstance(part, str) else part for part in parts]
    head = len(encoded).to_bytes(4, "big")
    return head + b"".join(len(part).to_bytes(4, "big") + part for part in encoded)
