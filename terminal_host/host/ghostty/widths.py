"""Stand-ins for characters that libghostty draws wider or narrower than xterm.js.

1,053 assigned code points differ. In the library, a character of another width is kept
as an unassigned one of the right width; on the way out it is turned back.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from terminal_host.host.ghostty.library import character_width

# [first, last, width] of xterm.js with Unicode 11; whatever is not in it has width 1.
_RANGES: Final[list[list[int]]] = json.loads(
    Path(__file__).with_name("xterm_widths.json").read_text("ascii")
)
_STARTS: Final = [entry[0] for entry in _RANGES]
_SEARCHED = ((0xA0, 0xD800), (0xE000, 0x34000), (0xE0000, 0xE0100))
_FIRST_SPARE = {1: 0xF0000, 2: 0x3F000, 0: 0xE0120}
"""The first stand-in of each width: private or unassigned code points."""

_VARIATION_SELECTORS: Final = (0xFE0E, 0xFE0F)
"""The library drops them behind characters that have no variants, as in keycaps."""

_NOT_ASCII = re.compile("[^\x00-\x7f]+")


def xterm_width(code_point: int) -> int:
    """Return how many cells xterm.js gives a code point."""
    index = bisect_right(_STARTS, code_point) - 1
    if index >= 0 and code_point <= _RANGES[index][1]:
        return _RANGES[index][2]
    return 1


def _find_stand_ins() -> dict[int, int]:
    spare, found = dict(_FIRST_SPARE), {}
    for first, last in _SEARCHED:
        for code_point in range(first, last):
            width = xterm_width(code_point)
            differs = (
                character_width(code_point) != width
                or code_point in _VARIATION_SELECTORS
            )
            if differs and character_width(spare[width]) == width:
                found[code_point] = spare[width]
                spare[width] += 1
    return found


def _character_class(code_points: Iterable[int]) -> re.Pattern[str]:
    return re.compile("[" + "".join(map(chr, sorted(code_points))) + "]")


_STAND_INS: Final = _find_stand_ins()
_ORIGINALS: Final = {stand_in: one for one, stand_in in _STAND_INS.items()}
_REPLACED: Final = frozenset(map(chr, _STAND_INS))
_ANY_STAND_IN: Final = _character_class(_ORIGINALS)


def to_library(text: str) -> str:
    """Return *text* with stand-ins."""
    for character in _REPLACED.intersection("".join(_NOT_ASCII.findall(text))):
        text = text.replace(character, chr(_STAND_INS[ord(character)]))
    return text


def from_library(text: str) -> str:
    """Return *text* with the characters that the stand-ins stand for."""
    if text.isascii() or not _ANY_STAND_IN.search(text):
        return text
    return text.translate(_ORIGINALS)
