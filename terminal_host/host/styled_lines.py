"""Cells as the lines of runs that dashboards show, whatever engine they come from."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from sidestage.terminals.screens import StyledLine, StyledRun


def join_runs(runs: Iterable[StyledRun]) -> StyledLine:
    """Return *runs* with like neighbours joined, and without blanks at the end."""
    line = [
        replace(style, text="".join(run.text for run in group))
        for style, group in groupby(runs, lambda run: replace(run, text=""))
    ]
    while line and line[-1].blank:
        line.pop()
    if line and replace(line[-1], text="").blank:
        line[-1] = replace(line[-1], text=line[-1].text.rstrip())
    return tuple(line)
