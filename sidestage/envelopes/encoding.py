"""Base64 with one spelling for one byte string.

Python's decoder forgives: unused bits that are not zero, and, where it is not told
otherwise, any other character. Two spellings of one value would pass a comparison of
bytes and fail one of texts, so every decoding here is checked by encoding it again.
"""

import base64
import binascii

from sidestage.errors import InvalidInput


def encode_base64(raw: bytes) -> str:
    """Return *raw* in the standard alphabet, padded: so travel sealed bytes."""
    return base64.b64encode(raw).decode("ascii")


def decode_base64(text: str) -> bytes:
    """Return what *text* spells in the standard alphabet; padding must be there.

    Raises `InvalidInput` for every spelling but the one `encode_base64` writes.
    """
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise InvalidInput("This is not Base64.") from None
    if encode_base64(raw) != text:
        raise InvalidInput("This is not the one Base64 spelling of its bytes.")
    return raw


def encode_base64url(raw: bytes) -> str:
    """Return *raw* in the alphabet for URLs, without padding: so travel ids."""
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def decode_base64url(text: str, *, length_bytes: int) -> bytes:
    """Return the *length_bytes* bytes that *text* spells in the alphabet for URLs.

    Raises `InvalidInput` for another length and for every other spelling.
    """
    # The length first: a text of any size costs nothing then.
    if len(text) != -(-length_bytes * 8 // 6):
        raise InvalidInput(f"This must be {length_bytes} bytes in base64url.")
    standard = text.replace("+", "!").replace("/", "!")
    standard = standard.replace("-", "+").replace("_", "/")
    return decode_base64(standard + "=" * (-len(text) % 4))
