"""The latest bytes of a screen's output, which its engine has not been fed."""

from collections import deque
from typing import Final

SMALL_PIECE_BYTES: Final = 4096
"""Pieces below it are joined, so that single keys do not become objects each."""


class Tail:
    """A queue of bytes that keeps the pieces as they came: nothing is copied."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def __len__(self) -> int:
        """Return how many bytes there are."""
        return self._size

    def __bytes__(self) -> bytes:
        """Return all of them."""
        return b"".join(self._pieces)

    def append(self, data: bytes) -> None:
        """Add *data* at the end."""
        last = self._pieces[-1] if self._pieces else b""
        if last and len(last) + len(data) <= SMALL_PIECE_BYTES:
            self._pieces[-1] = last + data
        elif data:
            self._pieces.append(data)
        self._size += len(data)

    def take(self, count: int) -> list[bytes]:
        """Remove the first *count* bytes, or all there are; return them in pieces."""
        taken: list[bytes] = []
        while count and self._pieces:
            piece = self._pieces.popleft()
            if len(piece) > count:
                self._pieces.appendleft(piece[count:])
                piece = piece[:count]
            taken.append(piece)
            count -= len(piece)
            self._size -= len(piece)
        return taken

    def find_line_end(self, begin: int, end: int) -> int:
        """Return where the last line ends between two places, or *end* if none does.

        Only the piece that holds *end* is looked at.
        """
        position = self._size
        for piece in reversed(self._pieces):
            position -= len(piece)
            if position < end:
                found = piece.rfind(b"\n", max(0, begin - position), end - position)
                return position + found + 1 if found >= 0 else end
        return end
