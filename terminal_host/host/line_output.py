"""Output in lines, of which a screen needs only the last: how a flood costs little.

`cat`, a build log or `ls -R` print text, colours and line ends. What the last lines
show depends on nothing before them but the pen, so those that have left the history
need no engine. It holds where a line end moves the screen: without a scroll region.
"""

import re
from collections.abc import Sequence
from typing import Final

_BYTES: Final = bytes({*range(0x20, 0x100)} - {0x7F}) + b"\b\t\r\n\x1b"
_OTHER_SEQUENCE: Final = re.compile(rb"\x1b(?:\[[0-9;:]*+[^mK]|[^\[])")
"""Neither a colour nor the erasing in a line, which act on their own line only."""
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[0-9;:]*)?\Z")
_UNFINISHED_LIMIT_BYTES: Final = 64
"""What is longer without an end is no colour."""
_C1: Final = re.compile(rb"\xc2[\x80-\x9f]")
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;:]*m")
_RESETS: Final = (b"\x1b[0m", b"\x1b[m")


def find_lines_end(data: bytes) -> int | None:
    """Return where what is unfinished of *data* begins, or None if it is not in lines.

    Unfinished is the beginning of a sequence or control at its end.
    """
    if data.translate(None, _BYTES):
        return None
    end = _find_end(data)
    if len(data) - end > _UNFINISHED_LIMIT_BYTES:
        return None
    if _OTHER_SEQUENCE.search(data, 0, end):
        return None
    if not data.isascii() and _C1.search(data):
        return None
    return end


def last_lines(pieces: Sequence[bytes], count: int) -> bytes:
    """Return what leaves a screen that keeps at most *count* lines as *pieces* do.

    They must be in lines (`find_lines_end`), and there must be no scroll region.
    """
    begin = _find_last_lines(pieces, count)
    data = b"".join(pieces[_find_pen(pieces[:begin]) :])
    before, *lines = data.rsplit(b"\r\n", count)
    if len(lines) < count:
        return data
    return _colours(before) + data[len(before) :]


def _find_last_lines(pieces: Sequence[bytes], count: int) -> int:
    """Return the piece from which on there are so many line ends, or the first."""
    for number in range(len(pieces) - 1, 0, -1):
        count -= pieces[number].count(b"\r\n")
        if count < 0:
            return number
    return 0


def _find_pen(pieces: Sequence[bytes]) -> int:
    """Return the piece from which on the pen can be told: that of the last reset."""
    for number in range(len(pieces) - 1, -1, -1):
        if any(reset in pieces[number] for reset in _RESETS):
            return number
    return 0 if any(b"\x1b" in piece for piece in pieces) else len(pieces)


def _find_end(data: bytes) -> int:
    if data.endswith(b"\xc2"):
        return len(data) - 1
    last = data.rfind(b"\x1b")
    return last if last >= 0 and _UNFINISHED.match(data, last) else len(data)


def _colours(data: bytes) -> bytes:
    """Return the sequences that leave the pen as *data* does."""
    begin = max(0, *(data.rfind(reset) for reset in _RESETS))
    return b"".join(_COLOUR.findall(data, begin))
