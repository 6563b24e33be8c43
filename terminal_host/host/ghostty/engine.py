"""The engine: libghostty, fed as xterm.js acts, repainted in full."""

from typing import Final

from sidestage.terminals.screens import StyledLine
from terminal_host.host.ghostty.cells import Grid, Row, read_grid
from terminal_host.host.ghostty.decoding import Decoder
from terminal_host.host.ghostty.library import Data, OwnedVt, Vt
from terminal_host.host.ghostty.pens import encode_pen
from terminal_host.host.ghostty.plain import plain_lines
from terminal_host.host.ghostty.quirks import XtermFeed
from terminal_host.host.ghostty.repaint import Buffer, Picture, repaint
from terminal_host.host.ghostty.state import default_tabs, read_state
from terminal_host.host.ghostty.styled import styled_line
from terminal_host.vt_filter import silence

REPLAY_LIMIT_BYTES: Final = 4 << 20
"""A record is no larger; beyond it the oldest history is left out."""

_SPARE_LINES: Final = 200
_PAGE_CELLS: Final = 80_000
"""The library drops whole pages of history, of about so many cells."""
_ORIGIN_MODE: Final = 6
_ALTERNATE_MODES: Final = (47, 1047, 1049)


class GhosttyEngine:
    """An `Engine`. Not safe for two threads at once: the library crashes then."""

    name = "ghostty"

    def __init__(self, cols: int, rows: int, scrollback: int) -> None:
        self._scrollback = scrollback
        self._vt = OwnedVt(cols, rows, self._kept_lines(cols))
        self._feed = XtermFeed(self._vt, scrollback)
        self._feed.set_last_tab()
        self._decoder = Decoder()

    def feed(self, data: bytes) -> None:
        """Act on the next bytes of output."""
        self._feed.feed(self._decoder.decode(data))

    def resize(self, cols: int, rows: int) -> None:
        """Take another size, with xterm.js's reflow."""
        vt = self._vt
        self._drop_rows_below(rows)
        before = vt.get(Data.COLS)
        if cols != before:
            # In two steps: in one, the library pulls no history into new rows.
            self._resize_columns(cols)
        vt.resize(cols, rows)
        self._feed.tail = b""
        if self._feed.main_extras is not None:
            self._feed.main_extras = (
                None,
                _resized_tabs(self._feed.main_extras[1], cols),
            )

    def replay(self, *, history_lines: int | None = None) -> bytes:
        """Return bytes that repaint the screen in a fresh terminal of the same size."""
        lines = self._scrollback if history_lines is None else history_lines
        painted = self._paint(lines)
        while len(painted) > REPLAY_LIMIT_BYTES and lines:
            lines //= 2
            painted = self._paint(lines)
        rest = b"\x1b]9999;" if self._decoder.swallowing else self._vt.continuation()
        return painted + silence(rest + self._decoder.held)

    def text(self, lines: int) -> str:
        """Return the last *lines* lines as plain text."""
        rows = read_grid(self._vt, lines).rows
        return "\n".join(plain_lines(rows)[-lines:]) if lines else ""

    def styled(self, lines: int) -> tuple[StyledLine, ...]:
        """Return the last *lines* rows of history and screen."""
        history_lines = max(0, lines - self._vt.get(Data.ROWS))
        rows = read_grid(self._vt, history_lines).rows
        return tuple(styled_line(row) for row in rows[-lines:]) if lines else ()

    def cursor(self) -> tuple[int, int]:
        """Return the cursor's column and row."""
        return self._vt.cursor

    def size(self) -> tuple[int, int]:
        """Return columns and rows."""
        return self._vt.get(Data.COLS), self._vt.get(Data.ROWS)

    def mode(self, number: int, *, private: bool) -> bool:
        """Tell whether a mode is set."""
        if private and number in _ALTERNATE_MODES:
            return self._vt.alternate  # xterm.js does not tell them apart
        return self._vt.mode(number, private=private)

    def scrolls_whole(self) -> bool:
        """Tell whether each line end at the bottom moves the whole screen up."""
        if self._decoder.held or self._decoder.swallowing or self._feed.open_link:
            return False
        if not self._vt.get(Data.AT_GROUND):
            return False
        return read_state(self._vt).region is None

    def origin_row(self) -> int:
        """Return the row that a cursor report counts from."""
        if not self._vt.mode(_ORIGIN_MODE):
            return 0
        region = read_state(self._vt).region
        return region[0] if region else 0

    def _paint(self, history_lines: int) -> bytes:
        main, alternate = self._read_buffers(history_lines)
        if self._feed.saved_row is not None:
            above = len(main.grid.rows) - self._vt.get(Data.ROWS)
            row = max(0, self._feed.saved_row - above)
            main.saved.y = min(row, self._vt.get(Data.ROWS) - 1)
        hidden = self._feed.open_link if self._feed.link_hidden else None
        picture = Picture(
            main,
            alternate,
            hidden_link=hidden.decode("utf-8", "replace") if hidden else None,
            printed=self._feed.printed(),
        )
        return repaint(self._vt, picture).encode("utf-8", "replace")

    def _read_buffers(self, history_lines: int) -> tuple[Buffer, Buffer | None]:
        """Read both buffers from a copy: only there may the cursor be restored."""
        vt = self._vt
        with vt.cloned() as copy:
            if copy is not None:
                return self._read_copy(copy, history_lines)
        if not vt.get(Data.AT_GROUND):
            # An open string too long to be copied: it ends here, its rest is dropped.
            vt.write(b"\x18")
            self._decoder.swallowing = True
            with vt.cloned() as copy:
                if copy is not None:
                    return self._read_copy(copy, history_lines)
        return self._read_shown(history_lines)

    def _read_shown(self, history_lines: int) -> tuple[Buffer, Buffer | None]:
        """Read what is shown from the terminal itself, which some states leave only.

        The main buffer behind an alternate one is lost then, and the saved cursors.
        """
        state = read_state(self._vt)
        grid = read_grid(self._vt, history_lines)
        shown = Buffer(grid, state, read_state(self._vt))
        if not self._vt.alternate:
            return shown, None
        blank = Grid(
            (Row(wrapped=False, runs=()),) * self._vt.get(Data.ROWS),
            cursor_shape=grid.cursor_shape,
            cursor_blinks=False,
        )
        return Buffer(blank, read_state(self._vt), read_state(self._vt)), shown

    def _read_copy(self, copy: Vt, history_lines: int) -> tuple[Buffer, Buffer | None]:
        now = read_state(self._vt)
        grid = read_grid(copy, history_lines)
        copy.write(b"\x18\x1b8")
        shown = Buffer(grid, now, read_state(copy))
        if not self._vt.alternate:
            return shown, None
        copy.write(b"\x1b[?47l")
        main_grid = read_grid(copy, history_lines)
        copy.write(b"\x1b8")
        saved, state = read_state(copy), read_state(copy)
        state.region, state.tabs = self._feed.main_extras or (
            None,
            default_tabs(self._vt.get(Data.COLS)),
        )
        return Buffer(main_grid, state, saved), shown

    def _drop_rows_below(self, rows: int) -> None:
        """Erase rows below the cursor that do not fit: xterm.js drops them first."""
        vt = self._vt
        x, y = vt.cursor
        before = vt.get(Data.ROWS)
        dropped = min(before - rows, before - 1 - y)
        if dropped <= 0 or not vt.get(Data.AT_GROUND):
            return
        state = read_state(vt)
        go, region = self._feed.go, state.region
        erase = go(0, before - dropped, region) + b"\x1b[0m\x1b[J"
        vt.write(erase + encode_pen(state.pen).encode() + go(x, y, region))

    def _resize_columns(self, cols: int) -> None:
        vt = self._vt
        before = vt.get(Data.TOTAL_ROWS)
        vt.resize(cols, vt.get(Data.ROWS))
        after = vt.get(Data.TOTAL_ROWS)
        if vt.alternate:
            self._feed.saved_row = None
        elif self._feed.saved_row is not None:
            moved = min(self._feed.saved_row + after - before, after - 1)
            self._feed.saved_row = max(0, moved)
        vt.limit_history(self._kept_lines(cols))
        self._feed.set_last_tab()

    def _kept_lines(self, cols: int) -> int:
        return self._scrollback + _SPARE_LINES + _PAGE_CELLS // cols


def _resized_tabs(tabs: frozenset[int], cols: int) -> frozenset[int]:
    last = max(tabs, default=0)
    new = range((last // 8 + 1) * 8, cols, 8)
    return frozenset(tab for tab in tabs if tab < cols) | frozenset(new)
