"""pyte as an `Engine`, with an alternate buffer and kept from what it breaks on.

Held to a lower bar than libghostty (`docs/terminal-protocol.md`, "The screen"): good
for shells, fair for full-screen programs, and slow.
"""

import codecs
import logging
import re
from itertools import islice
from typing import Any, Final

import pyte

from sidestage.terminals.screens import StyledLine
from terminal_host.host.fallback.drawing import draw_rows, encode_style, style_row
from terminal_host.vt_filter import silence
from terminal_host.vt_stream import Splitter, Token, TokenKind

_SWITCH: Final = re.compile(rb"\?(?:[\d;]*;)?(1049|1047|47)(?:;[\d;]*)?([hl])")
_UNSAFE: Final = re.compile(rb"[<=>?].*[mnr]|.*[:<=>].*|[?].*u|.*[ -/].*", re.DOTALL)
"""What stock pyte takes for something else: private SGR, colons, intermediates."""
_REPLAYED_MODES: Final = (1, 1000, 1002, 1003, 1004, 1006, 2004, 2026)
_PRIVATE_SHIFT: Final = 5
"""pyte keeps private modes shifted by five bits."""
_ORIGIN, _WRAP, _CURSOR, _INSERT = 6, 7, 25, 4

_log = logging.getLogger(__name__)


class PyteEngine:
    """An `Engine`. Not safe for two threads at once."""

    name = "pyte"

    def __init__(self, cols: int, rows: int, scrollback: int) -> None:
        self._main = pyte.HistoryScreen(cols, rows, history=scrollback, ratio=0.5)
        self._alternate: Any = None
        self._stream = pyte.Stream(self._main)
        self._splitter = Splitter()
        self._utf8 = codecs.getincrementaldecoder("utf-8")("ignore")
        self._logged = False

    def feed(self, data: bytes) -> None:
        """Act on the next bytes of output."""
        for token in self._splitter.feed(data):
            if token.kind is TokenKind.CSI and self._acts(token):
                continue
            if token.kind is not TokenKind.STRING:
                self._write(self._utf8.decode(token.data))

    def resize(self, cols: int, rows: int) -> None:
        """Take another size; lines are cut, not reflowed."""
        for screen in (self._main, self._alternate):
            if screen is not None:
                screen.resize(rows, cols)

    def replay(self, *, history_lines: int | None = None) -> bytes:
        """Return bytes that repaint the screen in a fresh terminal of the same size."""
        main = self._main
        title = f"\x1b]2;{main.title}\x1b\\" if main.title else ""
        above = len(main.history.top)
        first = 0 if history_lines is None else max(0, above - history_lines)
        history = islice(main.history.top, first, above)
        rows = [*history, *(main.buffer[y] for y in range(main.lines))]
        pieces = [title, draw_rows(rows, main.columns)]
        if self._alternate is not None:
            pieces.append("\x1b[?1049h\x1b[H")
            pieces.append(_draw_screen(self._alternate))
        pieces.append(self._state())
        text = "".join(pieces).encode("utf-8", "replace")
        splitter = self._splitter
        rest = silence(splitter.skipping + splitter.held)
        return text + rest + self._utf8.getstate()[0]

    def text(self, lines: int) -> str:
        """Return the last *lines* lines as plain text."""
        screen = self._screen
        rows = [
            *self._main.history.top,
            *(screen.buffer[y] for y in range(screen.lines)),
        ]
        shown = "\n".join(_plain(row, screen.columns).rstrip() for row in rows)
        kept = shown.rstrip().split("\n")
        return "\n".join(kept[-lines:]) if lines else ""

    def styled(self, lines: int) -> tuple[StyledLine, ...]:
        """Return the last *lines* rows of history and screen."""
        screen = self._screen
        history = self._main.history.top if self._alternate is None else ()
        rows = [*history, *(screen.buffer[y] for y in range(screen.lines))]
        kept = rows[-lines:] if lines else []
        return tuple(style_row(row, screen.columns) for row in kept)

    def cursor(self) -> tuple[int, int]:
        """Return the cursor's column and row."""
        cursor = self._screen.cursor
        return min(cursor.x, self._screen.columns - 1), cursor.y

    def size(self) -> tuple[int, int]:
        """Return columns and rows."""
        return self._main.columns, self._main.lines

    def mode(self, number: int, *, private: bool) -> bool:
        """Tell whether a mode is set."""
        if private and number in (47, 1047, 1049):
            return self._alternate is not None
        shifted = number << _PRIVATE_SHIFT if private else number
        return shifted in self._screen.mode

    def scrolls_whole(self) -> bool:
        """Tell whether each line end at the bottom moves the whole screen up."""
        begun = self._splitter.held or self._splitter.skipping
        return not (begun or self._utf8.getstate()[0] or self._screen.margins)

    def origin_row(self) -> int:
        """Return the row that a cursor report counts from."""
        margins = self._screen.margins
        return margins.top if margins and self.mode(_ORIGIN, private=True) else 0

    @property
    def _screen(self) -> Any:  # noqa: ANN401  # pyte has no types
        return self._main if self._alternate is None else self._alternate

    def _acts(self, token: Token) -> bool:
        """Do what pyte cannot; tell whether *token* is dealt with."""
        switch = _SWITCH.fullmatch(token.body)
        if switch is not None:
            self._switch(on=switch[2] == b"h", saves=switch[1] == b"1049")
            return True
        return _UNSAFE.fullmatch(token.body) is not None

    def _switch(self, *, on: bool, saves: bool) -> None:
        if on and self._alternate is None:
            if saves:
                self._main.save_cursor()
            self._alternate = pyte.Screen(self._main.columns, self._main.lines)
            self._alternate.mode = set(self._main.mode)
            cursor = self._main.cursor
            self._alternate.cursor_position(cursor.y + 1, cursor.x + 1)
        elif not on and self._alternate is not None:
            self._main.mode = set(self._alternate.mode)
            self._alternate = None
            if saves:
                self._main.restore_cursor()
        self._stream = pyte.Stream(self._screen)

    def _write(self, text: str) -> None:
        try:
            self._stream.feed(text)
        except (TypeError, ValueError, LookupError, AssertionError, NameError):
            # What else stock pyte breaks on: the sequence is lost, the rest goes on.
            if not self._logged:
                _log.warning("pyte could not act on a sequence", exc_info=True)
            self._logged = True
            self._stream = pyte.Stream(self._screen)

    def _state(self) -> str:
        screen = self._screen
        pieces = [
            f"\x1b[?{number}h"
            for number in _REPLAYED_MODES
            if self.mode(number, private=True)
        ]
        if screen.margins:
            pieces.append(f"\x1b[{screen.margins.top + 1};{screen.margins.bottom + 1}r")
        column, row = self.cursor()
        pieces.append(f"\x1b[{row + 1};{column + 1}H")
        pieces.append("\x1b[4h" if self.mode(_INSERT, private=False) else "")
        pieces.append("" if self.mode(_WRAP, private=True) else "\x1b[?7l")
        pieces.append("" if self.mode(_CURSOR, private=True) else "\x1b[?25l")
        return "".join(pieces) + encode_style(screen.cursor.attrs)


def _draw_screen(screen: Any) -> str:  # noqa: ANN401  # as above
    rows = (screen.buffer[y] for y in range(screen.lines))
    return draw_rows(rows, screen.columns)


def _plain(row: Any, cols: int) -> str:  # noqa: ANN401  # as above
    return "".join(row[x].data for x in range(cols))
