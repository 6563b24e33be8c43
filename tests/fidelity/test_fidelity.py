"""Repaints against xterm.js, stream by stream and set by set.

What is compared stands in `measuring.py`; the bars are those of `docs/performance.md`.
"""

from typing import Final

import pytest

from terminal_host.host.engines import ENGINE_NAME
from terminal_host.screen import Screen
from tests.fidelity.cases import AGENTS, PUBLIC_SETS, Case, list_cases
from tests.fidelity.conftest import Measured
from tests.fidelity.measuring import SCREENS, measure
from tests.fidelity.oracle import Oracle
from tests.fidelity.recorded_figures import load_figures

WHOLE_RUN_SECONDS: Final = 300
"""When a set's test runs alone, it measures all of its streams."""
BARS: Final = (
    ("tail", PUBLIC_SETS, 99.0),
    ("tail", (AGENTS,), 99.5),
    ("engine", ("recorded",), 98.5),
    ("engine", ("features",), 96.0),
    ("engine", (AGENTS,), 99.5),
    # pyte stands in where nothing better loads: right for shells, fair beyond.
    ("fallback", ("recorded",), 50.0),
    ("fallback", ("features",), 70.0),
    ("fallback", (AGENTS,), 20.0),
)


class _KeepsEverything:
    """A stand-in that repaints with the stream itself: right but for resizes."""

    def __init__(self, cols: int, rows: int) -> None:
        self._size = (cols, rows)
        self._data = b""

    def feed(self, data: bytes) -> None:
        self._data += data

    def resize(self, cols: int, rows: int) -> None:
        self._size = (cols, rows)

    def replay(self) -> bytes:
        return self._data

    def text(self, lines: int) -> str:
        return str(lines)


class _KeepsNothing(_KeepsEverything):
    def replay(self) -> bytes:
        return b""


def test_what_is_measured_is_libghostty() -> None:
    assert ENGINE_NAME == "ghostty"


@pytest.mark.parametrize("case", list_cases(), ids=lambda case: case.name)
def test_no_stream_falls_below_its_recorded_figure(
    case: Case, measured: Measured
) -> None:
    recorded = load_figures()[case.name]
    for screen, figures in measured.of(case).items():
        assert figures.percent >= recorded[screen], (screen, figures.differences)


@pytest.mark.parametrize("case", list_cases(), ids=lambda case: case.name)
def test_a_repaint_makes_no_emulator_answer_beep_or_copy(
    case: Case, measured: Measured
) -> None:
    for screen, figures in measured.of(case).items():
        assert figures.effects == [], screen


@pytest.mark.timeout(WHOLE_RUN_SECONDS)
@pytest.mark.parametrize(("screen", "sets", "bar"), BARS)
def test_each_set_of_streams_reaches_its_bar(
    screen: str, sets: tuple[str, ...], bar: float, measured: Measured
) -> None:
    assert measured.percent(screen, *sets) >= bar


def test_every_recorded_figure_belongs_to_a_stream() -> None:
    recorded = load_figures()
    assert set(recorded) == {case.name for case in list_cases()}
    assert all(set(figures) == set(SCREENS) for figures in recorded.values())


@pytest.mark.parametrize("name", ["recorded/vim", "features/f_osc_title"])
def test_the_instrument_tells_a_perfect_repaint_from_an_empty_one(
    name: str, oracle: Oracle
) -> None:
    case = next(case for case in list_cases() if case.name == name)
    screens: dict[str, type[Screen]] = {
        "everything": _KeepsEverything,
        "nothing": _KeepsNothing,
    }
    figures = measure(case, oracle, screens=screens)
    assert figures["everything"].percent == 100.0
    assert figures["nothing"].percent < 40.0
