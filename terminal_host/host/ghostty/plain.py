"""Rows of cells as plain text."""

from collections.abc import Sequence

from terminal_host.host.ghostty.cells import Row


def plain_lines(rows: Sequence[Row]) -> list[str]:
    """Return the text of *rows*, wrapped ones joined, without blanks at the ends."""
    lines: list[str] = []
    for row in rows:
        text = _plain_row(row)
        if row.wrapped and lines:
            lines[-1] += text
        else:
            lines.append(text)
    stripped = [line.rstrip() for line in lines]
    while stripped and not stripped[-1]:
        stripped.pop()
    return stripped


def _plain_row(row: Row) -> str:
    pieces: list[str] = []
    at = 0
    for run in row.runs:
        pieces.append(" " * (run.x - at))
        pieces.append(" " * run.width if run.text is None else run.text)
        at = run.x + run.width
    return "".join(pieces)
