"""The repaint of a screen: both buffers, then what no cell shows, in proven order."""

from dataclasses import dataclass
from typing import Final

from pyghostty import lib

from terminal_host.host.ghostty.cells import Grid, Row
from terminal_host.host.ghostty.library import Data, Vt
from terminal_host.host.ghostty.mouse import mouse_modes
from terminal_host.host.ghostty.painter import Painter
from terminal_host.host.ghostty.pens import PLAIN, Pen
from terminal_host.host.ghostty.state import Link, ScreenState
from terminal_host.host.ghostty.widths import from_library

_MODES: Final = (1, 45, 1004, 2004, 2026, 2031)
_KEYPAD, _NEWLINE, _INSERT, _WRAP, _ORIGIN = 66, 20, 4, 7, 6
_SHAPES: Final = {
    lib.GHOSTTY_RENDER_STATE_CURSOR_VISUAL_STYLE_BLOCK: 1,
    lib.GHOSTTY_RENDER_STATE_CURSOR_VISUAL_STYLE_UNDERLINE: 3,
    lib.GHOSTTY_RENDER_STATE_CURSOR_VISUAL_STYLE_BAR: 5,
}
"""DECSCUSR's number of the blinking shape; the steady one is the next."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer of a screen: its cells, its state, its saved cursor."""

    grid: Grid
    state: ScreenState
    saved: ScreenState

    def screen(self, rows: int) -> tuple[Row, ...]:
        """Return the rows that are seen."""
        return self.grid.rows[-rows:]


@dataclass(frozen=True, slots=True)
class Picture:
    """All that a repaint needs beside the terminal's own modes."""

    main: Buffer
    alternate: Buffer | None
    """None unless it is shown."""
    hidden_link: str | None
    """The open link, if SGR 0 hides it."""
    printed: bool
    """Whether the last thing was a printed character, which REP may repeat."""

    @property
    def shown(self) -> Buffer:
        """Return the buffer that is seen."""
        return self.main if self.alternate is None else self.alternate


def repaint(vt: Vt, picture: Picture) -> str:
    """Return VT text that paints *picture* and sets *vt*'s modes."""
    rows = vt.get(Data.ROWS)
    painter = Painter(vt.get(Data.COLS))
    title = vt.title()
    if title:
        painter.put(f"\x1b]2;{from_library(title)}\x1b\\")
    main = picture.main
    painter.paint(main.grid.rows)
    painter.paint_state(main.state, main.saved, main.screen(rows))
    if picture.alternate is not None:
        _paint_alternate(painter, picture.alternate, rows)
    painter.put(_modes(vt, picture.shown.grid))
    _place_cursor(painter, vt, picture)
    return "".join(painter.pieces)


def _paint_alternate(painter: Painter, buffer: Buffer, rows: int) -> None:
    painter.draw_with(PLAIN)
    painter.put("\x1b[?47h\x1b[2J\x1b[H")
    painter.paint(buffer.screen(rows))
    painter.paint_state(buffer.state, buffer.saved, buffer.screen(rows))


def _modes(vt: Vt, grid: Grid) -> str:
    """Return what sets modes, mouse, keypad, and the cursor's look."""
    numbers = [n for n in _MODES if vt.mode(n)] + list(mouse_modes(vt))
    pieces = [f"\x1b[?{number}h" for number in numbers]
    if vt.mode(_KEYPAD):
        pieces.append("\x1b=")
    if vt.mode(_NEWLINE, private=False):
        pieces.append("\x1b[20h")
    shape = _SHAPES.get(grid.cursor_shape)
    if shape is not None:
        pieces.append(f"\x1b[{shape + (not grid.cursor_blinks)} q")
    if not vt.get(Data.CURSOR_VISIBLE):
        pieces.append("\x1b[?25l")
    if vt.mode(_ORIGIN):
        pieces.append("\x1b[?6h")
    return "".join(pieces)


def _place_cursor(painter: Painter, vt: Vt, picture: Picture) -> None:
    """Put the cursor, and last what would disturb the painting: charset, pen, link."""
    state = picture.shown.state
    y = state.y
    if vt.mode(_ORIGIN) and state.region:
        y -= state.region[0]
    painter.draw_with(PLAIN)
    painter.put(f"\x1b[{y + 1};{state.x + 1}H")
    inserting = vt.mode(_INSERT, private=False)
    row = picture.shown.screen(vt.get(Data.ROWS))[state.y]
    if state.pending_wrap:
        if not painter.repeat_cell(row, vt.get(Data.COLS)):
            painter.put(f"\x1b[{vt.get(Data.COLS)}G ")
    elif not inserting and picture.printed and _repeats(row, state):
        painter.repeat_cell(row, state.x)
    painter.put(state.charset_sequences())
    painter.put("\x1b[4h" if inserting else "")
    painter.put("" if vt.mode(_WRAP) else "\x1b[?7l")
    if picture.hidden_link:
        painter.put(picture.hidden_link)
        painter.pen = None
    painter.draw_with(state.pen, state.link)


def _repeats(row: Row, state: ScreenState) -> bool:
    """Tell whether the cell before the cursor was printed with the pen of now."""
    alike: tuple[Pen, Link | None] = (state.pen, None)
    return state.link is None and any(
        run.x < state.x <= run.x + run.width
        and run.text
        and (run.pen, run.link) == alike
        for run in row.runs
    )
