"""What may reach the owner's own terminal when it shows a terminal of ours.

The bytes come from a sandboxed agent and go to a terminal outside of any sandbox. That
one must run nothing for them: no clipboard, no remote control, no pass-through, no
files, and no answer that would be typed back (the host has answered already).
"""

from typing import Final

from terminal_host.vt_filter import StreamFilter

LEAVE: Final = (
    b"\x1b[?1049l\x1b[?9;1000;1002;1003;1004;1005;1006;1015;1016;2004;2026l"
    b"\x1b[?1;6;66l\x1b[?7;25h\x1b[4l\x1b[r\x1b[0m\x1b(B\x0f\x1b>\x1b[<u\x1b[0 q"
    b"\x1b[>4m\x1b]8;;\x1b\\"
)
"""Undoes what a program may have left set: modes, margins, charset, pen, link."""
BEGIN: Final = LEAVE + b"\x1b[H\x1b[2J"
"""Precedes a repaint: it is meant for a fresh terminal of its size."""


class AttachFilter:
    """Filters the output of one terminal, cut anywhere."""

    def __init__(self) -> None:
        self._filter = StreamFilter(keep_bell=True)

    def feed(self, data: bytes) -> bytes:
        """Return what may pass of all that *data* completes."""
        return self._filter.feed(data)

    def restart(self) -> bytes:
        """Forget what was unfinished; return what prepares for a repaint."""
        self._filter = StreamFilter(keep_bell=True)
        return BEGIN
