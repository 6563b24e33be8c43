"""The scripted agent's screen and keyboard. Stdlib only."""

import os
import select
import shutil
import sys
import termios
import time
import tty
from collections import deque
from subprocess import Popen
from typing import Any

from sidestage.demo.agent.agent_hooks import read_decision

ENTER, ESCAPE, DOWN, INTERRUPT = "\r", "\x1b", "\x1b[B", "\x03"
_PASTE_START, _PASTE_END = "\x1b[200~", "\x1b[201~"
# Alternate screen, bracketed paste, focus reports: what the real one switches on.
_OPEN = "\x1b[?1049h\x1b[?2004h\x1b[?1004h"
_CLOSE = "\x1b[?1004l\x1b[?2004l\x1b[?1049l"
ESCAPE_PATIENCE_SECONDS = 0.05
"""A key's sequence comes in one piece; an ESC alone is the Escape key."""


class Terminal:
    """Paints the whole screen at each change; reads keys one by one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.input = ""
        self.dialog: list[str] = []
        self.spinner = ""
        self._keys: deque[str] = deque()
        self._saved: list[object] | None = None

    def open(self) -> None:
        """Take the terminal over."""
        if sys.stdin.isatty():
            self._saved = termios.tcgetattr(0)
            tty.setraw(0)
        self._write(_OPEN)

    def close(self) -> None:
        """Give the terminal back."""
        self._write(_CLOSE)
        if self._saved is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)  # type: ignore[arg-type]  # what tcgetattr gave

    def title(self, text: str) -> None:
        """Set the window's title."""
        self._write(f"\x1b]0;{text}\x07")

    def say(self, text: str) -> None:
        """Add lines to what is shown."""
        self.lines += text.split("\n")
        self.paint()

    def paint(self) -> None:
        """Draw everything anew."""
        columns, rows = shutil.get_terminal_size()
        box = self.dialog or ["─" * columns, f"❯ {self.input}", "─" * columns]
        box = [self.spinner, *box] if self.spinner else box
        shown = self.lines[-max(rows - len(box) - 1, 1) :]
        body = "\r\n".join(line[:columns] for line in [*shown, *box])
        self._write(f"\x1b[H\x1b[2J{body}")

    def read_key(self, timeout_seconds: float | None = None) -> str | None:
        """Return the next key, or a whole paste; None at the timeout."""
        if not self._keys:
            if not select.select([0], [], [], timeout_seconds)[0]:
                return None
            self._split(self._read())
        return self._keys.popleft() if self._keys else None

    def read_line(self) -> str:
        """Return a line that is typed into the box."""
        while True:
            self.paint()
            key = self.read_key()
            if key == ENTER:
                text, self.input = self.input, ""
                return text
            self.type(key)

    def type(self, key: str | None) -> None:
        """Take a key into the input box."""
        if key == INTERRUPT:
            raise SystemExit(0)
        if key in ("\x7f", "\b"):
            self.input = self.input[:-1]
        elif key is not None and (key >= " " or "\n" in key) and key[0] != ESCAPE:
            self.input += key

    def ask(
        self, lines: list[str], keys: str, hooks: list[Popen[bytes]] | None = None
    ) -> str | dict[str, Any]:
        """Show a dialog until one of *keys* is pressed or one of *hooks* decides."""
        waiting = list(hooks or ())
        self.dialog = ["─" * 40, *lines]
        try:
            while True:
                self.paint()
                decision = self._next_decision(waiting)
                if decision is not None:
                    return decision
                key = self.read_key(0)
                if key is not None and key in keys:
                    return key
        finally:
            self.dialog = []
            self.paint()

    def _next_decision(self, waiting: list[Popen[bytes]]) -> dict[str, Any] | None:
        """Wait for a key or a hook; return what a hook decided, if one did."""
        if self._keys:
            return None
        outputs = {it.stdout.fileno(): it for it in waiting if it.stdout is not None}
        ready, _, _ = select.select([0, *outputs], [], [])
        for output in ready:
            if output in outputs:
                process = outputs[output]
                waiting.remove(process)
                return read_decision(process)
        return None

    def wait(self, seconds: float) -> bool:
        """Wait, taking what is typed into the box; False if Escape was pressed."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            key = self.read_key(left)
            if key == ESCAPE:
                return False
            if key != ENTER:
                self.type(key)
        return True

    def _read(self) -> str:
        data = os.read(0, 65_536)
        if not data:
            raise SystemExit(0)
        while (
            data.endswith(b"\x1b")
            and select.select([0], [], [], ESCAPE_PATIENCE_SECONDS)[0]
        ):
            data += os.read(0, 65_536)
        return data.decode("utf-8", "replace")

    def _split(self, text: str) -> None:
        while text:
            if text.startswith(_PASTE_START):
                while _PASTE_END not in text:
                    text += self._read()
                pasted, _, text = text[len(_PASTE_START) :].partition(_PASTE_END)
                self._keys.append(pasted.replace("\r", "\n"))
            elif text.startswith("\x1b["):
                end = next(
                    (i for i, it in enumerate(text) if i > 1 and it.isalpha()), 1
                )
                self._keys.append(text[: end + 1])
                text = text[end + 1 :]
            else:
                self._keys.append(text[0])
                text = text[1:]

    @staticmethod
    def _write(text: str) -> None:
        os.write(1, text.encode())
