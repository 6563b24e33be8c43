"""Text while a graphic charset may be shifted in.

The library prints blanks for non-ASCII text then; xterm.js prints the text.
"""

import re
from typing import Final

from terminal_host.host.ghostty.library import Data, Vt
from terminal_host.host.ghostty.state import SHIFTS, read_state

_ASCII = ord("B")
_G0, _G1, _G2, _G3 = b"()*+"
_ANY_SHIFT: Final = (
    b"\x0e",
    b"\x1b(0",
    b"\x1b)0",
    b"\x1b*0",
    b"\x1b+0",
    b"\x1b(A",
    b"\x1bn",
    b"\x1bo",
)
_CHARSETS = re.compile(rb"[\x0e\x0f]|\x1b[()*+][0-~]|\x1b[no]|[\x80-\xff]+")


class ShiftedText:
    """Follows the charsets of one terminal, from the first that is not ASCII on."""

    def __init__(self, vt: Vt) -> None:
        self._vt = vt
        self.seen = False
        """Whether a charset was ever asked for: mostly never, and then this is free."""
        self._designated: dict[int, int] = {}
        self._current = _G0

    def look(self, data: bytes) -> None:
        """Take note of charsets in *data*."""
        self.seen = self.seen or any(shift in data for shift in _ANY_SHIFT)

    def resume(self) -> None:
        """Ask the library which charsets are in use: a restore has changed them."""
        state = read_state(self._vt)
        self._designated = {ord(k): ord(v) for k, v in state.charsets.items()}
        self._current = ord(SHIFTS[state.shift])

    def write(self, data: bytes) -> None:
        """Let the library act on *data*, with text as xterm.js prints it."""
        position = 0
        for match in _CHARSETS.finditer(data):
            found = match[0]
            if found[0] < 0x80:
                self._shift(found)
            elif self._is_graphic():
                self._vt.write(data[position : match.start()])
                self._vt.write(self._in_ascii(found))
                position = match.end()
        if position < len(data):
            self._vt.write(data[position:])

    def _is_graphic(self) -> bool:
        current = self._designated.get(self._current, _ASCII)
        return current != _ASCII and bool(self._vt.get(Data.AT_GROUND))

    def _in_ascii(self, text: bytes) -> bytes:
        designate = b"\x1b" + bytes([self._current])
        charset = bytes([self._designated[self._current]])
        return designate + b"B" + text + designate + charset

    def _shift(self, found: bytes) -> None:
        if found == b"\x0e":
            self._current = _G1
        elif found == b"\x0f":
            self._current = _G0
        elif found[1] in b"no":
            self._current = _G3 if found[1] == ord("o") else _G2
        else:
            self._designated[found[1]] = found[2] if found[2] in b"0A" else _ASCII
