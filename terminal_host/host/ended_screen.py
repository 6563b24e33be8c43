"""What a client sees of a terminal whose program is gone: its screen, and a notice.

Pure: a record in, VT bytes out. The notice is written behind the whole screen, never
behind the sequence that was unfinished, so nothing can swallow it.
"""

from textwrap import wrap
from typing import Final

from sidestage.terminals.screens import StyledLine
from terminal_host.host.record_format import ScreenRecord
from terminal_host.host.tail_screen import TailScreen
from terminal_host.screen import Engine, make_engine
from terminal_host.vt_filter import silence

LOST_NOTICE: Final = (
    "This terminal ended when its host restarted. Close it to start again."
)
_ALTERNATE: Final = 1049

# What would hold back, restyle, link or translate the notice, or keep it from being
# scrolled to; what sends the keyboard's or mouse's doings; what looks alive (cursor).
_SETTLE: Final = (
    b"\x1b[?2026l\x1b[0m\x1b]8;;\x1b\\\x1b(B\x0f\x1b[r"
    b"\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l"
    b"\x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?2031l\x1b[?1l\x1b>\x1b[?25l"
)


def exited_notice(status: int | None) -> str:
    """Return the notice of a terminal whose program had ended before."""
    how = "" if status is None else f" with status {status}"
    return f"The program of this terminal ended{how}. Close it to start again."


def show_ended(
    record: ScreenRecord, notice: str, *, size: tuple[int, int] | None = None
) -> bytes:
    """Return bytes that show *record* and *notice* in a fresh terminal.

    The terminal has *size* (columns and rows), or the record's own. The main buffer is
    scrolled where the notice would cover text; an alternate one never is.
    """
    own = (record.meta.cols, record.meta.rows)
    cols, rows = size or own
    screen = ended_screen(record, cols, rows)
    # The record's own bytes are the more exact ones; a reflow only the engine can do.
    shown = silence(record.screen) if (cols, rows) == own else screen.replay()
    screen.fold()
    lines = wrap(notice, cols)[:rows]
    scrolled = 0
    if not screen.engine.mode(_ALTERNATE, private=True):
        used = _used_rows(screen.engine.styled(rows))
        scrolled = max(0, used - (rows - len(lines)))
    return shown + _SETTLE + _scroll(rows, scrolled) + _write(lines, cols, rows)


def ended_screen(record: ScreenRecord, cols: int, rows: int) -> TailScreen:
    """Return the record's screen, reflowed to a size."""
    engine: Engine = make_engine(record.meta.cols, record.meta.rows)
    screen = TailScreen(engine)
    screen.feed(record.screen)
    if engine.size() != (cols, rows):
        screen.resize(cols, rows)
    return screen


def _used_rows(lines: tuple[StyledLine, ...]) -> int:
    return max((number for number, line in enumerate(lines, 1) if line), default=0)


def _scroll(rows: int, count: int) -> bytes:
    return b"\x1b[%d;1H" % rows + b"\n" * count if count else b""


def _write(lines: list[str], cols: int, rows: int) -> bytes:
    first = rows - len(lines) + 1
    return b"".join(
        b"\x1b[%d;1H\x1b[2K\x1b[7m%s\x1b[0m" % (row, line.ljust(cols).encode())
        for row, line in enumerate(lines, first)
    )
