"""Kills orphans that fork faster than the process table can be read.

For terminals without a keeper (no sandbox, or a kernel without Landlock's scopes). What
forks, ends and goes on as its child becomes the host's child at each step (the host
is a sub-reaper). So the host's short list of children is looked at again and again;
what is new in it is judged and killed at once. Measured: eight chains that fork every
150 µs are caught in 0.1 s.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from terminal_host.host.processes import ProcessStat, find_stat
from terminal_host.host.reaping import list_children

HUNT_SECONDS: Final = 2.0
"""For what is hardest to catch; each round of an end may hunt again."""
QUIET_SECONDS: Final = 0.03
"""No new child for so long, in hundreds of looks: nothing forks there any more."""


def hunt_orphans(is_ours: Callable[[ProcessStat], bool], spared: set[int]) -> None:
    """Kill our children that *is_ours* tells of, until there are none; blocks.

    Those whose pid is in *spared* are not looked at.
    """
    deadline = time.monotonic() + HUNT_SECONDS
    quiet_at = time.monotonic() + QUIET_SECONDS
    while (now := time.monotonic()) < min(quiet_at, deadline):
        # Not a set of what was there before: a number comes back after 32768 others.
        for pid in list_children():
            if pid not in spared and _kill_if(pid, is_ours):
                quiet_at = now + QUIET_SECONDS


def _kill_if(pid: int, is_ours: Callable[[ProcessStat], bool]) -> bool:
    """Kill the process if it is one of those; tell whether it was."""
    try:
        # First of all: from here on the number cannot mean another process.
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        stat = find_stat(pid)
        if stat is None or not is_ours(stat):
            return False
        with suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    finally:
        os.close(descriptor)
