"""Answers to questions about a screen, each small enough for one frame. Pure."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Final

from sidestage.terminals.screens import ScreenMatch, ScreenMatches, StyledLine

ANSWER_LIMIT_BYTES: Final = 512 * 1024
"""Half of a frame: 1,000 lines of 80 columns in CJK; older lines are left out."""
MATCHED_LINE_LIMIT_CHARACTERS: Final = 500
"""As wide as a terminal can be; lines that were wrapped can be far longer."""


def bound_text(text: str) -> str:
    """Return *text* without the oldest lines that are too much for an answer."""
    lines = text.split("\n")
    return "\n".join(lines[_first_fitting([json.dumps(line) for line in lines]) :])


def bound_lines(lines: Sequence[StyledLine]) -> tuple[StyledLine, ...]:
    """Return *lines* without the oldest that are too much for an answer."""
    encoded = [json.dumps([asdict(run) for run in line]) for line in lines]
    return tuple(lines[_first_fitting(encoded) :])


def find_matches(text: str, wanted: str, limit: int) -> ScreenMatches:
    """Return where *wanted* stands in *text*, upper and lower case alike."""
    found = list(islice(_matches(text, wanted), limit + 1))
    return ScreenMatches(matches=tuple(found[:limit]), more=len(found) > limit)


def _matches(text: str, wanted: str) -> Iterator[ScreenMatch]:
    pattern = re.compile(re.escape(wanted), re.IGNORECASE)
    for number, line in enumerate(reversed(text.split("\n")), 1):
        for match in pattern.finditer(line):
            start = max(0, match.end() - MATCHED_LINE_LIMIT_CHARACTERS)
            yield ScreenMatch(
                lines_from_end=number,
                column=match.start() - min(start, match.start()),
                line=line[start : start + MATCHED_LINE_LIMIT_CHARACTERS],
            )


def _first_fitting(encoded: Sequence[str]) -> int:
    left = ANSWER_LIMIT_BYTES
    for number in range(len(encoded), 0, -1):
        left -= len(encoded[number - 1]) + 2
        if left < 0:
            return number
    return 0
