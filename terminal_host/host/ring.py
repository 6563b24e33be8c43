"""The latest bytes of a terminal's output, found by their absolute offset."""

from collections import deque
from typing import Final

SMALL_CHUNK_BYTES: Final = 4096
"""Chunks below it are joined, so that single keys do not become objects each."""


class Ring:
    """What a terminal printed last, at most *limit_bytes* of it.

    Offsets count from the first byte the program ever printed. Every byte is data.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.start = 0
        """The offset of the oldest byte held."""
        self.end = 0
        """The offset behind the newest byte."""
        self._chunks: deque[bytes] = deque()

    def append(self, data: bytes) -> None:
        """Add *data* at the end and forget what is beyond the limit."""
        if not data:
            return
        last = self._chunks[-1] if self._chunks else b""
        if last and len(last) + len(data) <= SMALL_CHUNK_BYTES:
            self._chunks[-1] = last + data
        else:
            self._chunks.append(data)
        self.end += len(data)
        self.trim()

    def trim(self) -> None:
        """Forget whole chunks until no more than the limit is held."""
        while self.end - self.start > self.limit_bytes and self._chunks:
            self.start += len(self._chunks.popleft())

    def holds(self, offset: int) -> bool:
        """Tell whether the output from *offset* on can still be had."""
        return self.start <= offset <= self.end

    def take(self, offset: int, limit_bytes: int) -> list[memoryview]:
        """Return views of the output from *offset*, at most *limit_bytes*, in order.

        The offset must be held (`holds`).
        """
        views: list[memoryview] = []
        for chunk in self._from(offset):
            view = chunk[:limit_bytes]
            views.append(view)
            limit_bytes -= len(view)
            if limit_bytes <= 0:
                break
        return views

    def _from(self, offset: int) -> list[memoryview]:
        """Return the chunks that reach beyond *offset*, the first one cut to it."""
        # Readers are nearly always near the end, so walk from there.
        found: deque[memoryview] = deque()
        begin = self.end
        for chunk in reversed(self._chunks):
            if begin <= offset:
                break
            begin -= len(chunk)
            found.appendleft(memoryview(chunk)[max(0, offset - begin) :])
        return list(found)
