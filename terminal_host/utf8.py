"""Where a byte stream may be cut without cutting a character."""

from typing import Final

_CONTINUATION_LIMIT: Final = 3
"""A character has at most four bytes."""


def incomplete_suffix(data: bytes | memoryview) -> int:
    """Return how many bytes at the end of *data* begin a character it does not end.

    Bytes that are no UTF-8 count as whole: they are data, and will not be mended.
    """
    for count in range(1, min(len(data), _CONTINUATION_LIMIT) + 1):
        byte = data[-count]
        if byte & 0xC0 == 0x80:
            continue
        return count if _sequence_length(byte) > count else 0
    return 0


def _sequence_length(lead: int) -> int:
    if 0xC2 <= lead <= 0xDF:
        return 2
    if 0xE0 <= lead <= 0xEF:
        return 3
    return 4 if 0xF0 <= lead <= 0xF4 else 1
