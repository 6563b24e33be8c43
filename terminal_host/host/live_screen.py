"""The screen of a running terminal: it is fed, it answers, it notices."""

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sidestage.terminals.screens import StyledLine
from sidestage.text import clean_text, shorten
from terminal_host.host.answers import answer
from terminal_host.host.notables import Notable, NotableKind, NotableScanner
from terminal_host.host.tail_screen import Picture, TailScreen
from terminal_host.screen import Engine

TITLE_LIMIT_CHARACTERS = 256
"""A title is one line in a list."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notices:
    """What a piece of output asks the host to do."""

    answers: bytes
    """To be written to the program."""
    title: str | None
    """The new title, if one was set."""
    bell: bool


NOTHING: Final = Notices(b"", None, bell=False)


class LiveScreen:
    """Follows one program. Not safe for two threads at once; one at a time is fine."""

    def __init__(
        self, make: Callable[[int, int], Engine], *, cols: int, rows: int
    ) -> None:
        self._make = make
        self._size = (cols, rows)
        self._screen = TailScreen(make(cols, rows))
        self._scanner = NotableScanner()
        self._failed = False

    def absorb(self, data: bytes) -> Notices | None:
        """Act on *data* if that needs no engine, so that it costs next to nothing.

        None if it needs one: nothing was done, and `feed` is to be called in a thread.
        """
        if not self._screen.has_room(len(data), for_lines=True):
            return None
        if self._takes_lines(data):
            return NOTHING
        scanner = copy.copy(self._scanner)
        notables = scanner.scan(data)
        if not self._screen.has_room(len(data)) or any(map(_asks, notables)):
            return None
        self._scanner = scanner
        self._screen.feed(data)
        return _summarise(notables, b"")

    def feed(self, data: bytes) -> Notices:
        """Act on *data*; return what it asks for."""
        if self._takes_lines(data):
            return NOTHING
        notables = self._scanner.scan(data)
        try:
            answers = self._advance(data, notables)
        except Exception:  # noqa: BLE001  # foreign code: one screen must not end others
            self._start_anew()
            answers = b""
        return _summarise(notables, answers)

    def resize(self, cols: int, rows: int) -> None:
        """Take another size."""
        self._size = (cols, rows)
        try:
            self._screen.resize(cols, rows)
        except Exception:  # noqa: BLE001  # as above
            self._start_anew()

    def replay(self) -> bytes:
        """Return bytes that repaint the screen in a fresh terminal of the same size."""
        try:
            return self._screen.replay()
        except Exception:  # noqa: BLE001  # as above
            self._start_anew()
            return self._screen.replay()

    def picture(self, limit_bytes: int) -> Picture | None:
        """Return what a record holds of the screen (`TailScreen.picture`)."""
        try:
            return self._screen.picture(limit_bytes)
        except Exception:  # noqa: BLE001  # as above
            self._start_anew()
            return self._screen.picture(limit_bytes)

    def styled(self, lines: int) -> tuple[StyledLine, ...]:
        """Return the last *lines* rows of history and screen."""
        return self._screen.styled(lines)

    def text(self, lines: int) -> str:
        """Return the last *lines* lines of the screen as plain text."""
        return self._screen.text(lines)

    def _takes_lines(self, data: bytes) -> bool:
        """Take *data* if it is in lines, which neither ask nor tell anything."""
        if not self._scanner.awaits_only(self._screen.unfinished):
            return False
        try:
            taken = self._screen.add_lines(data)
        except Exception:  # noqa: BLE001  # as above
            self._start_anew()
            return False
        if taken:
            self._scanner.await_rest_of(self._screen.unfinished)
        return taken

    def _advance(self, data: bytes, notables: list[Notable]) -> bytes:
        """Feed *data*, stopping behind each question for the state it asks about."""
        position, answers = 0, []
        for notable in notables:
            if not _asks(notable):
                continue
            self._screen.feed(data[position : notable.end])
            self._screen.fold()
            answers.append(answer(notable, self._screen.engine))
            position = max(position, notable.end)
        self._screen.feed(data[position:] if position else data)
        return b"".join(answers)

    def _start_anew(self) -> None:
        if not self._failed:
            _log.exception("a screen engine failed; its screen starts empty")
        self._failed = True
        self._screen = TailScreen(self._make(*self._size))


def _asks(notable: Notable) -> bool:
    """Tell whether the program waits for an answer, which the engine knows."""
    return notable.kind not in (NotableKind.TITLE, NotableKind.BELL)


def _summarise(notables: list[Notable], answers: bytes) -> Notices:
    title, bell = None, False
    for notable in notables:
        bell = bell or notable.kind is NotableKind.BELL
        if notable.kind is NotableKind.TITLE:
            text = clean_text(notable.text.decode("utf-8", "replace"), multiline=False)
            title = shorten(text, TITLE_LIMIT_CHARACTERS)
    return Notices(answers, title, bell)
