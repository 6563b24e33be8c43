"""Telling typing from what an emulator says by itself."""

import pytest

from terminal_host.input_kind import InputKind, classify_input


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"\r",
        b"\x1b",
        b"\x1b[A",
        b"\x1bOP",
        b"\x1b[1;5C",
        b"\x1b[200~pasted\x1b[201~",
        b"\x1b[97;5u",
        b"\x1b[?1;2cx",
        bytes(range(256)),
    ],
)
def test_keys_pastes_and_any_bytes_are_typing(data: bytes) -> None:
    assert classify_input(data) is InputKind.TYPING


@pytest.mark.parametrize(
    "data",
    [
        b"\x1b[?1;2c",
        b"\x1b[>0;276;0c",
        b"\x1b[0n",
        b"\x1b[56;3R",
        b"\x1b[?5;7R",
        b"\x1b[?2004;2$y",
        b"\x1bP>|xterm.js(6.0.0)\x1b\\",
        b"\x1b]11;rgb:0000/0000/0000\x07",
        b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\\x1b[?1;2c",
    ],
)
def test_what_the_host_has_answered_is_a_double(data: bytes) -> None:
    assert classify_input(data) is InputKind.DOUBLE


@pytest.mark.parametrize(
    "data",
    [b"\x1b[I", b"\x1b[O", b"\x1b[1;2R", b"\x1b[4;600;800t", b"\x1bP1$r0m\x1b\\"],
)
def test_focus_and_other_answers_are_reports(data: bytes) -> None:
    """`CSI 1;2 R` may be a cursor report or Shift+F3: it passes, and claims nothing."""
    assert classify_input(data) is InputKind.REPORT


@pytest.mark.parametrize("data", [b"\x1b[<0;5;7M", b"\x1b[<35;1;1m", b"\x1b[M !!"])
def test_the_mouse_is_no_typing(data: bytes) -> None:
    assert classify_input(data) is InputKind.POINTER
