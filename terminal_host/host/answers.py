"""The answers to what programs ask their terminal, given once, by the host.

Programs wait for them at their start, client or no client. They are xterm.js's answers,
because that is the emulator the bytes are meant for; a client drops its own.
"""

import re
from collections.abc import Callable
from typing import Final

from terminal_host.host.notables import Notable, NotableKind
from terminal_host.screen import Engine

PRIMARY_ATTRIBUTES: Final = b"\x1b[?1;2c"
SECONDARY_ATTRIBUTES: Final = b"\x1b[>0;276;0c"
VERSION: Final = b"\x1bP>|sidestage(1)\x1b\\"
COLOURS: Final = {
    b"10": b"rgb:ffff/ffff/ffff",
    b"11": b"rgb:0000/0000/0000",
    b"12": b"rgb:ffff/ffff/ffff",
}
"""Foreground, background, cursor: dark, until somebody sets a theme."""

_ANSI_MODES = frozenset({4, 20})
_PRIVATE_MODES = frozenset(
    {1, 3, 6, 7, 9, 12, 25, 45, 47, 66, 1000, 1002, 1003, 1004, 1006, 1016}
    | {1047, 1048, 1049, 2004, 2026}
)
"""The modes that xterm.js has; the engine claims others, which a browser would lack."""
_MODE_QUERY = re.compile(rb"(\??)(\d+)\$p")
_SET, _RESET, _UNKNOWN = 1, 2, 0


def answer(notable: Notable, engine: Engine) -> bytes:
    """Return what a terminal in *engine*'s state answers, if it does."""
    if notable.kind is NotableKind.COLOUR_QUERY:
        colour = COLOURS[notable.text]
        return b"\x1b]" + notable.text + b";" + colour + notable.terminator
    if notable.kind is not NotableKind.CSI_QUERY:
        return b""
    known = _ANSWERS.get(notable.text)
    if known is not None:
        return known(engine)
    mode = _MODE_QUERY.fullmatch(notable.text)
    return b"" if mode is None else _report_mode(mode, engine)


def _cursor(engine: Engine, prefix: bytes) -> bytes:
    column, row = engine.cursor()
    return b"\x1b[%b%d;%dR" % (prefix, row - engine.origin_row() + 1, column + 1)


def _report_mode(match: re.Match[bytes], engine: Engine) -> bytes:
    private, number = bool(match[1]), int(match[2][:8])
    known = number in (_PRIVATE_MODES if private else _ANSI_MODES)
    state = _UNKNOWN
    if known:
        state = _SET if engine.mode(number, private=private) else _RESET
    return b"\x1b[%b%d;%d$y" % (match[1], number, state)


_ANSWERS: Final[dict[bytes, Callable[[Engine], bytes]]] = {
    b"c": lambda _: PRIMARY_ATTRIBUTES,
    b"0c": lambda _: PRIMARY_ATTRIBUTES,
    b">c": lambda _: SECONDARY_ATTRIBUTES,
    b">0c": lambda _: SECONDARY_ATTRIBUTES,
    b"5n": lambda _: b"\x1b[0n",
    b"6n": lambda engine: _cursor(engine, b""),
    b"?6n": lambda engine: _cursor(engine, b"?"),
    b">q": lambda _: VERSION,
    b">0q": lambda _: VERSION,
}
