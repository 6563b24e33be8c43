"""Keeps the host's memory near what it uses."""

import ctypes
from typing import Final

LARGE_BYTES: Final = 128 * 1024
"""Allocations from here on go back to the system when they are freed."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3


def return_freed_memory() -> None:
    """Let the C library give large buffers back; without glibc this does nothing.

    By itself glibc raises that limit to the largest buffer ever freed: after one flood
    the pieces of output, 256 KiB each, left 50 MB of holes in three threads' heaps;
    with the limit fixed it is 15 MB.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
    mallopt(_M_TRIM_THRESHOLD, LARGE_BYTES)
