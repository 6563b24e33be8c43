"""libghostty's terminal behind typed calls: the only place that knows its C names.

The binding is in ABI mode, which checks nothing: a wrong C type writes beyond its
buffer. So every value that is read has its type here, once. Pinned version; run the
fidelity tests on every bump.
"""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final, TypeAlias

from pyghostty import Terminal, ffi, lib
from pyghostty._ffi import union_fn
from pyghostty.core import init_sized

BYTES_LIMIT: Final = 16 << 20
"""The library's own bound of history in bytes; lines bound it long before."""
CONTINUATION_LIMIT_BYTES: Final = 1 << 16
"""The longest unfinished sequence it keeps; a longer one is ended by us."""
DEFAULT_CURSOR: Final = lib.GHOSTTY_TERMINAL_CURSOR_STYLE_BLOCK_HOLLOW
"""Set as the default shape, so that "never set" differs from "set to block"."""

CELL_LAYOUT: Final[dict[str, Any]] = json.loads(ffi.string(lib.ghostty_type_json()))[
    "types"
]["GhosttyCell"]["bits"]
"""Where the fields of a raw 64-bit cell are."""

_CELL_PIXELS: Final = (8, 16)
_GRAPHEME_CODE_POINTS: Final = 64
_UNICODE_LIMIT: Final = 0x110000

Native: TypeAlias = Any
"""A C value; the binding has no types."""

grid_ref_into = union_fn(
    "ghostty_terminal_grid_ref",
    "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)",
)
character_width: Callable[[int], int] = lib.ghostty_unicode_codepoint_width


class Data(Enum):
    """A value of a terminal: its key and its C type."""

    COLS = (lib.GHOSTTY_TERMINAL_DATA_COLS, "uint16_t")
    ROWS = (lib.GHOSTTY_TERMINAL_DATA_ROWS, "uint16_t")
    CURSOR_X = (lib.GHOSTTY_TERMINAL_DATA_CURSOR_X, "uint16_t")
    CURSOR_Y = (lib.GHOSTTY_TERMINAL_DATA_CURSOR_Y, "uint16_t")
    PENDING_WRAP = (lib.GHOSTTY_TERMINAL_DATA_CURSOR_PENDING_WRAP, "bool")
    CURSOR_VISIBLE = (lib.GHOSTTY_TERMINAL_DATA_CURSOR_VISIBLE, "bool")
    AT_GROUND = (lib.GHOSTTY_TERMINAL_DATA_VT_GROUND, "bool")
    HISTORY_ROWS = (lib.GHOSTTY_TERMINAL_DATA_SCROLLBACK_ROWS, "size_t")
    TOTAL_ROWS = (lib.GHOSTTY_TERMINAL_DATA_TOTAL_ROWS, "size_t")
    ACTIVE_SCREEN = (
        lib.GHOSTTY_TERMINAL_DATA_ACTIVE_SCREEN,
        "GhosttyTerminalScreen",
    )


_PENDING_WRAP: Final = Data.PENDING_WRAP.value[0]


class LibraryFailed(Exception):
    """A call of the library failed that never does on a sound terminal."""


class Vt:
    """One terminal of the library. Not safe for two threads at once."""

    def __init__(self, pointer: Native, keep: object = None) -> None:
        self.pointer = pointer
        self._keep = keep  # whatever frees the pointer when it goes
        self._wraps = ffi.new("bool*")
        self._buffers: dict[str, Any] = {}
        self._mode = ffi.new("GhosttyTerminalModeConfig*")

    def write(self, data: bytes) -> None:
        """Let the terminal act on *data*."""
        lib.ghostty_terminal_vt_write(self.pointer, data, len(data))

    def get(self, data: Data) -> int:
        """Return a value; booleans are 0 and 1."""
        key, ctype = data.value
        buffer = self._buffers.get(ctype)
        if buffer is None:
            buffer = self._buffers[ctype] = ffi.new(ctype + "*")
        if lib.ghostty_terminal_get(self.pointer, key, buffer):
            raise LibraryFailed(data.name)
        return int(buffer[0])

    def wraps_next(self) -> bool:
        """Tell whether the next character wraps first; quicker than `get`."""
        lib.ghostty_terminal_get(self.pointer, _PENDING_WRAP, self._wraps)
        return bool(self._wraps[0])

    @property
    def cursor(self) -> tuple[int, int]:
        """Return column and row, from 0."""
        return self.get(Data.CURSOR_X), self.get(Data.CURSOR_Y)

    @property
    def alternate(self) -> bool:
        """Tell whether the alternate buffer is shown."""
        screen = self.get(Data.ACTIVE_SCREEN)
        return bool(screen == lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE)

    def mode(self, number: int, *, private: bool = True) -> bool:
        """Tell whether a mode is set."""
        config = self._mode
        config.mode = (number & 0x7FFF) | (not private) << 15
        key = lib.GHOSTTY_TERMINAL_DATA_MODE
        failed = lib.ghostty_terminal_get(self.pointer, key, config)
        return not failed and bool(config.value)

    def title(self) -> str:
        """Return the title, or nothing."""
        text = ffi.new("GhosttyString*")
        key = lib.GHOSTTY_TERMINAL_DATA_TITLE
        if lib.ghostty_terminal_get(self.pointer, key, text) or not text.len:
            return ""
        return _text(text.ptr, text.len)

    def continuation(self) -> bytes:
        """Return the unfinished sequence."""
        return _take(lib.ghostty_terminal_continuation_alloc, self.pointer, ffi.NULL)

    def format_state(self) -> str:
        """Return the cursor's state as VT: tabs, region, position, pen, link, charsets.

        The library's own formatter, over a single cell.
        """
        options = init_sized("GhosttyFormatterTerminalOptions")
        options.emit = lib.GHOSTTY_FORMATTER_FORMAT_VT
        options.unwrap = options.trim = True
        options.extra.scrolling_region = options.extra.tabstops = True
        screen = options.extra.screen
        screen.cursor = screen.style = screen.hyperlink = screen.charsets = True
        selection = init_sized("GhosttySelection")
        first = self.grid_ref(0, 0, lib.GHOSTTY_POINT_TAG_ACTIVE)
        selection.start = selection.end = first[0]
        options.selection = selection
        formatter = ffi.new("GhosttyFormatter*")
        if lib.ghostty_formatter_terminal_new(
            ffi.NULL, formatter, self.pointer, options[0]
        ):
            raise LibraryFailed("formatter")
        try:
            text = _take(lib.ghostty_formatter_format_alloc, formatter[0], ffi.NULL)
        finally:
            lib.ghostty_formatter_free(formatter[0])
        return text.decode("utf-8", "replace")

    def grid_ref(self, x: int, y: int, tag: int) -> Native:
        """Return a reference to a cell, valid until the terminal changes."""
        point = ffi.new("GhosttyPointS*")
        point.tag, point.value.x, point.value.y = tag, x, y
        reference = init_sized("GhosttyGridRef")
        if grid_ref_into(self.pointer, point[0], reference):
            raise LibraryFailed("grid_ref")
        return reference

    def grapheme(self, x: int, y: int) -> str:
        """Return all code points of the cell, *y* counted from the oldest row."""
        reference = self.grid_ref(x, y, lib.GHOSTTY_POINT_TAG_SCREEN)
        count = ffi.new("size_t*")
        size = _GRAPHEME_CODE_POINTS
        buffer = ffi.new("uint32_t[]", size)
        if lib.ghostty_grid_ref_graphemes(reference, buffer, size, count):
            size = count[0]
            buffer = ffi.new("uint32_t[]", max(size, 1))
            if lib.ghostty_grid_ref_graphemes(reference, buffer, size, count):
                raise LibraryFailed("graphemes")
        return "".join(map(chr, buffer[0 : count[0]]))

    def uri(self, x: int, y: int) -> str | None:
        """Return the link of the cell, *y* counted from the oldest row."""
        reference = self.grid_ref(x, y, lib.GHOSTTY_POINT_TAG_SCREEN)
        count = ffi.new("size_t*")
        lib.ghostty_grid_ref_hyperlink_uri(reference, ffi.NULL, 0, count)
        if not count[0]:
            return None
        buffer = ffi.new("uint8_t[]", count[0])
        failed = lib.ghostty_grid_ref_hyperlink_uri(reference, buffer, count[0], count)
        return None if failed else _text(buffer, count[0])

    @contextmanager
    def cloned(self) -> Generator["Vt | None"]:
        """Yield a copy that may be written to; None if the state cannot be encoded."""
        snapshot, length = ffi.new("uint8_t**"), ffi.new("size_t*")
        encode = lib.ghostty_snapshot_encode_alloc
        if encode(self.pointer, ffi.NULL, snapshot, length):
            yield None
            return
        pointer = _decode(snapshot[0], length[0])
        try:
            yield Vt(pointer)
        finally:
            lib.ghostty_terminal_free(pointer)


class OwnedVt(Vt):
    """A terminal of our own, freed with this object."""

    def __init__(self, cols: int, rows: int, history_lines: int) -> None:
        terminal = Terminal(cols, rows, history_lines)
        super().__init__(terminal._t[0], terminal)  # no other way to it
        self._terminal = terminal
        self._set(lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_BYTES, "size_t", BYTES_LIMIT)
        self._set(
            lib.GHOSTTY_TERMINAL_OPT_CONTINUATION_MAX_BYTES,
            "size_t",
            CONTINUATION_LIMIT_BYTES,
        )
        self._set(
            lib.GHOSTTY_TERMINAL_OPT_DEFAULT_CURSOR_STYLE,
            "GhosttyTerminalCursorStyle",
            DEFAULT_CURSOR,
        )

    def resize(self, cols: int, rows: int) -> None:
        """Take another size in one step."""
        self._terminal.resize(cols, rows, *_CELL_PIXELS)

    def limit_history(self, lines: int) -> None:
        """Keep about that many lines of history."""
        self._set(lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_LINES, "size_t", lines)

    def _set(self, key: int, ctype: str, value: int) -> None:
        if lib.ghostty_terminal_set(self.pointer, key, ffi.new(ctype + "*", value)):
            raise LibraryFailed("set")


def _decode(snapshot: Native, length: int) -> Native:
    """Return the terminal in a snapshot, which is freed."""
    decoder, terminal = ffi.new("GhosttySnapshotDecoder*"), ffi.new("GhosttyTerminal*")
    try:
        new = lib.ghostty_snapshot_decoder_new_buf
        if new(ffi.NULL, decoder, snapshot, length):
            raise LibraryFailed("decoder")
        failed = lib.ghostty_snapshot_decoder_decode(decoder[0], terminal)
        lib.ghostty_snapshot_decoder_free(decoder[0])
        if failed:
            raise LibraryFailed("decode")
    finally:
        lib.ghostty_free(ffi.NULL, snapshot, length)
    return terminal[0]


def _take(call: Callable[..., int], *arguments: Native) -> bytes:
    """Return what *call* allocates, and free it."""
    pointer, length = ffi.new("uint8_t**"), ffi.new("size_t*")
    if call(*arguments, pointer, length) or not length[0]:
        return b""
    data = bytes(ffi.buffer(pointer[0], length[0]))
    lib.ghostty_free(ffi.NULL, pointer[0], length[0])
    return data


def _text(pointer: Native, length: int) -> str:
    return bytes(ffi.buffer(pointer, length)).decode("utf-8", "replace")
