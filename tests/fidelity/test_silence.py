"""A repaint asks nothing, rings nothing and copies nothing, wherever it is cut."""

from typing import Final

import pytest

from tests.fidelity.measuring import SCREENS
from tests.fidelity.oracle import Oracle

LOUD: Final = {
    "device attributes": b"\x1b[c\x1b[0c\x1b[>c\x1b[=c\x1bZ",
    "status and cursor": b"\x1b[5n\x1b[6n\x1b[?6n\x1b[?996n",
    "modes": b"\x1b[?2026$p\x1b[4$p",
    "settings": b'\x1bP$qm\x1b\\\x1bP$q"p\x1b\\\x1bP+q544e\x1b\\',
    "colours": b"\x1b]4;1;?\x07\x1b]10;?\x1b\\\x1b]11;?\x07\x1b]12;?\x07",
    "clipboard": b"\x1b]52;c;aGVsbG8=\x07\x1b]52;c;?\x1b\\",
    "bell": b"one\x07two\x07",
    "window": b"\x1b[14t\x1b[18t\x1b[21t",
    "version": b"\x1b[>q\x1b[>0q\x05",
    "eight bits": "\x9bc\x9b6n\x9d52;c;aGk=\x07\x9d11;?\x9c".encode(),
    "controls within": b"\x1b[\x0dc\x1b[6\x08n\x1b]5\x002;c;aGk=\x07\x1b[5\x07n",
}
KNOWN_TO_XTERM: Final = set(LOUD) - {"version"}
"""xterm.js itself does not tell its version."""


@pytest.mark.parametrize("what", sorted(KNOWN_TO_XTERM))
def test_the_stream_itself_does_make_an_emulator_act(what: str, oracle: Oracle) -> None:
    assert oracle.effects(LOUD[what]) != []


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("what", LOUD)
def test_no_repaint_does_at_any_cut(what: str, screen: str, oracle: Oracle) -> None:
    stream = b"$ " + LOUD[what] + b"done"
    for cut in range(len(stream) + 1):
        kept = SCREENS[screen](80, 24)
        kept.feed(stream[:cut])
        assert oracle.effects(kept.replay()) == [], stream[:cut]
