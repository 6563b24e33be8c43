"""A text as the bytes that put it into an agent's prompt box, and as it is recorded.

Measured with Claude Code 2.1.328: a bracketed paste of more than three lines or 800
characters is folded in the box, and stands in the transcript between `pasted_content`
tags. So a text that the screen can show goes in pieces below that, and is recorded as
it is; only what is too tall to be seen goes in one, folded piece.
"""

import re
from collections.abc import Iterator
from typing import Final
from unicodedata import east_asian_width

PIECE_LIMIT_CHARACTERS: Final = 400
"""Half of what the CLI folds."""
MARGIN_ROWS: Final = 5
"""The CLI gives its box half of the screen at most, less rules and footer."""
FRAME_COLS: Final = 4

_PASTE: Final = (b"\x1b[200~", b"\x1b[201~")
_WRAPPED: Final = re.compile(
    r"\s*<pasted_content id=\"[^\"]*\">\n(.*)\n</pasted_content id=\"[^\"]*\">\s*",
    re.DOTALL,
)


def encode_pastes(text: str, *, cols: int, rows: int) -> bytes:
    """Return what to write so that *text* stands in the box of a screen of that size.

    A backslash at the end would turn Enter into a line feed; a space behind it, which
    the CLI takes off again, keeps it.
    """
    typed = f"{text} " if text.endswith("\\") else text
    pieces = _pieces(typed) if _fits(typed, cols=cols, rows=rows) else (typed,)
    begin, end = _PASTE
    return b"".join(begin + piece.encode() + end for piece in pieces)


def unwrap_paste(text: str) -> str:
    """Return a recorded prompt without the tags of a folded paste."""
    wrapped = _WRAPPED.fullmatch(text)
    return text if wrapped is None else wrapped[1]


def _pieces(text: str) -> Iterator[str]:
    """Yield *text* in pieces with one line feed at most, at their beginning."""
    first, *others = text.split("\n")
    for line in (first, *(f"\n{other}" for other in others)):
        for start in range(0, len(line), PIECE_LIMIT_CHARACTERS):
            yield line[start : start + PIECE_LIMIT_CHARACTERS]


def _fits(text: str, *, cols: int, rows: int) -> bool:
    width = max(1, cols - FRAME_COLS)
    needed = sum(-(-max(1, _cells(line)) // width) for line in text.split("\n"))
    return needed <= rows // 2 - MARGIN_ROWS


def _cells(line: str) -> int:
    """Return about how many cells *line* takes; a tab becomes four spaces."""
    return sum(
        4 if char == "\t" else 2 if east_asian_width(char) in "WF" else 1
        for char in line
    )
