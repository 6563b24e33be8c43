"""Chooses the screen engine: libghostty where it loads, else pyte."""

from typing import Final, cast

from pyghostty import Terminal

from terminal_host.screen import SCROLLBACK_LINES, Engine

ENGINE_NAME: Final = "ghostty"


class _PlainGhostty:
    """libghostty with a repaint of text alone."""

    name = ENGINE_NAME

    def __init__(self, cols: int, rows: int, scrollback: int) -> None:
        self._terminal = Terminal(cols, rows, scrollback)

    def feed(self, data: bytes) -> None:
        self._terminal.feed(data)

    def resize(self, cols: int, rows: int) -> None:
        self._terminal.resize(cols, rows)

    def replay(self) -> bytes:
        text = cast("str", self._terminal.contents())
        return text.replace("\n", "\r\n").encode()

    def text(self, lines: int) -> str:
        text = cast("str", self._terminal.contents())
        return "\n".join(text.split("\n")[-lines:])

    def cursor(self) -> tuple[int, int]:
        return cast("tuple[int, int]", self._terminal.cursor)

    def size(self) -> tuple[int, int]:
        return cast("tuple[int, int]", self._terminal.size)

    def mode(self, number: int, *, private: bool) -> bool:
        return bool(self._terminal.mode(number, ansi=not private))

    def origin_row(self) -> int:
        return 0


def make_engine(cols: int, rows: int, scrollback: int = SCROLLBACK_LINES) -> Engine:
    """Return a fresh screen of that size."""
    return _PlainGhostty(cols, rows, scrollback)
