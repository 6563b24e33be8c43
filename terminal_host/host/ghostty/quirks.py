"""The few sequences on which libghostty and xterm.js part, done as xterm.js does them.

One regular expression finds them; all else goes to the library untouched. Each rule is
one row of the table at the end, but for EL: behind the last column, where the next
character wraps, there is nothing for it to erase.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from terminal_host.host.ghostty.decoding import CONTROLS, IGNORED, LINK_START
from terminal_host.host.ghostty.library import Data, Vt
from terminal_host.host.ghostty.links import LinkBudget
from terminal_host.host.ghostty.pens import encode_pen
from terminal_host.host.ghostty.shifted import ShiftedText
from terminal_host.host.ghostty.state import (
    SHIFTS,
    SLOTS,
    Region,
    ScreenState,
    default_tabs,
    read_state,
)

LOOK_BACK_BYTES: Final = 256
"""Kept to tell whether the last thing was a printed character."""

_COMMON = (
    rb"\x1b(?:\["
    rb"(?:(?P<erase_line>0?K)"
    rb"|(?P<soft_reset>!p)"
    rb"|\?(?P<alternate>(?:[\d;]*;)?(?:47|1047|1048|1049)(?:;[\d;]*)?[hl])"
    rb"|(?P<ignored>\?(?:[\d;]*[sr]|(?:2027|69)[hl]))"
    rb"|(?P<scroll_up>\d*+S)"
    rb"|(?P<repeat>\d*+b)"
    rb"|(?P<scroll_down>\d*+T)"
    rb"|0+(?P<zero>[@A-GILMPXZae])"
    rb"|(?P<cursor>[su])"
)
_REST = rb")|(?P<shell_mark>\]133;)|(?P<cursor_escape>[78])|(?P<reset>c)"
_LINK = (
    rb"|\]" + IGNORED + rb"8" + IGNORED + rb";(?P<link>"
    rb"(?P<parameters>[^;\x07\x18\x1a\x1b]*);(?P<uri>[^\x07\x18\x1a\x1b]*)"
    rb"(?:\x07|\x1b\\|(?=\x1b)|(?P<cancelled>(?=[\x18\x1a]))))"
)
_WITHOUT_LINKS = re.compile(_COMMON + _REST + rb")")
_BEFORE_LINK = re.compile(_COMMON + _REST + _LINK + rb")")
_INSIDE_LINK = re.compile(_COMMON + rb"|(?P<pen>[\d;:]*)m" + _REST + _LINK + rb")")
_QUICK = re.compile(rb"\x1b(?:\[[0-9;:]*+[^m]|[^\[])")
"""Finds whatever might be in the table, at half the cost: colours alone are not."""

_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[ -/]+[0-~]|[0-Z\\^-~])")
_RESET_MODES = (
    b"\x1b[?25h\x1b[0m\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[4l"
    b"\x1b[?1;6;45;1004;2004;2026l\x1b[?7h\x1b>\x1b[0 q\x1b[r\x1b[H\x1b7"
)
_LINK_END = b"\x1b]8;;\x1b\\"
_ORIGIN_MODE: Final = 6


class XtermFeed:
    """Feeds one terminal of the library, as xterm.js would act."""

    def __init__(self, vt: Vt, history_lines: int) -> None:
        self.saved_row: int | None = 0
        """Row of the main buffer's saved cursor, counted from the top of the history;
        None while it is the library's own."""
        self.main_extras: tuple[Region | None, frozenset[int]] | None = None
        """Region and tabs of the main buffer while the alternate one is shown."""
        self.open_link: bytes | None = None
        self.link_hidden = False
        self.tail = b""
        """What was fed last."""
        self._vt = vt
        self._history_lines = history_lines
        self._shifted = ShiftedText(vt)
        self._links = LinkBudget(vt)
        self._fed = b""

    def feed(self, data: bytes) -> None:
        """Act on *data*, which holds no cut quirk."""
        self._fed = data
        if not self._shifted.seen:
            self._shifted.look(data)
        write = self._shifted.write if self._shifted.seen else self._vt.write
        if self.open_link or _QUICK.search(data):
            self._feed_quirks(data, write)
        elif data:
            write(data)
        self.tail = (self.tail + data[-LOOK_BACK_BYTES:])[-LOOK_BACK_BYTES:]

    def printed(self, text: bytes | None = None) -> bool:
        """Tell whether the last whole thing fed was a printed character."""
        text = self.tail if text is None else text
        unfinished = self._vt.continuation()
        if unfinished:
            if len(unfinished) > len(text):
                return False
            text = text[: -len(unfinished)]
        escape = text.rfind(b"\x1b")
        if escape >= 0:
            sequence = _SEQUENCE.match(text, escape)
            if sequence is None:
                return False
            text = text[sequence.end() :]
        return bool(text) and (0x20 <= text[-1] < 0x7F or text[-1] >= 0x80)

    def history_rows(self) -> int:
        """Return how many rows of history xterm.js would have."""
        return min(self._history_lines, self._vt.get(Data.HISTORY_ROWS))

    def go(self, x: int, y: int, region: Region | None) -> bytes:
        """Return what moves the cursor there, in origin mode too."""
        if region is not None and self._vt.mode(_ORIGIN_MODE):
            y -= region[0]
        return b"\x1b[%d;%dH" % (max(y, 0) + 1, x + 1)

    def _feed_quirks(self, data: bytes, write: Callable[[bytes], None]) -> None:
        position = 0
        pattern = self._pattern(data)
        if pattern is not _WITHOUT_LINKS:
            write = partial(self._write_counted, write)
        match = pattern.search(data)
        while match is not None:
            if match.start() > position:
                write(data[position : match.start()])
            end = match.end()
            name = match.lastgroup or ""
            if name == "erase_line":
                # By far the most frequent; it goes with what follows it.
                position = end if self._vt.wraps_next() else match.start()
            else:
                position = end
                _RULES[name](self, match)
            if name in ("link", "pen"):
                pattern = self._pattern(data)
            match = pattern.search(data, end)
        if position < len(data):
            write(data[position:] if position else data)

    def _write_counted(self, write: Callable[[bytes], None], data: bytes) -> None:
        self._count_linked(len(data))
        write(data)

    def _count_linked(self, cells: int) -> None:
        """Hide the open link if these cells were too many to be linked."""
        if self.open_link and not self.link_hidden and not self._links.print(cells):
            self.link_hidden = True
            self._vt.write(_LINK_END)

    def _pattern(self, data: bytes) -> re.Pattern[bytes]:
        if self.open_link:
            return _INSIDE_LINK
        return _BEFORE_LINK if LINK_START.search(data) else _WITHOUT_LINKS

    def _save(self) -> None:
        # xterm.js counts the saved row from the top of the history.
        if not self._vt.alternate:
            self.saved_row = self.history_rows() + self._vt.cursor[1]

    def _restored(self, *, origin: bool) -> None:
        """Put the cursor where xterm.js restores it; *origin* mode is not restored."""
        vt = self._vt
        x, y = vt.cursor
        wanted = y
        if not vt.alternate and self.saved_row is not None:
            row = max(0, self.saved_row - self.history_rows())
            wanted = min(row, vt.get(Data.ROWS) - 1)
        same_mode = vt.mode(_ORIGIN_MODE) == origin
        if not same_mode or wanted != y or vt.get(Data.PENDING_WRAP):
            mode = b"" if same_mode else b"\x1b[?6h" if origin else b"\x1b[?6l"
            vt.write(mode)
            region = read_state(vt).region if origin else None
            vt.write(self.go(x, wanted, region))

    def _soft_reset(self, _: re.Match[bytes]) -> None:
        x, y = self._vt.cursor
        self._vt.write(_RESET_MODES + b"\x1b[%d;%dH" % (y + 1, x + 1))
        if not self._vt.alternate:
            self.saved_row = self.history_rows()
        self._after_restore()
        self.open_link = None

    def _alternate(self, match: re.Match[bytes]) -> None:
        vt = self._vt
        was, on = vt.alternate, match[0].endswith(b"h")
        number = max(int(v) for v in match["alternate"][:-1].split(b";") if v)
        origin = vt.mode(_ORIGIN_MODE)
        before = None if was else read_state(vt)
        if on and number >= 1048:
            self._save()
        vt.write(match[0])
        if before is not None and vt.alternate:
            self._enter_alternate(before, number)
        elif was and not vt.alternate and self.main_extras is not None:
            now = read_state(vt)
            self._set_extras((now.region, now.tabs), self.main_extras)
            self.main_extras = None
        if not on and number >= 1048:
            self._restored(origin=origin)

    def _enter_alternate(self, before: ScreenState, number: int) -> None:
        """Give the alternate buffer its own region and tabs, and clear it."""
        self.main_extras = (before.region, before.tabs)
        if number == 47 or before.pen.background is not None:
            self._vt.write(b"\x1b[2J")
        fresh = (None, default_tabs(self._vt.get(Data.COLS)))
        self._set_extras(self.main_extras, fresh)

    def _set_extras(
        self,
        now: tuple[Region | None, frozenset[int]],
        wanted: tuple[Region | None, frozenset[int]],
    ) -> None:
        if now == wanted:
            return
        x, y = self._vt.cursor
        region, tabs = wanted
        text = b""
        if now[1] != tabs:
            stops = (b"\x1b[%dG\x1bH" % (tab + 1) for tab in sorted(tabs))
            text = b"\x1b[3g" + b"".join(stops)
        margins = b"" if region is None else b"%d;%d" % (region[0] + 1, region[1] + 1)
        self._vt.write(text + b"\x1b[" + margins + b"r" + self.go(x, y, region))

    def _scroll_up(self, match: re.Match[bytes]) -> None:
        # xterm.js does not keep what scrolls out.
        count = max(1, int(match["scroll_up"][:-1] or 1))
        if self._vt.alternate:
            self._vt.write(b"\x1b[%dS" % count)
            return
        x, y = self._vt.cursor
        region = read_state(self._vt).region
        top = self.go(0, region[0] if region else 0, region)
        self._vt.write(top + b"\x1b[%dM" % count + self.go(x, y, region))

    def _scroll_down(self, match: re.Match[bytes]) -> None:
        # The new lines have no background.
        pen = read_state(self._vt).pen
        scroll = b"\x1b[%dT" % max(1, int(match["scroll_down"][:-1] or 1))
        if pen.background is not None:
            scroll = b"\x1b[0m" + scroll + encode_pen(pen).encode()
        self._vt.write(scroll)

    def _repeat(self, match: re.Match[bytes]) -> None:
        # Only what was printed just before is repeated.
        start = max(0, match.start() - LOOK_BACK_BYTES)
        before = self.tail + self._fed[start : match.start()]
        if self.printed(before[-LOOK_BACK_BYTES:]):
            self._count_linked(int(match["repeat"][:-1] or 1))
            self._vt.write(match[0])

    def _zero(self, match: re.Match[bytes]) -> None:
        # A parameter of 0 counts as 1.
        self._vt.write(b"\x1b[" + match["zero"])

    def _cursor(self, match: re.Match[bytes]) -> None:
        if match[0][-1:] in b"7s":
            self._save()
            self._vt.write(match[0])
        else:
            self._restore(match[0])
        self._after_restore()

    def _restore(self, sequence: bytes) -> None:
        origin = self._vt.mode(_ORIGIN_MODE)
        before = read_state(self._vt) if self._shifted.seen else None
        self._vt.write(sequence)
        if before is not None:
            self._keep_shift(before)
        self._restored(origin=origin)

    def _keep_shift(self, before: ScreenState) -> None:
        """Restore the charset in use only: xterm.js keeps the shift as it was."""
        now = read_state(self._vt)
        charsets = dict(before.charsets)
        charsets[SHIFTS[before.shift]] = now.charsets.get(SHIFTS[now.shift], "B")
        text = "".join(f"\x1b{slot}{charsets.get(slot, 'B')}" for slot in SLOTS)
        self._vt.write((text + (before.shift or "\x0f")).encode())

    def _after_restore(self) -> None:
        if self._shifted.seen:
            self._shifted.resume()

    def _shell_mark(self, _: re.Match[bytes]) -> None:
        # It moves the cursor in ghostty; as an unknown one it does nothing.
        self._vt.write(b"\x1b]9133;")

    def _reset(self, match: re.Match[bytes]) -> None:
        visible = self._vt.get(Data.CURSOR_VISIBLE)
        self._vt.write(match[0] + (b"" if visible else b"\x1b[?25l"))
        self.main_extras, self.saved_row = None, 0
        self.set_last_tab()
        self._after_restore()
        self.open_link = None

    def _pen(self, match: re.Match[bytes]) -> None:
        # SGR 0 hides the open link; underlining shows it again.
        self._vt.write(match[0])
        if self.open_link is None:
            return
        hidden = self.link_hidden
        for parameter in match["pen"].split(b";"):
            number = parameter.partition(b":")[0]
            if number in (b"", b"0"):
                hidden = True
            elif number in (b"4", b"21", b"24", b"58", b"59"):
                hidden = False
        if hidden != self.link_hidden:
            self._show_link(hidden=hidden)

    def _follow_link(self, match: re.Match[bytes]) -> None:
        if match["cancelled"] is not None:
            return
        link = b"\x1b]8;%b;%b\x1b\\" % (match["parameters"], match["uri"])
        self.open_link = link.translate(None, CONTROLS) if match["uri"] else None
        self._show_link(hidden=self.open_link is None)
        self.link_hidden = self.link_hidden and self.open_link is not None

    def _show_link(self, *, hidden: bool) -> None:
        """Let the library see the open link, or end it there."""
        uri = b"" if self.open_link is None else self.open_link.split(b";", 2)[2]
        self.link_hidden = hidden or not self._links.open(uri)
        # One id for all: else the library keeps a link anew whenever it opens.
        self._vt.write(_LINK_END if self.link_hidden else b"\x1b]8;id=s;" + uri)

    def set_last_tab(self) -> None:
        """Set the default stop in the last column, which the library lacks."""
        vt = self._vt
        if vt.get(Data.COLS) % 8 != 1 or not vt.get(Data.AT_GROUND):
            return
        if not vt.get(Data.PENDING_WRAP):
            vt.write(b"\x1b[99999G\x1bH\x1b[%dG" % (vt.cursor[0] + 1))


_RULES: Final[dict[str, Callable[[XtermFeed, re.Match[bytes]], None]]] = {
    "soft_reset": XtermFeed._soft_reset,
    "alternate": XtermFeed._alternate,
    "ignored": lambda _feed, _match: None,
    "scroll_up": XtermFeed._scroll_up,
    "repeat": XtermFeed._repeat,
    "scroll_down": XtermFeed._scroll_down,
    "zero": XtermFeed._zero,
    "cursor": XtermFeed._cursor,
    "cursor_escape": XtermFeed._cursor,
    "shell_mark": XtermFeed._shell_mark,
    "reset": XtermFeed._reset,
    "pen": XtermFeed._pen,
    "link": XtermFeed._follow_link,
}
