"""A program in a PTY of a test's own, with its screen: what a person would see."""

import os
import re
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyte
from ptyprocess import PtyProcess, PtyProcessError

PATIENCE_SECONDS: Final = 30.0
"""The real CLI starts within 2 s on an idle machine; tests share theirs."""
ANSWER_AGAIN_SECONDS: Final = 1.0
READ_BYTES: Final = 65_536


class _Screen(pyte.Screen):
    """Ignores private SGR sequences, which pyte 0.8.2 fails on."""

    def select_graphic_rendition(self, *attrs: int, private: bool = False) -> None:
        if not private:
            super().select_graphic_rendition(*attrs)


class PtyProgram:
    """Runs *argv* in a PTY while the `with` block lasts, then kills it.

    Only *environment* reaches the program. `wait_for(pattern)` waits until the screen
    shows it; `send` types; `wait_end` returns the exit status (128 + the signal that
    ended it).
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        pass_fds: Sequence[int] = (),
        cols: int = 100,
        rows: int = 40,
    ) -> None:
        self._process: Any = PtyProcess.spawn(
            list(argv),
            cwd=str(directory),
            env=dict(environment),
            dimensions=(rows, cols),
            pass_fds=tuple(pass_fds),
        )
        self._screen = _Screen(cols, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self.output = b""

    @property
    def pid(self) -> int:
        """The pid of what was spawned (for a sandbox: its outermost process)."""
        return int(self._process.pid)

    @property
    def text(self) -> str:
        """The screen's lines, without the spaces at their ends."""
        with self._changed:
            return "\n".join(line.rstrip() for line in self._screen.display)

    def send(self, text: str) -> None:
        """Type *text*; a line ends with a carriage return."""
        self._process.write(text.encode())

    def resize(self, *, cols: int, rows: int) -> None:
        """Give the PTY another size."""
        self._process.setwinsize(rows, cols)

    def wait_for(self, pattern: str, *, seconds: float = PATIENCE_SECONDS) -> str:
        """Return what *pattern* matches on the screen, once it does."""
        deadline = time.monotonic() + seconds
        while True:
            with self._changed:
                shown = "\n".join(line.rstrip() for line in self._screen.display)
                if found := re.search(pattern, shown):
                    return found.group()
                left = deadline - time.monotonic()
                if left <= 0 or (self._ended and not self._reader.is_alive()):
                    raise AssertionError(f"{pattern!r} is not on the screen:\n{shown}")
                self._changed.wait(min(left, 1))

    def wait_gone(self, pattern: str, *, seconds: float = PATIENCE_SECONDS) -> bool:
        """Tell whether *pattern* left the screen within *seconds*."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not re.search(pattern, "\n".join(self._screen.display)), seconds
            )

    def answer(self, key: str, *, dialog: str) -> None:
        """Press *key* until the dialog that shows *dialog* is gone.

        The CLI ignores keys in the first moment of a dialog, so that nobody who was
        typing approves it; a person presses again.
        """
        for _ in range(int(PATIENCE_SECONDS / ANSWER_AGAIN_SECONDS)):
            self.send(key)
            if self.wait_gone(dialog, seconds=ANSWER_AGAIN_SECONDS):
                return
        raise AssertionError(f"the dialog stays:\n{self.text}")

    def wait_end(self, *, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait until the program ended and return its status."""
        self._reader.join(seconds)
        if self._reader.is_alive():
            raise AssertionError(f"it did not end:\n{self.text}")
        self._process.wait()
        if self._process.signalstatus is not None:
            return 128 + int(self._process.signalstatus)
        return int(self._process.exitstatus)

    def _read(self) -> None:
        while not self._ended:
            try:
                data = os.read(self._process.fd, READ_BYTES)
            except OSError:  # EIO: the last process let go of the terminal
                data = b""
            with self._changed:
                self.output += data
                self._stream.feed(data)
                self._ended = not data
                self._changed.notify_all()

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._process.isalive():
                os.kill(self.pid, signal.SIGKILL)
                self._process.wait()
        except (ProcessLookupError, PtyProcessError):
            pass
        self._reader.join(PATIENCE_SECONDS)
        self._process.close()
