"""Makes bytes what xterm.js would read: valid UTF-8, C1 as escapes, its own widths."""

import codecs
import re
from typing import Final

from terminal_host.host.ghostty.widths import to_library

PARTIAL_LIMIT_BYTES: Final = 48
"""A sequence that may be one of the quirks is held until it is whole."""
LINK_LIMIT_BYTES: Final = 8192
"""So is a link, which browsers bound to 2,083 characters; a longer one is dropped."""
CONTROLS: Final = bytes({*range(0x20)} - {0x07, 0x18, 0x1A, 0x1B}) + b"\x7f"
"""What a string ignores."""
IGNORED: Final = b"[%b]*" % re.escape(CONTROLS)
LINK_START: Final = re.compile(rb"\x1b\]%b8%b;" % (IGNORED, IGNORED))

_C1 = re.compile("[\x80-\x9f]")
_PARTIAL = re.compile(rb"\x1b(?:\[(?:!|\?[\d;]{0,40}|\d{0,10})?|\](?:1(?:33?)?)?)?\Z")
_LATE_STRING = re.compile(rb"\x1b([%b]+)(?=\])" % re.escape(CONTROLS + b"\x07"))
_CUT_LINK = re.compile(
    rb"\x1b(?:[%b]+|\](?:%b|%b8%b(?:;[^\x07\x18\x1a\x1b]*\x1b?)?))\Z"
    % (re.escape(CONTROLS + b"\x07"), IGNORED, IGNORED, IGNORED)
)
_STRING_END = re.compile(rb"[\x07\x18\x1a\x1b]")


class Decoder:
    """Of one stream, cut anywhere."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("ignore")
        self._inside_character = False
        self._held = b""
        self.swallowing = False
        """Whether the rest of a string is dropped that was too long to keep."""

    @property
    def held(self) -> bytes:
        """Return what is unfinished here: a sequence, then a character."""
        return self._held + self._utf8.getstate()[0]

    def decode(self, data: bytes) -> bytes:
        """Return what of *data* the library may act on now."""
        if self._inside_character or not data.isascii():
            data = self._decode_text(data)
        if self._held:
            data, self._held = self._held + data, b""
        if self.swallowing:
            data = self._swallow(data)
        # Controls between ESC and what it begins act before it does.
        data = _LATE_STRING.sub(b"\\1\x1b", data)
        return self._hold_partial(data)

    def _hold_partial(self, data: bytes) -> bytes:
        """Return *data* but for what at its end may be the start of a quirk."""
        begin = data.rfind(b"\x1b", 0, -1)
        if begin >= 0 and _CUT_LINK.match(data, begin):
            data, self._held = data[:begin], data[begin:]
            if len(self._held) > LINK_LIMIT_BYTES:
                self._held, self.swallowing = b"", True
            return data
        partial = _PARTIAL.search(data, max(0, len(data) - PARTIAL_LIMIT_BYTES))
        if partial is not None:
            data, self._held = data[: partial.start()], data[partial.start() :]
        return data

    def _decode_text(self, data: bytes) -> bytes:
        # xterm.js drops what is no UTF-8, and obeys C1 controls inside UTF-8.
        text = self._utf8.decode(data)
        self._inside_character = bool(self._utf8.getstate()[0])
        if _C1.search(text):
            text = _C1.sub(lambda match: "\x1b" + chr(ord(match[0]) - 64), text)
        return to_library(text).encode()

    def _swallow(self, data: bytes) -> bytes:
        end = _STRING_END.search(data)
        if end is None:
            return b""
        self.swallowing = False
        return data[end.start() + (end[0] != b"\x1b") :]
