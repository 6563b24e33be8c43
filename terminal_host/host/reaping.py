"""Takes note of dead children, thousands a second if need be.

The host is a sub-reaper, so a terminal that forks and forgets makes it reap. Asking
/proc about each would be slower than a program can fork: the dead would fill the
process table of the whole machine.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from terminal_host.host.processes import find_stat

REAP_LIMIT: Final = 512
"""Children reaped in one go: about a millisecond, so that nothing else waits for it."""

_TASKS: Final = Path("/proc/self/task")


class _Helpers:
    """The programs that this process runs for itself. Children are a process's."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = 0


_helpers: Final = _Helpers()


@contextmanager
def helper_children() -> Iterator[None]:
    """Leave children in our own session to the block, which waits for them itself."""
    with _helpers.lock:
        _helpers.running += 1
    try:
        yield
    finally:
        with _helpers.lock:
            _helpers.running -= 1


def reap_children() -> dict[int, int]:
    """Reap dead children, `REAP_LIMIT` at most; return wait statuses by pid."""
    with _helpers.lock:
        # A helper's status must not be taken away from whoever waits for it.
        return _reap_others() if _helpers.running else _reap_any()


def _reap_any() -> dict[int, int]:
    statuses: dict[int, int] = {}
    with suppress(ChildProcessError):
        while len(statuses) < REAP_LIMIT:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            statuses[pid] = status
    return statuses


def _reap_others() -> dict[int, int]:
    """Reap what is not in our own session; slow, for the moments a helper runs."""
    own_session = os.getsid(0)
    statuses: dict[int, int] = {}
    for pid in list_children():
        if len(statuses) >= REAP_LIMIT:
            break
        stat = find_stat(pid)
        if stat is None or not stat.zombie or stat.session == own_session:
            continue
        with suppress(ChildProcessError):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                statuses[found] = status
    return statuses


def list_children() -> list[int]:
    """Return the pids of our children, dead ones that are not reaped included."""
    pids: list[int] = []
    for task in _TASKS.iterdir():
        with suppress(OSError):  # a thread that has just ended
            pids += map(int, (task / "children").read_text().split())
    return pids
