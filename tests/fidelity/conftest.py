"""The oracle, and the figures of this run, each measured once."""

from collections.abc import Generator
from dataclasses import dataclass, field

import pytest

from tests.fidelity.cases import Case, list_cases
from tests.fidelity.measuring import Figures, measure
from tests.fidelity.oracle import Oracle, open_oracle


@dataclass(slots=True)
class Measured:
    """What was measured in this run; the rest is when it is asked for."""

    oracle: Oracle
    _figures: dict[str, dict[str, Figures]] = field(default_factory=dict)

    def of(self, case: Case) -> dict[str, Figures]:
        """Return the figures of each screen on *case*."""
        if case.name not in self._figures:
            self._figures[case.name] = measure(case, self.oracle)
        return self._figures[case.name]

    def percent(self, screen: str, *sets: str) -> float:
        """Return the share of the checks of whole sets that *screen* passes."""
        figures = [self.of(case)[screen] for case in list_cases(sets)]
        passed = sum(figure.passed for figure in figures)
        return 100 * passed / sum(figure.checks for figure in figures)


@pytest.fixture(scope="session")
def oracle() -> Generator[Oracle]:
    """xterm.js."""
    with open_oracle() as opened:
        yield opened


@pytest.fixture(scope="session")
def measured(oracle: Oracle) -> Measured:
    """The figures of this run."""
    return Measured(oracle)
