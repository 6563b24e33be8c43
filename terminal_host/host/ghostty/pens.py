"""Text attributes: as values, as the SGR sequences that set them, and back."""

import re
from dataclasses import dataclass
from typing import Final

RGB: Final = 1 << 24
"""Marks a colour as red, green, blue; below it is an index of the palette."""

FLAGS: Final = (
    ("bold", "1"),
    ("faint", "2"),
    ("italic", "3"),
    ("blink", "5"),
    ("inverse", "7"),
    ("invisible", "8"),
    ("strikethrough", "9"),
    ("overline", "53"),
)
"""The library's name of each flag, and its SGR parameter."""

_FOREGROUND, _BACKGROUND, _UNDERLINE = 30, 40, 50
_SGR = re.compile(r"\x1b\[([\d;:]*)m")
_EXTENDED = {38: _FOREGROUND, 48: _BACKGROUND, 58: _UNDERLINE}
# First parameter, the pen's field, what is to be added for the palette's index.
_RANGES = (
    (range(30, 38), _FOREGROUND, -30),
    (range(40, 48), _BACKGROUND, -40),
    (range(90, 98), _FOREGROUND, -82),
    (range(100, 108), _BACKGROUND, -92),
)


@dataclass(frozen=True, slots=True)
class Pen:
    """How text is drawn. Colours are None for the default."""

    flags: tuple[str, ...] = ()
    """SGR parameters, in the order of `FLAGS`."""
    foreground: int | None = None
    background: int | None = None
    underline: int = 0
    """0 none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed."""
    underline_colour: int | None = None


PLAIN: Final = Pen()


def blank(background: int) -> Pen:
    """Return the pen whose erased cells have that background."""
    return Pen(background=background)


def rgb(red: int, green: int, blue: int) -> int:
    """Return a colour that is no index of the palette."""
    return RGB | red << 16 | green << 8 | blue


def encode_pen(pen: Pen) -> str:
    """Return the sequence that sets *pen*, whatever was set before."""
    parameters = ["0", *pen.flags]
    if pen.underline:
        parameters.append("4" if pen.underline == 1 else f"4:{pen.underline}")
    for base, colour in (
        (_FOREGROUND, pen.foreground),
        (_BACKGROUND, pen.background),
        (_UNDERLINE, pen.underline_colour),
    ):
        if colour is not None:
            parameters.append(_encode_colour(base, colour))
    return "\x1b[" + ";".join(parameters) + "m"


def parse_pen(text: str) -> Pen:
    """Return the pen that the SGR sequences in *text* set, one attribute in each."""
    flags: list[str] = []
    colours: dict[int, int] = {}
    underline = 0
    for parameters in _SGR.findall(text):
        if parameters in ("", "0"):
            flags, colours, underline = [], {}, 0
            continue
        values = [int(value or 0) for value in re.split("[;:]", parameters)]
        if values[0] in _EXTENDED and len(values) > 2:
            colours[_EXTENDED[values[0]]] = _extended(values)
        elif values[0] == 4:
            underline = values[1] if len(values) > 1 else 1
        elif values[0] == 21:
            underline = 2
        elif not _take_indexed(values[0], colours):
            flags.append(parameters)
    return Pen(
        tuple(number for _, number in FLAGS if number in flags),
        colours.get(_FOREGROUND),
        colours.get(_BACKGROUND),
        underline,
        colours.get(_UNDERLINE),
    )


def _take_indexed(value: int, colours: dict[int, int]) -> bool:
    for values, field, shift in _RANGES:
        if value in values:
            colours[field] = value + shift
            return True
    return False


def _extended(values: list[int]) -> int:
    return values[2] if values[1] == 5 else rgb(*values[-3:])


def _encode_colour(base: int, colour: int) -> str:
    red, green, blue = colour >> 16 & 255, colour >> 8 & 255, colour & 255
    if base == _UNDERLINE:
        return f"58:5:{colour}" if colour < 256 else f"58:2::{red}:{green}:{blue}"
    if colour < 8:
        return str(base + colour)
    if colour < 16:
        return str(base + 52 + colour)
    if colour < 256:
        return f"{base + 8};5;{colour}"
    return f"{base + 8};2;{red};{green};{blue}"
