"""Rows of cells as the lines of runs that dashboards show."""

from sidestage.terminals.screens import StyledLine, StyledRun
from terminal_host.host.ghostty.cells import Row, Run
from terminal_host.host.ghostty.pens import PLAIN, RGB, Pen
from terminal_host.host.styled_lines import join_runs

_BOLD, _ITALIC, _INVERSE, _INVISIBLE = "1", "3", "7", "8"


def styled_line(row: Row) -> StyledLine:
    """Return the runs of *row*, without the blank ones at its end."""
    line: list[StyledRun] = []
    at = 0
    for run in row.runs:
        if run.x > at:
            line.append(_styled(" " * (run.x - at), PLAIN))
        line.append(_styled(_text(run), run.pen))
        at = run.x + run.width
    return join_runs(line)


def _text(run: Run) -> str:
    if not run.text or _INVISIBLE in run.pen.flags:
        return " " * run.width
    return run.text


def _styled(text: str, pen: Pen) -> StyledRun:
    return StyledRun(
        text=text,
        foreground=_colour(pen.foreground),
        background=_colour(pen.background),
        bold=_BOLD in pen.flags,
        italic=_ITALIC in pen.flags,
        underline=pen.underline > 0,
        inverse=_INVERSE in pen.flags,
    )


def _colour(value: int | None) -> str | None:
    if value is None:
        return None
    return f"#{value & (RGB - 1):06x}" if value & RGB else str(value)
