"""Compares stream → engine → repaint → xterm.js with stream → xterm.js.

Of each cut of a stream four things must hold, each of which is one check:

* replay: every cell of screen and history, buffer and cursor are those of xterm.js;
* hidden: so is what no cell shows (modes, pen, saved cursor, tabs, charset, title, …);
* continue: all of that is still so some bytes later;
* rest: and at the end of the stream, after a probe that brings hidden state to light.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from terminal_host.host.fallback.engine import PyteEngine
from terminal_host.screen import SCROLLBACK_LINES, Screen, make_engine, make_screen
from tests.fidelity.cases import Case, choose_cuts
from tests.fidelity.oracle import Oracle, encode

Maker = Callable[[int, int], Screen]
Step = tuple[str, bytes] | tuple[str, int, int]

CUTS: Final = 20
CONTINUED_LIMIT_BYTES: Final = 400
PIECES_BYTES: Final = (1 << 16, 4096, 997)
"""Engines are fed in pieces of one of these sizes."""
PROBE: Final = (
    "A\x1b[1;1HB\tC\tD\x1b8E\n\n\x1b[3;3H\x1bMF\x0eqq\x0fqq\x1b[2bG"
    "\x1b[99;99HH\n\n漢\x1b[?1049lI\x1b8J"
).encode()
"""Tabs, saved cursor, region, charset, repetition, wrap, and the main buffer."""

SCREENS: Final[Mapping[str, Maker]] = {
    "tail": make_screen,
    "engine": make_engine,
    "fallback": lambda cols, rows: PyteEngine(cols, rows, SCROLLBACK_LINES),
}
"""What terminals use; its engine alone; what stands in where that cannot be loaded."""


@dataclass(slots=True)
class Figures:
    """How one screen did in one case."""

    checks: int = 0
    passed: int = 0
    replays: int = 0
    replays_passed: int = 0
    differences: Counter[str] = field(default_factory=Counter)
    """How often each field differed, by check: `hidden: title`."""
    effects: list[str] = field(default_factory=list)
    """What repaints made an emulator do: answer, beep, copy."""

    @property
    def percent(self) -> float:
        """Share of the checks that passed, rounded down to hundredths."""
        return 10_000 * self.passed // self.checks / 100

    def add(self, result: dict[str, Any]) -> None:
        """Count the checks of one cut."""
        for check, differences in result["checks"].items():
            self.checks += 1
            self.passed += not differences
            self.differences.update(f"{check}: {name}" for name in differences)
        self.replays += 1
        self.replays_passed += not result["checks"]["replay"]
        self.effects += result["effects"]


def measure(
    case: Case,
    oracle: Oracle,
    *,
    screens: Mapping[str, Maker] = SCREENS,
    cuts: list[int] | None = None,
) -> dict[str, Figures]:
    """Return the figures of each of *screens* on *case*, the same on every run."""
    rng = random.Random(f"sidestage {case.name}")
    if cuts is None:
        cuts = choose_cuts(case, CUTS, rng)
    stops = [*cuts[1:], len(case.data)]
    spans = [
        (cut, min(stop, cut + rng.randint(1, CONTINUED_LIMIT_BYTES)))
        for cut, stop in zip(cuts, stops, strict=True)
    ]
    steps, index_of = _split(case, {offset for span in spans for offset in span})
    wanted = [index_of[cut] for cut, _ in spans]
    replays = {
        name: _replay_at(make(case.cols, case.rows), steps, wanted, rng)
        for name, make in screens.items()
    }
    request_cuts = [
        {
            "from": index_of[cut],
            "to": index_of[stop],
            "replays": {name: encode(found[at]) for name, found in replays.items()},
        }
        for at, (cut, stop) in enumerate(spans)
    ]
    answer = oracle.ask(
        {
            "kind": "case",
            "cols": case.cols,
            "rows": case.rows,
            "scrollback": SCROLLBACK_LINES,
            "steps": [_encode_step(step) for step in steps],
            "cuts": request_cuts,
            "probe": encode(PROBE),
        }
    )
    figures = {name: Figures() for name in screens}
    for results in answer:
        for name, result in results.items():
            figures[name].add(result)
    return figures


def _split(case: Case, offsets: set[int]) -> tuple[list[Step], dict[int, int]]:
    """Cut *case* at *offsets*; return its steps and where in them each offset is.

    A resize belongs behind the cut at its own offset.
    """
    steps: list[Step] = []
    index_of: dict[int, int] = {}
    position = 0
    resizes = list(case.resizes)
    for offset in sorted(offsets | {resize.offset for resize in resizes}):
        if offset > position:
            steps.append(("write", case.data[position:offset]))
        position = offset
        index_of[offset] = len(steps)
        while resizes and resizes[0].offset == offset:
            resize = resizes.pop(0)
            steps.append(("resize", resize.cols, resize.rows))
    steps.append(("write", case.data[position:]))
    return steps, index_of


def _replay_at(
    screen: Screen, steps: list[Step], wanted: list[int], rng: random.Random
) -> list[bytes]:
    """Feed *steps*; return the repaints before the steps of these indices."""
    replays = []
    for index, step in enumerate(steps):
        replays += [screen.replay() for at in wanted if at == index]
        if len(step) == 3:
            screen.resize(step[1], step[2])
            continue
        piece = rng.choice(PIECES_BYTES)
        for start in range(0, len(step[1]), piece):
            screen.feed(step[1][start : start + piece])
    return replays


def _encode_step(step: Step) -> list[object]:
    return [step[0], encode(step[1])] if len(step) == 2 else list(step)
