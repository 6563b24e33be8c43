"""The figures that no stream may fall below, and how to record them.

    python -m tests.fidelity.recorded_figures

measures all streams and rewrites `figures.json`. Do so after an engine became better,
after adding a stream, and after raising the version of xterm.js, libghostty or pyte;
then look at the difference before committing: no number should have become smaller.
"""

import json
from pathlib import Path
from typing import Final

from tests.fidelity.cases import list_cases
from tests.fidelity.measuring import measure
from tests.fidelity.oracle import open_oracle

_FIGURES: Final = Path(__file__).with_name("figures.json")


def load_figures() -> dict[str, dict[str, float]]:
    """Return the percentages of each stream, by screen."""
    figures: dict[str, dict[str, float]] = json.loads(_FIGURES.read_text())
    return figures


def record() -> None:
    """Measure all streams and write what was found."""
    with open_oracle() as oracle:
        found = {
            case.name: {
                screen: figures.percent
                for screen, figures in measure(case, oracle).items()
            }
            for case in list_cases()
        }
    lines = [f"  {json.dumps(name)}: {json.dumps(found[name])}" for name in found]
    _FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
