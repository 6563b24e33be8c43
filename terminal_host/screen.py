"""The port to a terminal's screen: what a screen engine does, and how to make one.

An engine is fed what the program prints. `replay` gives VT bytes that repaint its
screen in a fresh emulator of the same size, so that a client which comes late, or a
record that outlives the host, shows what was there.
"""

from typing import Final, Protocol

from sidestage.terminals.screens import StyledLine

SCROLLBACK_LINES: Final = 1000
"""As many lines of history as xterm.js keeps by default."""


class Screen(Protocol):
    """A screen that follows one terminal's output. Not safe for two threads at once."""

    def feed(self, data: bytes) -> None:
        """Act on the next bytes of output, cut anywhere; never raises on any bytes."""

    def resize(self, cols: int, rows: int) -> None:
        """Take another size, reflowing as the engine can."""

    def replay(self) -> bytes:
        """Return bytes that repaint this screen in a fresh terminal of the same size.

        They end with whatever sequence is unfinished, so that the bytes fed next
        continue it. They ask nothing, ring no bell and touch no clipboard.
        """

    def text(self, lines: int) -> str:
        """Return the last *lines* lines of the screen as plain text."""


class Engine(Screen, Protocol):
    """A screen that can also tell the state which programs may ask for."""

    def replay(self, *, history_lines: int | None = None) -> bytes:
        """As `Screen.replay`, with at most so many lines of history."""

    def styled(self, lines: int) -> tuple[StyledLine, ...]:
        """Return the last *lines* rows of history and screen, blank ones included."""

    @property
    def name(self) -> str:
        """Return what this engine is called in `doctor` and `server.health`."""

    def cursor(self) -> tuple[int, int]:
        """Return the cursor's column and row, from 0."""

    def size(self) -> tuple[int, int]:
        """Return columns and rows."""

    def mode(self, number: int, *, private: bool) -> bool:
        """Tell whether an ANSI or DEC private mode is set."""

    def scrolls_whole(self) -> bool:
        """Tell whether each line end at the bottom moves the whole screen up.

        It does so while no scroll region is set and nothing has begun: no sequence, no
        character, no link.
        """

    def origin_row(self) -> int:
        """Return the row that a cursor report counts from: 0 but in origin mode."""


def make_engine(cols: int, rows: int, scrollback: int = SCROLLBACK_LINES) -> Engine:
    """Return a fresh engine of that size: libghostty where it loads, else pyte."""
    # Here, because the engines need this module's protocols. The host has loaded them
    # at its start, so nothing is read from the package's folder later.
    from terminal_host.host.engines import new_engine

    return new_engine(cols, rows, scrollback)


def make_screen(cols: int, rows: int, scrollback: int = SCROLLBACK_LINES) -> Screen:
    """Return a fresh screen of that size: an engine, and the latest bytes as they are.

    This is what terminals use: exact for all that is recent, whatever the engine lacks.
    """
    from terminal_host.host.tail_screen import TailScreen

    engine = make_engine(cols, rows, scrollback)
    return TailScreen(engine, history_lines=scrollback)
