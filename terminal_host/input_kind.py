"""What a client's input is: somebody's typing, or what its emulator says by itself."""

import re
from enum import StrEnum


class InputKind(StrEnum):
    """Why bytes came from a client."""

    TYPING = "TYPING"
    """Keys, pastes, and anything else: every byte is data."""
    POINTER = "POINTER"
    """Mouse reports."""
    REPORT = "REPORT"
    """Focus reports, and answers to what the host leaves to the emulator."""
    DOUBLE = "DOUBLE"
    """Answers that the host has given already; the program must not get them twice."""


_POINTER = re.compile(rb"(?:\x1b\[<[0-9;]+[Mm]|\x1b\[M[\x20-\xff]{3})+", re.DOTALL)
# A cursor report of the first row looks like a function key with a modifier (F3), so it
# counts as a report, but is let through.
_DOUBLE = re.compile(
    rb"(?:\x1b\[[?>][0-9;]*c"  # device attributes
    rb"|\x1b\[0n|\x1b\[(?!1;)\??[0-9]+;[0-9]+R"  # status, cursor
    rb"|\x1b\[\??[0-9]+;[0-4]\$y"  # DECRPM
    rb"|\x1bP>\|[^\x1b\x07]*\x1b\\"  # XTVERSION
    rb"|\x1b\]1[0-2];[^\x1b\x07]*(?:\x07|\x1b\\)"  # colours
    rb")+"
)
_REPORT = re.compile(
    rb"(?:\x1b\[[IO]"  # focus
    rb"|\x1b\[\??[0-9;]*[Rncyt]|\x1b\[\??[0-9;]*\$y|\x1b\[\?[0-9]*u"
    rb"|\x1b[P\]_][^\x1b\x07]*(?:\x07|\x1b\\)"
    rb")+"
)


def classify_input(data: bytes) -> InputKind:
    """Tell what *data*, one message of a client, is as a whole."""
    if not data.startswith(b"\x1b"):
        return InputKind.TYPING
    if _DOUBLE.fullmatch(data):
        return InputKind.DOUBLE
    if _REPORT.fullmatch(data):
        return InputKind.REPORT
    if _POINTER.fullmatch(data):
        return InputKind.POINTER
    return InputKind.TYPING
