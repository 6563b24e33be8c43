"""Waiting for a condition with a deadline, where no event tells that it came true."""

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

LOOK_AGAIN_SECONDS: Final = 0.02
DEADLINE_SECONDS: Final = 20.0


def wait_for(
    condition: Callable[[], T], what: str, *, seconds: float = DEADLINE_SECONDS
) -> T:
    """Return the first truthy value of *condition*; fail with *what* at the deadline.

    For other processes' files and states. In one process, wait for the event itself.
    """
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        pause.wait(LOOK_AGAIN_SECONDS)
    return value
