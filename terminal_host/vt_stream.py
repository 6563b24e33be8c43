r"""Cuts a terminal's output into text and control sequences, wherever it is split.

The grammar is that of ECMA-48 as xterm.js reads it: C1 controls act as UTF-8 (`C2 9B`)
like in their 7-bit form (`ESC [`), and are given in the latter; C0 controls act inside
a sequence; CAN and SUB end one. Pure: bytes in, tokens out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

OSC_LIMIT_BYTES: Final = 8192
"""A longer OSC is dropped: titles and links (2,083 characters) are far shorter."""
SEQUENCE_LIMIT_BYTES: Final = 1024
"""A longer CSI or escape is dropped; xterm.js keeps at most 32 parameters."""


class TokenKind(StrEnum):
    """What a piece of output is."""

    TEXT = "TEXT"
    CONTROL = "CONTROL"
    """One C0 control, or DEL."""
    ESCAPE = "ESCAPE"
    CSI = "CSI"
    OSC = "OSC"
    STRING = "STRING"
    """The opening of a DCS, SOS, PM or APC string; its content is never given."""


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of output."""

    kind: TokenKind
    data: bytes
    """Its bytes, in 7-bit form and without controls from within."""
    body: bytes = b""
    """Of a CSI its parameters, intermediates and final byte; of an OSC its content."""


_C1 = re.compile(rb"\xc2([\x80-\x9f])")
_INSIDE = rb"[\x00-\x17\x19\x1c-\x1f\x7f]"
_CONTROLS = re.compile(_INSIDE)
_ENDED_EARLY = rb"(?=[\x18\x1a\x1b\x80-\xff])"
_TOKEN = re.compile(
    rb"(?P<text>[^\x00-\x1f\x7f]+)"
    rb"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])"
    rb"|\x1b(?P<in_csi>" + _INSIDE + rb"*)\[(?P<csi>[\x00-\x17\x19\x1c-\x3f\x7f]*[@-~])"
    rb"|\x1b(?P<in_osc>"
    + _INSIDE
    + rb"*)\](?P<osc>[^\x07\x18\x1a\x1b]*)(?:\x07|\x1b\\)"
    rb"|\x1b(?P<in_string>" + _INSIDE + rb"*)(?P<string>[PX^_])"
    rb"|\x1b(?P<escape>[\x00-\x17\x19\x1c-\x2f\x7f]*[ -/][\x00-\x17\x19\x1c-\x2f\x7f]*"
    rb"[0-~]|" + _INSIDE + rb"*[0-OQ-WYZ\\`-~])"
    rb"|(?P<broken>\x1b[\x00-\x17\x19\x1c-\x2f\x7f]*"
    + _ENDED_EARLY
    + rb"|\x1b"
    + _INSIDE
    + rb"*\[[\x00-\x17\x19\x1c-\x3f\x7f]*"
    + _ENDED_EARLY
    + rb"|\x1b"
    + _INSIDE
    + rb"*\][^\x07\x18\x1a\x1b]*(?:(?=[\x18\x1a])|(?=\x1b[^\\])))",
    re.DOTALL,
)
_STRING_ENDS = re.compile(rb"\x1b\\|[\x18\x1a]|(?=\x1b[^\\])", re.DOTALL)
_OSC_ENDS = re.compile(rb"\x07|" + _STRING_ENDS.pattern, re.DOTALL)
_SEQUENCE_ENDS = re.compile(rb"[@-~\x18\x1a]|(?=\x1b)")
_OSC_OPENING = re.compile(rb"\x1b" + _INSIDE + rb"*\]")
_ENDING = re.compile(rb"(?:\x1b\\|[^\x1b])\Z", re.DOTALL)
_UNFINISHED_END = re.compile(rb"\x1b\Z")
_OPENINGS = {
    _STRING_ENDS: b"\x1b^",  # a privacy message
    _OSC_ENDS: b"\x1b]9999;",
    _SEQUENCE_ENDS: b"\x1b[=",
}


class Splitter:
    """Turns output into tokens; what is unfinished waits for the next bytes."""

    def __init__(self, *, bulk: re.Pattern[bytes] | None = None) -> None:
        """Give what *bulk* matches as one piece of text: whole sequences only."""
        self._bulk = bulk
        self._held = b""
        self._skipping: re.Pattern[bytes] | None = None

    @property
    def held(self) -> bytes:
        """Return the sequence, or the half of a character, that is unfinished."""
        return self._held

    @property
    def skipping(self) -> bytes:
        """Return how the string or sequence begins that is being forgotten, or nothing.

        It is a beginning that every terminal ignores to the same end.
        """
        return b"" if self._skipping is None else _OPENINGS[self._skipping]

    def feed(self, data: bytes) -> Iterator[Token]:
        """Yield the tokens that *data* completes. Use the iterator up."""
        data, position = self._held + data, 0
        # The first half of what may be a C1 control waits for its second.
        half, data = (b"\xc2", data[:-1]) if data.endswith(b"\xc2") else (b"", data)
        data = _C1.sub(_seven_bit, data)
        self._held = b""
        while position < len(data):
            run = self._bulk and self._bulk.match(data, position)
            if self._skipping is not None:
                end = self._skip(data, position)
            elif run:
                yield Token(TokenKind.TEXT, run[0])
                end = run.end()
            else:
                match = _TOKEN.match(data, position)
                end = self._find_excess(data, position, match)
                if end is None and match is None:
                    break
                if end is None and match is not None:
                    yield from self._tokens(match)
                    end = match.end()
            if end is None:
                # Only a lone ESC may still become the end of the string.
                position = len(data) - data.endswith(b"\x1b")
                break
            position = end
        self._held = data[position:] + half

    def _skip(self, data: bytes, position: int) -> int | None:
        assert self._skipping is not None
        end = self._skipping.search(data, position)
        if end is None:
            return None
        self._skipping = None
        return end.end()

    def _tokens(self, match: re.Match[bytes]) -> Iterator[Token]:
        kind = match.lastgroup
        if kind == "text":
            yield Token(TokenKind.TEXT, match[0])
        elif kind == "control":
            yield Token(TokenKind.CONTROL, match[0])
        else:
            # Controls within act before the sequence does.
            for control in _CONTROLS.findall(_within(match)):
                yield Token(TokenKind.CONTROL, control)
            yield from self._sequence(match, kind or "")

    def _sequence(self, match: re.Match[bytes], kind: str) -> Iterator[Token]:
        if kind == "csi":
            body = _CONTROLS.sub(b"", match["csi"])
            yield Token(TokenKind.CSI, b"\x1b[" + body, body)
        elif kind == "osc":
            body = _CONTROLS.sub(b"", match["osc"])
            end = b"\x07" if match[0].endswith(b"\x07") else b"\x1b\\"
            yield Token(TokenKind.OSC, b"\x1b]" + body + end, body)
        elif kind == "escape":
            body = _CONTROLS.sub(b"", match["escape"])
            yield Token(TokenKind.ESCAPE, b"\x1b" + body, body)
        elif kind == "string":
            self._skipping = _STRING_ENDS
            yield Token(TokenKind.STRING, b"", match["string"])

    def _find_excess(
        self, data: bytes, position: int, match: re.Match[bytes] | None
    ) -> int | None:
        """Begin to skip a sequence that is too long; return from where, or None.

        One that came whole as well as one that is unfinished: a split changes nothing.
        """
        end = len(data) if match is None else match.end()
        if end - position <= SEQUENCE_LIMIT_BYTES:
            return None
        if match is not None and match.lastgroup in ("text", "control"):
            return None
        sequence = data[position:end]
        # What ends it, or may begin to, is no part of it.
        ending = _UNFINISHED_END if match is None else _ENDING
        found = None if match and match["broken"] else ending.search(sequence)
        limit, ends = _limit_of(sequence)
        if (found.start() if found else len(sequence)) <= limit:
            return None
        self._skipping = ends
        return position + limit + 1


def _limit_of(sequence: bytes) -> tuple[int, re.Pattern[bytes]]:
    """Return how long *sequence* may be before its end, and what ends a longer one."""
    opening = _OSC_OPENING.match(sequence)
    if opening and opening.end() - 1 <= SEQUENCE_LIMIT_BYTES:
        return OSC_LIMIT_BYTES, _OSC_ENDS
    return SEQUENCE_LIMIT_BYTES, _SEQUENCE_ENDS


def _seven_bit(match: re.Match[bytes]) -> bytes:
    return b"\x1b" + bytes([match[1][0] - 0x40])


def _within(match: re.Match[bytes]) -> bytes:
    """Return the part of a sequence in which C0 controls act (not an OSC's content)."""
    for name in ("in_csi", "in_osc", "in_string", "escape", "broken"):
        if match[name] is not None:
            inner = match[name] + (match["csi"] or b"")
            # A string that was ended early keeps its content to itself.
            return inner if not inner.startswith(b"\x1b]") else b""
    return b""
