"""Finds in the output what the host acts on itself: titles, bells and questions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HELD_LIMIT_BYTES: Final = 4096
"""An unfinished sequence is looked at again with the next bytes, up to this length."""


class NotableKind(StrEnum):
    """What was found."""

    TITLE = "TITLE"
    BELL = "BELL"
    CSI_QUERY = "CSI_QUERY"
    COLOUR_QUERY = "COLOUR_QUERY"


@dataclass(frozen=True, slots=True)
class Notable:
    """One thing found, and the place in the fed bytes behind it."""

    kind: NotableKind
    end: int
    text: bytes
    """The title; the CSI's parameters and final; the number of the colour asked for."""
    terminator: bytes = b""


# One search in C over the whole piece: a Python step only for what is found.
_NOTABLE = re.compile(
    rb"\x1b\](?P<osc>[^\x07\x18\x1a\x1b]*)(?P<end>\x07|\x1b\\)"
    rb"|(?P<bell>\x07)"
    rb"|\x1b\[(?P<query>[?>=]?+[0-9;]*+(?:[cnq]|\$p))"
)
# Most pieces hold neither a bell nor an OSC: then a fixed beginning is searched for.
_QUERY = re.compile(rb"\x1b\[(?P<query>[?>=]?+[0-9;]*+(?:[cnq]|\$p))")
# And most of these hold no sequences but colours, which is seen four times as fast.
_NOT_COLOUR = re.compile(rb"\x1b(?:\[[0-9;:]*+[^m]|[^\[])")
_UNFINISHED = re.compile(rb"\x1b(?:\[[?>=]?[0-9;]*\$?|\][^\x07\x18\x1a\x1b]*\x1b?)?\Z")
_STRING_END = re.compile(rb"[\x07\x18\x1a]|\x1b")
_TITLE = re.compile(rb"[02];(.*)", re.DOTALL)
_COLOUR = re.compile(rb"(1[0-2]);\?")


class NotableScanner:
    """Scans one stream, cut anywhere."""

    def __init__(self) -> None:
        self._held = b""
        self._in_string = False

    def awaits_only(self, unfinished: bytes) -> bool:
        """Tell whether nothing has begun before the next bytes but *unfinished*."""
        return not self._in_string and self._held == unfinished

    def await_rest_of(self, unfinished: bytes) -> None:
        """Go on behind bytes that were found to hold nothing, but for their end."""
        self._held = unfinished

    def scan(self, data: bytes) -> list[Notable]:
        """Return what *data* completes, in order."""
        text, offset = self._held + data, len(self._held)
        last = self._leave_string(text)
        found: list[Notable] = []
        for match in _find(text, last):
            last = match.end()
            notable = _read(match, last - offset)
            if notable is not None:
                found.append(notable)
        self._hold(text, last)
        return found

    def _leave_string(self, text: bytes) -> int:
        """Return where the rest of an over-long OSC ends: its BEL is no bell."""
        if not self._in_string:
            return 0
        end = _STRING_END.search(text)
        if end is None:
            return len(text)
        self._in_string = False
        return end.end() if end[0] != b"\x1b" else end.start()

    def _hold(self, text: bytes, position: int) -> None:
        self._held = b""
        match = None if self._in_string else _find_unfinished(text, position)
        if match is None:
            return
        if len(match[0]) <= HELD_LIMIT_BYTES:
            self._held = match[0]
        else:
            self._in_string = match[0].startswith(b"\x1b]")


def _find(text: bytes, position: int) -> Iterable[re.Match[bytes]]:
    if b"\x07" in text or b"\x1b]" in text:
        return _NOTABLE.finditer(text, position)
    if _NOT_COLOUR.search(text, position) is None:
        return ()
    return _QUERY.finditer(text, position)


def _find_unfinished(text: bytes, position: int) -> re.Match[bytes] | None:
    last = text.rfind(b"\x1b", position)
    if last < 0:
        return None
    if last == len(text) - 1:
        # It may begin the end of the string before it.
        before = text.rfind(b"\x1b", position, last)
        if before >= 0 and (match := _UNFINISHED.match(text, before)):
            return match
    return _UNFINISHED.match(text, last)


def _read(match: re.Match[bytes], end: int) -> Notable | None:
    if match.lastgroup == "bell":
        return Notable(NotableKind.BELL, end, b"")
    if match.lastgroup == "query":
        return Notable(NotableKind.CSI_QUERY, end, match["query"])
    title = _TITLE.fullmatch(match["osc"])
    if title is not None:
        return Notable(NotableKind.TITLE, end, title[1])
    colour = _COLOUR.fullmatch(match["osc"])
    if colour is not None:
        return Notable(NotableKind.COLOUR_QUERY, end, colour[1], match["end"])
    return None
