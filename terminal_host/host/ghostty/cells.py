"""All rows of a screen, history first, as runs of cells that are drawn alike."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from pyghostty import ffi, lib
from pyghostty.core import init_sized

from terminal_host.host.ghostty.library import (
    CELL_LAYOUT,
    Data,
    LibraryFailed,
    Native,
    Vt,
    grid_ref_into,
)
from terminal_host.host.ghostty.pens import FLAGS, PLAIN, Pen, blank, rgb
from terminal_host.host.ghostty.state import Link
from terminal_host.host.ghostty.widths import from_library

_OVERSCAN_ROWS: Final = 65535
"""So that a render state shows the history too, not only the screen."""


class Run(NamedTuple):
    """Neighbouring cells of one row."""

    x: int
    width: int
    text: str | None
    """One character a cell; None for cells that were never written or are erased; ""
    for the cell that a wide character left empty before it wrapped."""
    pen: Pen
    link: Link | None = None
    single: bool = False
    """Whether the text is that of one cell: a cluster, or a wide character."""


class Row(NamedTuple):
    """One row of cells."""

    wrapped: bool
    """Whether it goes on with the line of the row above."""
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """The rows of one buffer, and how the cursor looks."""

    rows: tuple[Row, ...]
    """Oldest first; the last ones are the screen."""
    cursor_shape: int
    cursor_blinks: bool


def _field(name: str) -> tuple[int, int]:
    bits = CELL_LAYOUT[name]
    return bits["lsb"], (1 << bits["width"]) - 1


_TAG_AT, _TAG = _field("content_tag")
_CONTENT_AT, _ = _field("content")
_STYLE_AT, _STYLE = _field("style_id")
_WIDE_AT, _WIDE = _field("wide")
_LINK_AT, _LINK = _field("hyperlink")
_CODE_POINT = (
    1 << CELL_LAYOUT["content"]["arms"]["CODEPOINT"]["bits"]["codepoint"]["width"]
) - 1
_ALIKE = _TAG << _TAG_AT | _STYLE << _STYLE_AT | _WIDE << _WIDE_AT | _LINK << _LINK_AT
"""What two neighbours must share to be one run."""
_CELL_BYTES = 8
_CODE_POINT_TAG, _GRAPHEME_TAG, _PALETTE_TAG, _RGB_TAG = range(4)
_WIDE_CELL, _WIDE_TAIL, _WIDE_HEAD = 1, 2, 3
_LOW_BYTES_OF_TEXT = bytes(range(0, 256, 4))
"""The low bytes of cells that hold a code point and nothing else."""


def read_grid(vt: Vt, history_lines: int) -> Grid:
    """Return the active buffer's rows, at most *history_lines* above the screen."""
    state = ffi.new("GhosttyRenderState*")
    lib.ghostty_render_state_new(ffi.NULL, state)
    rows = ffi.new("GhosttyRenderStateRowIterator*")
    lib.ghostty_render_state_row_iterator_new(ffi.NULL, rows)
    try:
        _update(state[0], vt, rows)
        cursor = init_sized("GhosttyRenderStateCursor")
        key = lib.GHOSTTY_RENDER_STATE_DATA_CURSOR
        lib.ghostty_render_state_get(state[0], key, cursor)
        read = tuple(_Reader(vt).read(rows[0], history_lines))
        return Grid(read, cursor.visual_style, bool(cursor.blinking))
    finally:
        lib.ghostty_render_state_row_iterator_free(rows[0])
        lib.ghostty_render_state_free(state[0])


def _update(state: Native, vt: Vt, rows: Native) -> None:
    overscan = ffi.new("GhosttyRenderStateOverscan*")
    overscan.above = overscan.below = _OVERSCAN_ROWS
    option = lib.GHOSTTY_RENDER_STATE_OPTION_OVERSCAN
    lib.ghostty_render_state_set(state, option, overscan)
    if lib.ghostty_render_state_update(state, vt.pointer):
        raise LibraryFailed("render state")
    key = lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR
    if lib.ghostty_render_state_get(state, key, rows):
        raise LibraryFailed("rows")


class _Reader:
    """Reads the rows of one render state."""

    def __init__(self, vt: Vt) -> None:
        self._vt = vt
        self._view = ffi.new("GhosttyCellsView*")
        self._row = ffi.new("GhosttyRow*")
        self._flag = ffi.new("bool*")
        self._styles = _Styles(vt)

    def read(self, rows: Native, history_lines: int) -> Iterator[Row]:
        """Yield the rows, leaving out the oldest beyond *history_lines*."""
        total = self._vt.get(Data.TOTAL_ROWS)
        skipped = max(0, total - self._vt.get(Data.ROWS) - history_lines)
        count = 0
        while lib.ghostty_render_state_row_iterator_next(rows):
            if count >= skipped:
                yield self._read_row(rows, count)
            count += 1
        if count != total:
            raise LibraryFailed(f"{count} of {total} rows")

    def _read_row(self, rows: Native, y: int) -> Row:
        get = lib.ghostty_render_state_row_get
        get(rows, lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW, self._view)
        get(rows, lib.GHOSTTY_RENDER_STATE_ROW_DATA_RAW, self._row)
        key = lib.GHOSTTY_ROW_DATA_WRAP_CONTINUATION
        lib.ghostty_row_get(self._row[0], key, self._flag)
        raw = bytes(ffi.buffer(self._view.ptr, _CELL_BYTES * self._view.len))
        end = (len(raw.rstrip(b"\0")) + _CELL_BYTES - 1) // _CELL_BYTES
        runs = self._runs(raw, end, y) if end else ()
        return Row(bool(self._flag[0]), tuple(runs))

    def _runs(self, raw: bytes, end: int, y: int) -> Iterable[Run]:
        cells = memoryview(raw).cast("Q").tolist()[:end]
        low = raw[: _CELL_BYTES * end : _CELL_BYTES]
        if max(cells) < 512 and not low.translate(None, _LOW_BYTES_OF_TEXT):
            # Plain ASCII in the default pen: most of what programs print.
            text = bytes([cell >> _CONTENT_AT for cell in cells]).decode()
            return _text_runs(0, text, PLAIN)
        self._styles.start_row(y)
        return self._styled_runs(cells, y)

    def _styled_runs(self, cells: list[int], y: int) -> Iterator[Run]:
        x = 0
        for alike, group in groupby(cells, _ALIKE.__and__):
            members = list(group)
            pen = self._styles.pen(alike >> _STYLE_AT & _STYLE, x)
            yield from self._group(alike, members, x, y, pen)
            x += len(members)

    def _group(
        self, alike: int, cells: list[int], x: int, y: int, pen: Pen
    ) -> Iterable[Run]:
        tag, wide = alike >> _TAG_AT & _TAG, alike >> _WIDE_AT & _WIDE
        if tag in (_PALETTE_TAG, _RGB_TAG):
            return _blank_runs(cells, x, is_rgb=tag == _RGB_TAG)
        if wide == _WIDE_TAIL:
            return ()
        if wide == _WIDE_HEAD:
            return (Run(x, len(cells), "", pen, single=True),)
        if alike >> _LINK_AT & _LINK or tag == _GRAPHEME_TAG:
            return self._single_cells(alike, cells, x, y, pen)
        text = from_library("".join([_character(cell) for cell in cells]))
        if wide == _WIDE_CELL:
            return (Run(x, 2 * len(text), text, pen, single=True),)
        return _text_runs(x, text, pen)

    def _single_cells(
        self, alike: int, cells: list[int], x: int, y: int, pen: Pen
    ) -> Iterator[Run]:
        wide = alike >> _WIDE_AT & _WIDE == _WIDE_CELL
        linked = alike >> _LINK_AT & _LINK
        is_cluster = alike >> _TAG_AT & _TAG == _GRAPHEME_TAG
        for column, cell in enumerate(cells, x):
            text = self._vt.grapheme(column, y) if is_cluster else _character(cell)
            uri = self._vt.uri(column, y) if linked else None
            link = None if uri is None else ("", from_library(uri))
            yield Run(column, 1 + wide, from_library(text), pen, link, single=True)


class _Styles:
    """The pens of style ids, which belong to a page of rows each."""

    def __init__(self, vt: Vt) -> None:
        self._vt = vt
        self._style = init_sized("GhosttyStyle")
        self._reference = init_sized("GhosttyGridRef")
        self._point = ffi.new("GhosttyPointS*")
        self._point.tag = lib.GHOSTTY_POINT_TAG_SCREEN
        self._pages: dict[object, dict[int, Pen]] = {}
        self._pens: dict[Pen, Pen] = {}
        self._y = 0
        self._page: dict[int, Pen] | None = None

    def start_row(self, y: int) -> None:
        """Take note that the next ids are those of row *y*."""
        self._y, self._page = y, None

    def pen(self, style_id: int, x: int) -> Pen:
        """Return the pen of a style id that the cell at *x* has."""
        if not style_id:
            return PLAIN
        if self._page is None:
            self._point.value.x, self._point.value.y = x, self._y
            if grid_ref_into(self._vt.pointer, self._point[0], self._reference):
                raise LibraryFailed("grid_ref")
            self._page = self._pages.setdefault(self._reference.node, {})
        pen = self._page.get(style_id)
        if pen is None:
            pen = self._page[style_id] = self._read(x)
        return pen

    def _read(self, x: int) -> Pen:
        # Not the render state's own style: with overscan that is garbage in some rows.
        self._reference.x = x
        style = self._style
        if lib.ghostty_grid_ref_style(self._reference, style):
            raise LibraryFailed("style")
        pen = Pen(
            tuple(number for name, number in FLAGS if getattr(style, name)),
            _colour(style.fg_color),
            _colour(style.bg_color),
            style.underline,
            _colour(style.underline_color),
        )
        return self._pens.setdefault(pen, pen)


def _character(cell: int) -> str:
    return chr(cell >> _CONTENT_AT & _CODE_POINT)


def _text_runs(x: int, text: str, pen: Pen) -> Iterator[Run]:
    """Yield runs of text, and of the cells in between that were never written."""
    if "\0" not in text:
        yield Run(x, len(text), text, pen)
        return
    for unwritten, group in groupby(text, "\0".__eq__):
        piece = "".join(group)
        yield Run(x, len(piece), None if unwritten else piece, pen)
        x += len(piece)


def _blank_runs(cells: list[int], x: int, *, is_rgb: bool) -> Iterator[Run]:
    """Yield runs of erased cells that keep only a background."""
    mask = 0xFFFFFF if is_rgb else 0xFF
    for content, group in groupby(cells, lambda cell: cell >> _CONTENT_AT & mask):
        width = len(list(group))
        colour = content
        if is_rgb:  # stored with red lowest
            colour = rgb(content & 255, content >> 8 & 255, content >> 16)
        yield Run(x, width, None, blank(colour))
        x += width


def _colour(colour: Native) -> int | None:
    if colour.tag == lib.GHOSTTY_STYLE_COLOR_PALETTE:
        return int(colour.value.palette)
    if colour.tag == lib.GHOSTTY_STYLE_COLOR_RGB:
        value = colour.value.rgb
        return rgb(value.r, value.g, value.b)
    return None
