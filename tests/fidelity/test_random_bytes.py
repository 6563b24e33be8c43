"""No bytes end an engine; `benchmarks/terminal.py` feeds 20 MB of them."""

import random
from typing import Final

import pytest

from tests.fidelity.measuring import SCREENS
from tests.fidelity.random_bytes import torment

AMOUNT_BYTES: Final = {"tail": 1 << 20, "engine": 1 << 20, "fallback": 1 << 16}
"""pyte is slow."""


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_survives_random_bytes_and_sizes(screen: str) -> None:
    torment(SCREENS[screen](80, 24), AMOUNT_BYTES[screen], random.Random(screen))
