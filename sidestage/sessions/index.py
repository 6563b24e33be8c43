"""The transcript index's place: one stored row a transcript, whatever the CLI."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredTranscript:
    """What is known of a transcript file, and up to where it was read.

    The row is good for the file with this inode and at least *offset* bytes; size and
    *mtime_ns* tell whether anything was added since.
    """

    path: str
    inode: int
    size: int
    mtime_ns: int
    offset: int
    body: bytes = field(repr=False)
    """The fold's values as JSON; only the adapter that wrote them reads them."""


class TranscriptStore(Protocol):
    """Keeps the index between runs of the server."""

    async def load(self) -> tuple[StoredTranscript, ...]:
        """Return every row."""

    async def save(self, rows: Iterable[StoredTranscript]) -> None:
        """Write rows by path, in one transaction."""

    async def forget(self, paths: Iterable[str]) -> None:
        """Delete the rows of files that are gone."""


class NoTranscriptStore:
    """Keeps nothing: each start reads every transcript anew."""

    async def load(self) -> tuple[StoredTranscript, ...]:
        """Return no rows."""
        return ()

    async def save(self, rows: Iterable[StoredTranscript]) -> None:
        """Do nothing."""

    async def forget(self, paths: Iterable[str]) -> None:
        """Do nothing."""
