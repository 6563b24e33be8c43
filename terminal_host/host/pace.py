"""How much of a terminal is read in one turn of the event loop."""

from collections.abc import Callable
from typing import Final

FLOOD_TURN_BYTES: Final = 64 * 1024
"""A turn's cost is shared by more bytes: 1.5 times ttyd's throughput (measured)."""
TYPING_TURN_BYTES: Final = 4 * 1024
"""While somebody types anywhere, no turn may keep the loop from the echo for long."""
TYPING_SECONDS: Final = 0.05
GATHER_BYTES: Final = 64 * 1024
GATHER_SECONDS: Final = 0.002
"""After a full small turn more is on its way: it is sent as one, at most this late."""


class Pace:
    """Shared by all terminals of a host: a key in one shortens the turns of all."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._input_at = float("-inf")

    def note_input(self) -> None:
        """Take note that somebody typed."""
        self._input_at = self._clock()

    def turn_bytes(self) -> int:
        """Return how much may be read now."""
        typing = self._clock() - self._input_at < TYPING_SECONDS
        return TYPING_TURN_BYTES if typing else FLOOD_TURN_BYTES
