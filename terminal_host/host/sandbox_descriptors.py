"""Files that exist as descriptors only, for what must stand in no argument list."""

import os
from collections.abc import Iterable
from contextlib import ExitStack


class MemoryFiles:
    """Files in memory, read by a child through inherited descriptors.

    *stack* closes them; each is read from its start, once.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._held: list[int] = []

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Every descriptor so far, in the order they were made."""
        return tuple(self._held)

    def hold(self, name: str, content: bytes) -> int:
        """Return an inheritable descriptor that reads *content* (no limit but memory).

        Not a pipe: a pipe takes 64 KiB, and writing more would wait for a reader that
        has yet to start.
        """
        descriptor = os.memfd_create(f"sidestage-{name}", flags=0)
        self._stack.callback(os.close, descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as target:
            target.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        self._held.append(descriptor)
        return descriptor

    def hold_list(self, name: str, parts: Iterable[str]) -> int:
        """Hold *parts*, a NUL behind each."""
        return self.hold(name, b"".join(os.fsencode(part) + b"\0" for part in parts))
