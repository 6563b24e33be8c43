"""An engine at a checkpoint and the raw bytes since: exact for all that is recent.

What an engine cannot tell of itself (xterm.js has state that no other engine keeps) is
right anyway while the bytes that made it are in the tail.
"""

from dataclasses import dataclass
from typing import Final

from sidestage.terminals.screens import StyledLine
from terminal_host.host.line_output import find_lines_end, last_lines
from terminal_host.host.tail import Tail
from terminal_host.screen import SCROLLBACK_LINES, Engine
from terminal_host.utf8 import incomplete_suffix
from terminal_host.vt_filter import StreamFilter, silence

TAIL_LIMIT_BYTES: Final = 128 * 1024
"""Beyond it the older half is fed to the engine; also bounds what a replay adds."""
LINES_LIMIT_BYTES: Final = 1 << 20
"""So much may wait in a flood of lines: nine tenths of it then need no engine."""
REPLAY_LIMIT_BYTES: Final = 256 * 1024
"""A longer replay does without the tail: a phone waits for the last byte of it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A screen that can be shown without whatever its program does next."""

    cols: int
    rows: int
    screen: bytes
    """VT bytes that repaint it; they end with a whole sequence and character."""
    continuation: bytes
    """The beginning of a sequence or character, for bytes that would continue it."""


class TailScreen:
    """A `Screen` of both."""

    def __init__(
        self,
        engine: Engine,
        *,
        tail_limit_bytes: int = TAIL_LIMIT_BYTES,
        lines_limit_bytes: int = LINES_LIMIT_BYTES,
        history_lines: int = SCROLLBACK_LINES,
    ) -> None:
        self.engine = engine
        self.unfinished = b""
        """The beginning of a sequence at the end of output that is in lines."""
        self._limit = tail_limit_bytes
        self._lines_limit = lines_limit_bytes
        self._history_lines = history_lines
        self._tail = Tail()
        self._lines_from = 0
        """From there on the raw bytes are in lines."""

    def feed(self, data: bytes) -> None:
        """Keep *data* raw; feed the engine what is then too much."""
        if self.add_lines(data):
            return
        self._tail.append(data)
        self._lines_from, self.unfinished = len(self._tail), b""
        self._bound(self._limit)

    def add_lines(self, data: bytes) -> bool:
        """Keep *data* and return True if it is in lines; else do nothing."""
        pending = self.unfinished + data
        end = find_lines_end(pending)
        if end is None:
            return False
        self.unfinished = pending[end:]
        self._tail.append(data)
        self._bound(self._limit if self._lines_from else self._lines_limit)
        return True

    def has_room(self, count: int, *, for_lines: bool = False) -> bool:
        """Tell whether so many bytes can be kept without feeding the engine."""
        lines = for_lines and not self._lines_from
        limit = self._lines_limit if lines else self._limit
        return len(self._tail) + count <= limit

    def fold(self) -> None:
        """Feed the engine all there is, so that it stands where the program does."""
        self._fold(len(self._tail))

    def resize(self, cols: int, rows: int) -> None:
        """Take another size: the raw bytes before it are for the old one."""
        self.fold()
        self.engine.resize(cols, rows)

    def replay(self) -> bytes:
        """Return the engine's repaint and the tail, without what would act outside."""
        self._bound(self._limit)
        painted = self.engine.replay()
        if self._tail and len(painted) + len(self._tail) > REPLAY_LIMIT_BYTES:
            self.fold()
            painted = self.engine.replay()
        return silence(painted + bytes(self._tail))

    def picture(self, limit_bytes: int) -> Picture | None:
        """Return the screen; the oldest history is left out beyond *limit_bytes*.

        None if the screen is beyond them without any history.
        """
        self._bound(self._limit)
        picture = self._split(self.engine.replay() + bytes(self._tail))
        lines = SCROLLBACK_LINES
        while _size(picture) > limit_bytes:
            if not lines:
                return None
            self.fold()
            lines //= 2
            picture = self._split(self.engine.replay(history_lines=lines))
        return picture

    def styled(self, lines: int) -> tuple[StyledLine, ...]:
        """Return the last *lines* rows of history and screen."""
        self.fold()
        return self.engine.styled(lines)

    def text(self, lines: int) -> str:
        """Return the last *lines* lines of the screen as plain text."""
        self.fold()
        return self.engine.text(lines)

    def _split(self, replay: bytes) -> Picture:
        clean = StreamFilter(keep_bell=False)
        screen, continuation = clean.feed(replay), clean.unfinished()
        cut = len(screen) - incomplete_suffix(screen)
        return Picture(*self.engine.size(), screen[:cut], screen[cut:] + continuation)

    def _bound(self, limit: int) -> None:
        if len(self._tail) > limit:
            count = len(self._tail) - self._limit // 2
            # At a line's end nothing is unfinished, so the next lines can be skipped.
            self._fold(self._tail.find_line_end(self._lines_from, count))

    def _fold(self, count: int) -> None:
        lines_from = min(self._lines_from, count)
        other = self._tail.take(lines_from)
        lines = self._tail.take(count - lines_from)
        self._lines_from -= lines_from
        if other:
            self.engine.feed(b"".join(other))
        if lines:
            self.engine.feed(self._last_of(lines))

    def _last_of(self, lines: list[bytes]) -> bytes:
        """Return what of *lines* the engine must see."""
        if not self.engine.scrolls_whole():
            return b"".join(lines)
        # From wherever the cursor is, it takes a screen of lines until one leaves it;
        # and as many again until the last of the screen before has left it.
        _, rows = self.engine.size()
        return last_lines(lines, self._history_lines + 2 * rows)


def _size(picture: Picture) -> int:
    return len(picture.screen) + len(picture.continuation)
