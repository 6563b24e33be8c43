"""An event loop whose clock jumps: an hour of waiting passes in milliseconds."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Value = TypeVar("Value")


class _JumpingSelector(selectors.DefaultSelector):
    """Reports what is ready now; where the loop would wait, the clock jumps instead."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped_seconds = 0.0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("nothing will ever happen: this waits for ever")
        ready = super().select(0)
        if not ready:
            self.skipped_seconds += max(0.0, timeout)
        return ready


class FastClockLoop(asyncio.SelectorEventLoop):
    """A loop for code without threads or sockets that reads the loop's clock only."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the seconds that were waited for, all of them skipped."""
        return self._jumping.skipped_seconds


def run_fast(work: Coroutine[Any, Any, Value]) -> Value:
    """Run *work* to its end on a loop of its own, waiting for nothing."""
    with asyncio.Runner(loop_factory=FastClockLoop) as runner:
        return runner.run(work)
