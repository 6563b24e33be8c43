"""Parts of a screen as JSON, and back; for both ends of the host protocol."""

from sidestage.terminals.screens import (
    ScreenMatch,
    ScreenMatches,
    StyledLine,
    StyledRun,
)
from terminal_host.fields import read_flag, read_object, read_optional_text, read_text
from terminal_host.host_messages import decode_number
from terminal_host.wire import Frame, FrameInvalid

_STYLES = ("bold", "italic", "underline", "inverse")


def encode_line(line: StyledLine) -> list[Frame]:
    """Return *line* as JSON."""
    return [
        {
            "text": run.text,
            "foreground": run.foreground,
            "background": run.background,
            "styles": [name for name in _STYLES if getattr(run, name)],
        }
        for run in line
    ]


def decode_line(value: object) -> StyledLine:
    """Return the line in *value*; raises `FrameInvalid`."""
    return tuple(_decode_run(read_object(run)) for run in _list(value))


def encode_matches(found: ScreenMatches) -> Frame:
    """Return *found* as JSON."""
    return {
        "matches": [
            {"lines_from_end": m.lines_from_end, "column": m.column, "line": m.line}
            for m in found.matches
        ],
        "more": found.more,
    }


def decode_matches(fields: Frame) -> ScreenMatches:
    """Return the matches in *fields*; raises `FrameInvalid`."""
    return ScreenMatches(
        matches=tuple(
            _decode_match(read_object(match)) for match in _list(fields.get("matches"))
        ),
        more=read_flag(fields, "more"),
    )


def _decode_run(fields: Frame) -> StyledRun:
    styles = _list(fields.get("styles"))
    return StyledRun(
        text=read_text(fields, "text"),
        foreground=read_optional_text(fields, "foreground"),
        background=read_optional_text(fields, "background"),
        **{name: name in styles for name in _STYLES},
    )


def _decode_match(fields: Frame) -> ScreenMatch:
    return ScreenMatch(
        lines_from_end=decode_number(fields, "lines_from_end"),
        column=decode_number(fields, "column"),
        line=read_text(fields, "line"),
    )


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise FrameInvalid("a list is missing")
    return value
