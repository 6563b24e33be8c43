"""Writes pyte's cells as VT text."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyte import graphics

from sidestage.terminals.screens import StyledLine, StyledRun
from terminal_host.host.styled_lines import join_runs

_NAMES: Final = tuple(graphics.FG_ANSI[30 + n] for n in range(8))
_BRIGHT: Final = tuple(graphics.FG_AIXTERM[90 + n] for n in range(8))
_FLAGS: Final = (
    ("bold", 1),
    ("italics", 3),
    ("underscore", 4),
    ("blink", 5),
    ("reverse", 7),
    ("strikethrough", 9),
)
_RGB_DIGITS: Final = 6


def draw_rows(rows: Iterable[Mapping[int, Any]], cols: int) -> str:
    """Return the text of *rows*, one line each, without the blanks at their ends."""
    return "\r\n".join(_draw_row(row, cols) for row in rows)


def encode_style(cell: Any) -> str:  # noqa: ANN401  # pyte has no types
    """Return the SGR sequence of a cell or cursor of pyte's."""
    parameters = ["0", *(str(n) for name, n in _FLAGS if getattr(cell, name))]
    parameters += _colour(cell.fg, 30) + _colour(cell.bg, 40)
    return "\x1b[" + ";".join(parameters) + "m"


def style_row(row: Mapping[int, Any], cols: int) -> StyledLine:
    """Return the runs of *row*, without the blank ones at its end."""
    return join_runs(_style(row[x]) for x in range(cols))


def _style(cell: Any) -> StyledRun:  # noqa: ANN401  # as above
    return StyledRun(
        text=cell.data,
        foreground=_styled_colour(cell.fg),
        background=_styled_colour(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        inverse=cell.reverse,
    )


def _styled_colour(name: str) -> str | None:
    if name in _NAMES:
        return str(_NAMES.index(name))
    if name in _BRIGHT:
        return str(8 + _BRIGHT.index(name))
    return f"#{name}" if len(name) == _RGB_DIGITS else None


def _draw_row(row: Mapping[int, Any], cols: int) -> str:
    last = max((x for x in row if x < cols and _is_drawn(row[x])), default=-1)
    pieces, style = [], ""
    for x in range(last + 1):
        cell = row[x]
        now = encode_style(cell)
        if now != style:
            pieces.append(now)
            style = now
        pieces.append(cell.data)  # nothing in the right half of a wide character
    return "".join(pieces) + ("\x1b[0m" if style else "")


def _is_drawn(cell: Any) -> bool:  # noqa: ANN401  # as above
    return bool(cell.data != " " or cell.bg != "default" or cell.reverse)


def _colour(name: str, base: int) -> list[str]:
    if name == "default":
        return []
    if name in _NAMES:
        return [str(base + _NAMES.index(name))]
    if name in _BRIGHT:
        return [str(base + 60 + _BRIGHT.index(name))]
    if len(name) != _RGB_DIGITS:
        return []
    red, green, blue = bytes.fromhex(name)
    return [f"{base + 8};2;{red};{green};{blue}"]
