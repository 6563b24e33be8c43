"""The host protocol's frames: a 4-byte big-endian length, then one JSON object.

Parsers only, no I/O. `docs/host-protocol.md` describes the messages they carry.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

PROTOCOL_VERSION: Final = 2
SPOKEN_VERSIONS: Final = (2, 1)
"""This version and the one before it, newest first: a host outlives its `serve`."""

FRAME_LIMIT_BYTES: Final = 1 << 20
"""The largest frame is a screen's text or a child's environment: both far smaller."""

SOCKET_NAME: Final = "host.sock"
BESIDE_SOCKET_NAME: Final = f"host-v{PROTOCOL_VERSION}.sock"
"""Where a host listens that came while one of an older version kept its terminals."""
SOCKET_PATH_LIMIT_BYTES: Final = 107
"""`sun_path` holds 108 bytes with its closing zero (unix(7))."""

_LENGTH_BYTES: Final = 4

Frame = dict[str, Any]


class FrameInvalid(Exception):
    """The peer sent bytes that are no frame of this protocol; the connection ends."""


def encode_frame(message: Mapping[str, Any]) -> bytes:
    """Return *message* as one frame; raises `FrameInvalid` above the limit."""
    # ASCII: names and values of an environment may hold bytes that are no UTF-8, which
    # Python keeps as lone surrogates; escaped, they survive.
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(data) > FRAME_LIMIT_BYTES:
        raise FrameInvalid(f"a frame of {len(data)} bytes is above the limit")
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data


class FrameDecoder:
    """Cuts a byte stream into frames; the bytes behind the last one stay readable."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> None:
        """Add *data* to the stream."""
        self._held += data

    def take(self) -> Frame | None:
        """Return the next whole frame, or None; raises `FrameInvalid`."""
        if len(self._held) < _LENGTH_BYTES:
            return None
        length = int.from_bytes(self._held[:_LENGTH_BYTES], "big")
        if length > FRAME_LIMIT_BYTES:
            raise FrameInvalid(f"a frame of {length} bytes is above the limit")
        end = _LENGTH_BYTES + length
        if len(self._held) < end:
            return None
        body = bytes(self._held[_LENGTH_BYTES:end])
        del self._held[:end]
        return _parse_object(body)

    def take_rest(self) -> bytes:
        """Return and forget what was fed behind the last frame taken."""
        rest = bytes(self._held)
        self._held.clear()
        return rest


def choose_version(offered: Sequence[object]) -> int | None:
    """Return the newest version that both sides speak, or None."""
    return next((v for v in SPOKEN_VERSIONS if v in offered), None)


def _parse_object(body: bytes) -> Frame:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FrameInvalid("a frame that is not JSON") from error
    if not isinstance(value, dict):
        raise FrameInvalid("a frame that is not a JSON object")
    return value
