"""Lines of a transcript out of chunks of bytes, in bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

LINE_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""A longer line is skipped: pasted screenshots reach 15 MB, and a page of a transcript
must never cost more memory than a few such lines."""


@dataclass(frozen=True, slots=True)
class Line:
    r"""One line without its `\n`, and where it stands in the file.

    *data* is None when the line is over the limit.
    """

    offset: int
    length: int
    """Bytes, the final line feed included."""
    data: bytes | None


class LineSplitter:
    r"""Cuts a stream of chunks at `\n`, and only there.

    A last line without its line feed stays inside until the rest of it comes:
    `consumed` says up to which offset the file has been told.
    """

    def __init__(self, offset: int = 0, *, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self.consumed = offset
        self._limit_bytes = limit_bytes
        self._parts: list[bytes] = []
        self._pending = 0
        self._overlong = False

    @property
    def has_torn_line(self) -> bool:
        """Whether bytes without a line feed are waiting for the rest of their line."""
        return self._pending > 0

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Yield the lines that *chunk* completes."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk[start:end])
            yield self._finish()
            start = end + 1
        self._keep(chunk[start:])

    def _keep(self, part: bytes) -> None:
        self._pending += len(part)
        if self._pending > self._limit_bytes:
            self._overlong = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _finish(self) -> Line:
        parts = self._parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        line = Line(self.consumed, self._pending + 1, None if self._overlong else data)
        self.consumed += line.length
        self._parts = []
        self._pending = 0
        self._overlong = False
        return line
