"""Takes out of a terminal's output what must not reach the emulator it is meant for.

Two streams need it: a replay, which must make no emulator answer, beep or touch the
clipboard, and `sidestage attach`, which writes to the owner's own terminal.
"""

import re
from typing import Final

from terminal_host.vt_stream import Splitter, Token, TokenKind

KEPT_OSC: Final = frozenset({0, 2, 8, 10, 11, 12, 104, 110, 111, 112})
"""Titles, links, and the default colours set and reset; nothing that asks or runs."""

_LINK_SCHEMES = (b"http:", b"https:", b"mailto:")
_NUMBER = re.compile(rb"\d*")
_CSI = re.compile(rb"([<=>?]?)([0-9:;]*)([ -/]*)([@-~])", re.DOTALL)
_OSC_START = re.compile(rb"\x1b([\x00-\x17\x19\x1c-\x1f\x7f]*)\](.*)", re.DOTALL)
_ENQUIRY, _BELL = b"\x05", b"\x07"
_TITLE_STACK = (b"22", b"23")

# Prefix, intermediates and final byte of what makes a terminal answer (ctlseqs of
# xterm, kitty's keyboard protocol), or print (media copy). None stands for any prefix.
_ASKS: Final = frozenset(
    {
        (None, b"", b"c"),  # device attributes
        (b"", b"", b"n"),  # device status, cursor position
        (b"?", b"", b"n"),
        (None, b"$", b"p"),  # DECRQM
        (b">", b"", b"q"),  # XTVERSION
        (b"?", b"", b"u"),  # kitty keyboard flags
        (b"?", b"", b"m"),  # XTQMODKEYS
        (b"?", b"", b"S"),  # XTSMGRAPHICS
        (b"?", b"", b"i"),  # media copy
        (b"", b"", b"i"),
        (b"", b"", b"x"),  # DECREQTPARM
        (None, b"*", b"y"),  # DECRQCRA: reads the screen
        (None, b"$", b"w"),  # DECRQPSR
        (None, b"&", b"w"),
        (None, b"$", b"u"),  # DECRQTSR
        (None, b"&", b"u"),  # DECRQUPSS
        (None, b'"', b"v"),  # DECRQDE
        (None, b"+", b"x"),
        (None, b"'", b"|"),  # DECRQLP
        (None, b"#", b"|"),  # XTREPORTSGR
        (None, b"#", b"R"),  # XTREPORTCOLORS
    }
)


# Text, moves, modes and attributes: nearly all that programs print, passed in C. Not
# possessive: CPython 3.11 takes half a sequence for a match with nested ones (`ESC [`).
_HARMLESS: Final = re.compile(
    rb"(?:[^\x00-\x1f\x7f]+|[\x08-\x0d]"
    rb"|\x1b\[(?:[0-9;:]*[@-bd-hj-mo-su-wy-~]|\?[0-9;]*[hl]))+"
)


class StreamFilter:
    """Filters one stream of output, cut anywhere."""

    def __init__(self, *, keep_bell: bool) -> None:
        self._splitter = Splitter(bulk=_HARMLESS)
        self._muted = _ENQUIRY if keep_bell else _ENQUIRY + _BELL

    def feed(self, data: bytes) -> bytes:
        """Return what may pass of all that *data* completes."""
        return b"".join(
            token.data for token in self._splitter.feed(data) if self._passes(token)
        )

    def unfinished(self) -> bytes:
        """Return bytes that put an emulator where this stream stands.

        What comes next in the unfiltered stream continues them, without a part of a
        dropped sequence being shown as text.
        """
        held = self._splitter.held
        if self._splitter.skipping:
            return self._splitter.skipping + held
        osc = _OSC_START.match(held)
        if osc is None:
            # Controls within a sequence act before it is whole.
            return held.translate(None, self._muted)
        controls, body = osc[1].translate(None, self._muted), osc[2]
        if _may_pass_osc(body):
            return controls + b"\x1b]" + body
        return controls + b"\x1b]9999;" + (b"\x1b" if body.endswith(b"\x1b") else b"")

    def _passes(self, token: Token) -> bool:
        if token.kind is TokenKind.CONTROL:
            return token.data not in self._muted
        if token.kind is TokenKind.CSI:
            return not asks(token.body)
        if token.kind is TokenKind.OSC:
            return keeps_osc(token.body)
        if token.kind is TokenKind.ESCAPE:
            # DECID asks for device attributes; a lone ST ends nothing.
            return token.body not in (b"Z", b"\\")
        return token.kind is TokenKind.TEXT


def silence(data: bytes) -> bytes:
    """Return *data* without what asks, beeps or copies; an unfinished end stays one."""
    clean = StreamFilter(keep_bell=False)
    return clean.feed(data) + clean.unfinished()


def asks(body: bytes) -> bool:
    """Tell whether the CSI with that *body* makes a terminal answer, move or print."""
    match = _CSI.fullmatch(body)
    if match is None:
        return False  # private parameters in odd places: every terminal ignores it
    prefix, parameters, intermediates, final = match.groups()
    if final == b"t" and not intermediates and not prefix:
        # Reports of size and title, and window moves; the title stack is harmless.
        return parameters.partition(b";")[0] not in _TITLE_STACK
    return bool(_ASKS & {(prefix, intermediates, final), (None, intermediates, final)})


def keeps_osc(body: bytes) -> bool:
    """Tell whether an OSC with that content may pass."""
    number, _, text = body.partition(b";")
    if not number.isdigit() or int(number[:8]) not in KEPT_OSC:
        return False
    if int(number) in (10, 11, 12):
        return b"?" not in text
    if int(number) == 8:
        uri = text.partition(b";")[2]
        return not uri or uri.lower().startswith(_LINK_SCHEMES)
    return True


def _may_pass_osc(start: bytes) -> bool:
    """Tell whether an OSC that begins like that may still turn out one that passes."""
    number, separator, text = start.partition(b";")
    if not separator:
        return number.isdigit() or not number
    uri = text.partition(b";")[2].lower()
    if number == b"8" and any(scheme.startswith(uri) for scheme in _LINK_SCHEMES):
        return True
    return keeps_osc(start)
