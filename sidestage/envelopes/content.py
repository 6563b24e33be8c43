"""What is sealed: a JSON object, its fields for each purpose, and its padding."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from sidestage.envelopes.envelope import (
    PADDING_BLOCK_BYTES,
    PLAINTEXT_LIMIT_BYTES,
    Fault,
    Purpose,
)
from sidestage.errors import EnvelopeInvalid, InvalidInput

VERSION: Final = 1

TEXT_FIELDS: Final[Mapping[Purpose, frozenset[str]]] = {
    Purpose.PAIRING_CODE: frozenset({"code"}),
    Purpose.CREDENTIALS: frozenset({"deviceId", "token"}),
    Purpose.OFFER: frozenset({"question", "summary", "title", "folder"}),
    Purpose.REQUEST: frozenset({"toolName", "inputJson", "digest"}),
    Purpose.HOST_KEY: frozenset({"hostKey"}),
    Purpose.HANDOVER_ANSWER: frozenset({"answer", "question", "summary"}),
    Purpose.REQUEST_ANSWER: frozenset({"decision", "note", "shown"}),
}
"""The fields that hold texts. All must be there."""

OTHER_FIELDS: Final[Mapping[Purpose, frozenset[str]]] = {
    Purpose.CREDENTIALS: frozenset({"scopes"}),
    Purpose.REQUEST_ANSWER: frozenset({"selections"}),
}
"""The fields that hold something else, which their reader checks. All must be there."""

_PAD: Final = b" "
"""White space at the end is JSON's own: every parser skips it."""


def encode_content(purpose: Purpose, content: Mapping[str, Any]) -> bytes:
    """Return *content* with its version as padded JSON: the plaintext for *purpose*.

    Raises `InvalidInput` if it is over `PLAINTEXT_LIMIT_BYTES`, is not JSON (a lone
    surrogate, say), or lacks a field.
    """
    value = {"v": VERSION, **content}
    if not _has_fields(purpose, value):
        raise InvalidInput(f"This is not the content of a sealed {purpose.value}.")
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise InvalidInput("This text cannot be sent.") from None
    if len(text) > PLAINTEXT_LIMIT_BYTES:
        raise InvalidInput(f"This is over {PLAINTEXT_LIMIT_BYTES} bytes.")
    return text + _PAD * (-len(text) % PADDING_BLOCK_BYTES)


def decode_content(purpose: Purpose, plaintext: bytes) -> dict[str, Any]:
    """Return the object in *plaintext*, without its version.

    Fields that are not known stay in it, for their reader to ignore. Raises
    `EnvelopeInvalid` if it is too long, is not JSON in UTF-8, not an object, of another
    version, or lacks a field.
    """
    text = plaintext.rstrip(_PAD)
    if len(text) > PLAINTEXT_LIMIT_BYTES:
        raise EnvelopeInvalid(
            f"The sealed text is over {PLAINTEXT_LIMIT_BYTES} bytes.", fault=Fault.SIZE
        )
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict) or not _has_fields(purpose, value):
        raise EnvelopeInvalid(
            f"The sealed text is not that of a {purpose.value}.", fault=Fault.CONTENT
        )
    del value["v"]
    return value


def _has_fields(purpose: Purpose, value: Mapping[str, Any]) -> bool:
    version = value.get("v")
    texts = TEXT_FIELDS[purpose]
    return (
        # True == 1 in Python, not in JSON.
        type(version) is int
        and version == VERSION
        and all(isinstance(value.get(name), str) for name in texts)
        and OTHER_FIELDS.get(purpose, frozenset()) <= value.keys()
    )
