"""The frames of the hook protocol (docs/hook-protocol.md): bytes in, values out."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

VERSION: Final = 1
HEADER_LIMIT_BYTES: Final = 256
"""A header has fewer than 100 bytes."""
PAYLOAD_LIMIT_BYTES: Final = 1024 * 1024
"""What the hook program hands over at most: a whole file that is about to be written
is the largest honest one."""
CLAIM_BYTES: Final = 16

TAKEN: Final = b'{"v":1,"kind":"taken"}\n'
"""The server has the event. The hook program compares it byte by byte."""
NO_OPINION: Final = b'{"v":1,"kind":"none"}\n'


class FrameInvalid(Exception):
    """The peer does not speak the protocol."""


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """What comes before an event's bytes."""

    length: int
    claim: bytes | None = field(default=None, repr=False)
    """With what a hook that waits may come back; None for one that does not wait."""


def parse_header(line: bytes) -> FrameHeader:
    """Return the header in *line*; raises `FrameInvalid`."""
    try:
        values = orjson.loads(line)
        if values["v"] != VERSION:
            raise FrameInvalid("another version")
        length, kind = values["length"], values["kind"]
        claim = bytes.fromhex(values["claim"]) if kind == "hold" else None
    except (ValueError, KeyError, TypeError) as error:
        raise FrameInvalid("no header") from error
    if kind not in ("event", "hold") or type(length) is not int:
        raise FrameInvalid("no header")
    if not 0 < length <= PAYLOAD_LIMIT_BYTES:
        raise FrameInvalid("too long")
    if claim is not None and len(claim) != CLAIM_BYTES:
        raise FrameInvalid("no claim")
    return FrameHeader(length, claim)


def render_decision(decision: Mapping[str, Any], *, digest: bytes) -> bytes:
    """Return the frame that lets the hook print *decision*.

    *digest* is the SHA-256 of the bytes the decision is about.
    """
    output = {
        "hookSpecificOutput": {
            "hookEventName": "PermissionRequest",
            "decision": decision,
        }
    }
    body = orjson.dumps(output)
    header = {
        "v": VERSION,
        "kind": "decision",
        "digest": digest.hex(),
        "length": len(body),
    }
    return orjson.dumps(header) + b"\n" + body


def digest_of(data: bytes) -> bytes:
    """Return the SHA-256 that binds a decision, or a claim, to *data*."""
    return hashlib.sha256(data).digest()
