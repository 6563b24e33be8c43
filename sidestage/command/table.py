"""Tables that fit the screen, in which what a person must copy is never cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from sidestage.text import clean_text

GAP_CELLS: Final = 2
LEAST_CELLS: Final = 12
"""Narrower, a name or folder tells nothing; then lines are longer than the screen."""
CUT: Final = "…"


class Shrink(StrEnum):
    """Where a column loses cells when the screen is too narrow."""

    NEVER = "never"
    END = "end"
    START = "start"
    """Folders: their end says which one it is."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's title, and how it shrinks."""

    title: str
    shrink: Shrink = Shrink.NEVER


def make_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[Text]], *, width: int
) -> list[Text]:
    """Return the title's line and one a row, *width* cells wide where that can be."""
    titles = [Text(column.title, style="bold") for column in columns]
    wanted = [
        max(cell_len(cell.plain) for cell in cells)
        for cells in zip(titles, *rows, strict=True)
    ]
    widths = _fit(columns, wanted, width=width)
    return [_line(columns, widths, cells) for cells in (titles, *rows)]


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> None:
    """Print a table as wide as the screen; 80 columns where there is none."""
    console = Console(highlight=False)
    for line in make_lines(columns, rows, width=console.width):
        # Softly wrapped: a screen too narrow for the table cuts nothing off.
        console.print(line, soft_wrap=True)


def cell(text: str, style: str = "") -> Text:
    """Return a cell with a text that somebody else wrote."""
    # The server cleaned it; this terminal does not take anybody's word for that.
    return Text(clean_text(text, multiline=False), style=style)


def shrink_end(text: str, cells: int) -> str:
    """Return *text* in at most *cells*; an ellipsis stands for its end."""
    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, cells - 1).rstrip() + CUT


def shrink_start(folder: str, cells: int) -> str:
    """Return *folder* in at most *cells*; an ellipsis stands for its first parts."""
    if cell_len(folder) <= cells:
        return folder
    for index in range(1, len(folder)):
        if folder[index] == "/" and cell_len(folder[index:]) < cells:
            return CUT + folder[index:]
    kept = folder
    while cell_len(kept) >= cells:
        kept = kept[1:]
    return CUT + kept


_SHRINKERS: Final = {Shrink.END: shrink_end, Shrink.START: shrink_start}


def _fit(columns: Sequence[Column], wanted: Sequence[int], *, width: int) -> list[int]:
    """Return the widths: cells are taken from the widest shrinking column in turn."""
    widths = list(wanted)
    over = sum(widths) + GAP_CELLS * (len(widths) - 1) - width
    while over > 0:
        shrinking = [
            (cells, index)
            for index, cells in enumerate(widths)
            if columns[index].shrink is not Shrink.NEVER and cells > LEAST_CELLS
        ]
        if not shrinking:
            break
        widths[max(shrinking)[1]] -= 1
        over -= 1
    return widths


def _line(
    columns: Sequence[Column], widths: Sequence[int], cells: Sequence[Text]
) -> Text:
    line = Text()
    for column, cells_wide, content in zip(columns, widths, cells, strict=True):
        shrink = _SHRINKERS.get(column.shrink)
        if shrink is not None:
            text = shrink(content.plain, cells_wide)
            content = Text(text, style=content.style)
        line.append_text(content)
        line.append(" " * (cells_wide - cell_len(content.plain) + GAP_CELLS))
    line.rstrip()
    return line
