"""Text from outside, made safe to show: every preview, title and name passes here."""

import re
from typing import Final

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"

# C0, DEL and C1 (they drive terminals), line and paragraph separators (they break
# single lines), bidi controls (they make text lie about its order; Unicode TR 36) and
# lone surrogates (they cannot be encoded).
_CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff"
)
_MULTILINE = re.compile(f"[{_CONTROLS}]")
_SINGLE_LINE = re.compile(f"[{_CONTROLS}\t\n]")


def clean_text(text: str, *, multiline: bool) -> str:
    r"""Return *text* with every control, bidi and surrogate character replaced.

    Each becomes U+FFFD, so that its place stays visible. `\r\n` and `\r` count as a
    line's end first. Line feeds and tabs stay if *multiline*; otherwise each run of
    white space becomes one space.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if multiline:
        return _MULTILINE.sub(REPLACEMENT, text)
    return _SINGLE_LINE.sub(REPLACEMENT, re.sub(r"[ \t\n]+", " ", text)).strip()


def clean_path(path: str) -> str:
    """Return *path* with every character replaced that `clean_text` would replace.

    Its spaces stay as they are: a folder may have two in a row.
    """
    return _SINGLE_LINE.sub(REPLACEMENT, path)


def shorten(text: str, limit_characters: int) -> str:
    """Return *text*, cut with an ellipsis to *limit_characters* if it is longer."""
    if len(text) <= limit_characters:
        return text
    return text[: limit_characters - 1].rstrip() + ELLIPSIS
