"""Writes rows of cells as VT text that puts exactly these cells on a fresh screen."""

from collections.abc import Sequence

from terminal_host.host.ghostty.cells import Row, Run
from terminal_host.host.ghostty.pens import PLAIN, Pen, blank, encode_pen
from terminal_host.host.ghostty.state import Link, ScreenState, default_tabs
from terminal_host.host.ghostty.widths import xterm_width


class Painter:
    """Collects the text; it knows which pen and link are set at its end."""

    def __init__(self, cols: int) -> None:
        self.pieces: list[str] = []
        self.pen: Pen | None = PLAIN
        """None when it is not known."""
        self._cols = cols
        self._link: Link | None = None
        self._link_hidden = False

    def put(self, text: str) -> None:
        """Add *text* as it is."""
        self.pieces.append(text)

    def draw_with(self, pen: Pen, link: Link | None = None) -> None:
        """Set pen and link, if they are not set already."""
        if pen != self.pen:
            self.put(encode_pen(pen))
            self.pen = pen
            # SGR 0 hides an open link in xterm.js: it must be opened anew.
            self._link_hidden = self._link is not None
        if link != self._link or self._link_hidden:
            parameters, uri = link or ("", "")
            self.put(f"\x1b]8;{parameters};{uri}\x1b\\")
            self._link, self._link_hidden = link, False

    def paint(self, rows: Sequence[Row]) -> None:
        """Write rows, oldest first, from the first column of the first row on."""
        end = 0
        for number, row in enumerate(rows):
            clears = False
            if number and row.wrapped:
                clears = self._wrap(row, end)
            elif number:
                self.draw_with(PLAIN)
                self.put("\r\n")
            end = self._paint_row(row, clears=clears)
        self.draw_with(PLAIN)

    def paint_state(
        self, now: ScreenState, saved: ScreenState, screen: Sequence[Row]
    ) -> None:
        """Set tab stops, scroll region and saved cursor of the buffer shown."""
        if now.tabs != default_tabs(self._cols):
            stops = sorted(tab for tab in now.tabs if tab < self._cols)
            self.put("\x1b[3g" + "".join(f"\x1b[{tab + 1}G\x1bH" for tab in stops))
        if now.region and now.region != (0, len(screen) - 1):
            self.put(f"\x1b[{now.region[0] + 1};{now.region[1] + 1}r")
        self._save_cursor(saved, screen)

    def repeat_cell(self, row: Row, end: int) -> tuple[Pen, Link | None] | None:
        """Print again the cell that ends before column *end*, if there is one.

        That brings back a pending wrap, and what REP repeats. Return its pen and link.
        """
        for run in row.runs:
            if run.x < end <= run.x + run.width and run.text:
                at = run.x if run.single else end - 1
                self.put(f"\x1b[{at + 1}G")
                self.draw_with(run.pen, run.link)
                self.put(run.text if run.single else run.text[at - run.x])
                return run.pen, run.link
        return None

    def _wrap(self, row: Row, end: int) -> bool:
        """Make the next character wrap; tell whether the new row is to be cleared."""
        if end < self._cols:
            # Wrapped from a row that has become shorter than the margin since.
            self.draw_with(PLAIN)
            self.put(f"\x1b[{self._cols}G ")
        first = row.runs[0] if row.runs else None
        if first is None or first.x or not first.text:
            self.draw_with(PLAIN)
            self.put(" \b\x1b[X")
            return False
        # A scroll fills the new row with the pen's background.
        return first.pen.background is not None

    def _paint_row(self, row: Row, *, clears: bool) -> int:
        """Write a row; return the column behind the last cell that was printed.

        It is the number of columns when a wrap is pending.
        """
        end = at = 0
        for run in row.runs:
            at = self._move(at, run.x)
            if run.text is None:
                if run.pen.background is not None:
                    self.draw_with(blank(run.pen.background))
                    self.put(f"\x1b[{run.width}X")
                    end = -1
            elif not run.text:
                end = self._cols if run.x == self._cols - 1 else end
            else:
                end = run.x + run.width
                at = self._print(run, clears=clears)
                clears = False
        return end

    def _move(self, at: int, x: int) -> int:
        if at != x:
            forward = x > at and at < self._cols
            self.put(f"\x1b[{x - at}C" if forward else f"\x1b[{x + 1}G")
        return x

    def _print(self, run: Run, *, clears: bool) -> int:
        """Print a run of text; return where xterm.js's cursor is then."""
        self.draw_with(run.pen, run.link)
        assert run.text
        text, x = run.text, run.x
        if clears:
            self.put(text if run.single else text[0])
            self.draw_with(PLAIN)
            self.put("\x1b[K")
            self.draw_with(run.pen, run.link)
            if run.single or len(text) == 1:
                return x + (run.width if run.single else 1)
            text, x = text[1:], x + 1
        if text.isascii():
            self.put(text)
            return run.x + run.width
        return self._print_wide([text] if run.single else list(text), run, x)

    def _print_wide(self, characters: list[str], run: Run, x: int) -> int:
        step = run.width if run.single else 1
        at = x
        for character in characters:
            self.put(character)
            at += xterm_width(ord(character[0]))
            x += step
            if at != x and x < self._cols:  # the two width tables differ here
                self.put(f"\x1b[{x + 1}G")
            at = x
        return at

    def _save_cursor(self, saved: ScreenState, screen: Sequence[Row]) -> None:
        charsets = saved.charset_sequences()
        moved = saved.x or saved.y or saved.pending_wrap
        if not moved and saved.pen == PLAIN and not charsets:
            return  # a fresh terminal restores the same
        self.put(f"\x1b[{saved.y + 1};{saved.x + 1}H")
        if saved.pending_wrap and not self.repeat_cell(screen[saved.y], self._cols):
            self.draw_with(PLAIN)
            self.put(" ")
        self.draw_with(saved.pen)
        self.put(charsets + "\x1b7" + ("\x0f" if saved.shift else ""))
        self.put("".join(f"\x1b{slot}B" for slot in saved.charsets))
        self.draw_with(PLAIN)
