"""Ready text frames: one encoded payload, written to many sockets at once.

A frame from the server is not masked (RFC 6455, 5.1), so all that differs between two
members of a group is the few bytes that name their operation. The network's WebSocket
protocol offers its writer to the application as an ASGI extension; other servers do
not, and the application then sends as ASGI has it.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

EXTENSION: Final = "sidestage.frames"
"""The key under `scope["extensions"]`; its value is a `FrameWriter`."""

FrameWriter: TypeAlias = Callable[[bytes, bytes, bytes], bool]
"""Writes one text frame made of three pieces of UTF-8.

False, and nothing is written, if the peer's buffer is full or the socket is closing:
then `send` waits, or says that the peer is gone.
"""

_FINAL_TEXT: Final = b"\x81"
_SHORT_LIMIT: Final = 126
_MEDIUM_LIMIT: Final = 65_536


def frame_head(length_bytes: int) -> bytes:
    """Return the head of an unfragmented, unmasked text frame (RFC 6455, 5.2)."""
    if length_bytes < _SHORT_LIMIT:
        return _FINAL_TEXT + bytes((length_bytes,))
    if length_bytes < _MEDIUM_LIMIT:
        return _FINAL_TEXT + b"\x7e" + length_bytes.to_bytes(2, "big")
    return _FINAL_TEXT + b"\x7f" + length_bytes.to_bytes(8, "big")


def find_writer(scope: Any) -> FrameWriter | None:  # noqa: ANN401 -- ASGI's scope
    """Return the writer the server offers for this socket, if it does."""
    writer: FrameWriter | None = scope.get("extensions", {}).get(EXTENSION)
    return writer
