"""What no cell shows: cursor, pen, scroll region, tabs, charsets, open link."""

import re
from dataclasses import dataclass, field
from typing import Final

from terminal_host.host.ghostty.library import Data, Vt
from terminal_host.host.ghostty.pens import PLAIN, Pen, parse_pen

Link = tuple[str, str]
"""Parameters and URI of an OSC 8."""
Region = tuple[int, int]
"""First and last row of the scroll region, from 0."""

SLOTS: Final = "()*+"
"""How each of G0 to G3 is designated."""
SHIFTS: Final = {"": "(", "\x0e": ")", "\x1bn": "*", "\x1bo": "+"}
"""Which of them each locking shift brings in."""

_TAB = re.compile(r"\x1b\[(\d+)G\x1bH")
_REGION = re.compile(r"\x1b\[(\d+);(\d+)r")
_POSITION = re.compile(r"\x1b\[\d+;\d+H")
_LINK = re.compile(r"\x1b\]8;([^;\x1b\x07]*);([^\x1b\x07]*)(?:\x1b\\|\x07)")
_CHARSET = re.compile(r"\x1b([()*+])([0AB])")
_SHIFT = re.compile(r"\x0e|\x0f|\x1b[no]")


@dataclass(slots=True)
class ScreenState:
    """What the active screen of a terminal hides."""

    x: int
    y: int
    pending_wrap: bool
    """Whether the next character wraps first."""
    tabs: frozenset[int]
    region: Region | None
    pen: Pen = PLAIN
    link: Link | None = None
    charsets: dict[str, str] = field(default_factory=dict)
    shift: str = ""

    def charset_sequences(self) -> str:
        """Return what designates the charsets and shifts one in, if not the usual."""
        designated = (f"\x1b{s}{c}" for s, c in self.charsets.items() if c != "B")
        return "".join(designated) + self.shift


def default_tabs(cols: int) -> frozenset[int]:
    """Return the tab stops of a fresh terminal."""
    return frozenset(range(8, cols, 8))


def read_state(vt: Vt) -> ScreenState:
    """Return the state of *vt*'s active screen."""
    text = vt.format_state()
    x, y = vt.cursor
    region = _REGION.search(text)
    state = ScreenState(
        x,
        y,
        pending_wrap=bool(vt.get(Data.PENDING_WRAP)),
        tabs=frozenset(int(column) - 1 for column in _TAB.findall(text)),
        region=None if region is None else (int(region[1]) - 1, int(region[2]) - 1),
    )
    # Pen, link and charsets come behind the cursor's position.
    positions = [match.end() for match in _POSITION.finditer(text)]
    if positions:
        _read_pen(state, text[positions[-1] :])
    return state


def _read_pen(state: ScreenState, text: str) -> None:
    state.pen = parse_pen(text)
    links = _LINK.findall(text)
    if links and links[-1][1]:
        state.link = ("", links[-1][1])  # the id is ours (`quirks`)
    state.charsets = {match[0]: match[1] for match in _CHARSET.findall(text)}
    shifts = _SHIFT.findall(text)
    if shifts and shifts[-1] != "\x0f":
        state.shift = shifts[-1]
