"""Screens and histories behind a resize, against xterm.js's own reflow."""

import random
from typing import Final

import pytest

from terminal_host.screen import make_engine
from tests.fidelity.cases import Case, Resize
from tests.fidelity.measuring import Figures, measure
from tests.fidelity.oracle import Oracle

BAR_PERCENT: Final = 99.0
SCREENS_OF_A_KIND: Final = 60
NOTHING: Final = b"\0"
"""Behind each resize, so that a cut behind it is also one behind the resize."""

EQUAL_KINDS: Final = {
    "short": 5,
    "rows only": 5,
    "wrapped": 5,
    "wide": 5,
    "alternate": 1,
}
"""What must reach the bar, and how many resizes follow each other in a stream."""
FLOORS: Final = {
    # xterm.js leaves the line alone on which the cursor is, if that is wrapped.
    "unfinished": (1, 10.0),
    # It keeps the columns that an alternate screen loses, and shows them again.
    "alternate": (5, 35.0),
}
"""What is known to differ until the program repaints, as all do when resized: resizes
that follow each other, and the percentage of screens that are equal."""


def test_screens_and_histories_reflow_as_those_of_xterm(oracle: Oracle) -> None:
    counted = [_count(kind, count, oracle) for kind, count in EQUAL_KINDS.items()]
    passed = sum(figures.replays_passed for figures in counted)
    shown = sum(figures.replays for figures in counted)
    assert shown == len(EQUAL_KINDS) * SCREENS_OF_A_KIND
    assert 100 * passed / shown >= BAR_PERCENT, [f.differences for f in counted]


@pytest.mark.parametrize("kind", FLOORS)
def test_what_is_known_to_reflow_otherwise_does_not_become_more(
    kind: str, oracle: Oracle
) -> None:
    count, floor = FLOORS[kind]
    figures = _count(kind, count, oracle)
    share = 100 * figures.replays_passed / figures.replays
    assert share >= floor, figures.differences


def _count(kind: str, resizes: int, oracle: Oracle) -> Figures:
    """Return the figures of as many streams as make the screens of a kind."""
    total = Figures()
    for number in range(SCREENS_OF_A_KIND // resizes):
        case, cuts = _make_case(kind, resizes, number)
        found = measure(case, oracle, screens={"engine": make_engine}, cuts=cuts)
        total.replays += found["engine"].replays
        total.replays_passed += found["engine"].replays_passed
        total.differences += found["engine"].differences
    return total


def _make_case(kind: str, count: int, number: int) -> tuple[Case, list[int]]:
    """Return a stream with *count* resizes, and the offsets right behind these."""
    rng = random.Random(f"resizes {kind} {number}")
    cols, rows = rng.randint(20, 120), rng.randint(6, 40)
    data, resizes, cuts = b"", [], []
    width = cols
    for _ in range(count):
        data += _text(kind, rng)
        if kind != "rows only":
            width = rng.randint(10, 140)
        resizes.append(Resize(len(data), width, rng.randint(3, 50)))
        data += NOTHING
        cuts.append(len(data))
    return Case(f"{kind} {number}", cols, rows, data, tuple(resizes)), cuts


def _text(kind: str, rng: random.Random) -> bytes:
    text = "\r\n".join(_line(kind, rng) for _ in range(rng.randint(1, 30)))
    if kind == "alternate":
        text = f"\x1b[?1049h\x1b[H{text}\x1b[{rng.randint(1, 6)};1Hx"
    elif kind != "unfinished":
        text += "\r\n$ "
    return text.encode()


def _line(kind: str, rng: random.Random) -> str:
    if kind in ("wrapped", "unfinished"):
        return "word " * rng.randint(0, 60)
    if kind == "wide":
        return rng.choice(("漢字 ", "表a", "한글")) * rng.randint(0, 30)
    return f"line {rng.randint(0, 999)} " + "x" * rng.randint(0, 8)
