"""Which sandbox a process belongs to, whatever it did to hide that.

A process can leave its session, its parent and its environment behind, but never its
user namespace for one outside of it (user_namespaces(7)). Each sandbox has one, and
what is made inside has it for an ancestor.
"""

import fcntl
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Final

_NS_GET_PARENT: Final = 0xB702
"""ioctl_ns(2): open the parent of a user namespace."""
NESTING_LIMIT: Final = 32
"""The kernel's own limit of nested user namespaces (user_namespaces(7))."""


def find_namespaces(pid: int) -> frozenset[int]:
    """Return the user namespaces *pid* is in, inside our own, as inode numbers.

    Empty for a process in our namespace, and for one that is gone or not ours to see.
    """
    own = Path("/proc/self/ns/user").stat().st_ino
    found: set[int] = set()
    with ExitStack() as stack:
        descriptor = _open(pid, stack)
        while descriptor is not None and len(found) < NESTING_LIMIT:
            inode = os.fstat(descriptor).st_ino
            if inode == own:
                return frozenset(found)
            found.add(inode)
            descriptor = _open_parent(descriptor, stack)
    # Not below ours: a container's process, say.
    return frozenset()


def _open(pid: int, stack: ExitStack) -> int | None:
    try:
        descriptor = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    stack.callback(os.close, descriptor)
    return descriptor


def _open_parent(namespace: int, stack: ExitStack) -> int | None:
    try:
        descriptor = fcntl.ioctl(namespace, _NS_GET_PARENT)
    except OSError:
        return None
    stack.callback(os.close, descriptor)
    return descriptor
