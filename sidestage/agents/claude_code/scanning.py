"""Reads transcripts for the index: whole, only both ends, or just what was added.

Every function here blocks, and belongs in a thread.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from sidestage.agents.claude_code.folding import Fold, fold_line, merge_tail
from sidestage.agents.claude_code.lines import LineSplitter
from sidestage.agents.regular_files import open_regular, stat_regular

CHUNK_BYTES: Final = 256 * 1024
"""Read at once: large enough to be fast, small beside the memory limit."""
END_BYTES: Final = 32 * 1024
"""Read at each end for the first list: the first prompt is among the first lines, and
a title is repeated at each turn's end (docs/discovery.md, "Speed")."""
GUARD_BYTES: Final = 64
"""Looked at again before reading on: enough to hold a uuid or a timestamp."""
TRANSCRIPT_LIMIT: Final = 20_000
"""Transcripts watched; the oldest beyond it are left out, and health says so."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A transcript file as `stat` saw it."""

    path: str
    inode: int
    size: int
    mtime_ns: int

    @property
    def conversation_id(self) -> str:
        """The file's stem, which is the CLI's id of the conversation."""
        return Path(self.path).stem


def list_transcripts(projects: Path) -> list[FileStamp]:
    """Return the transcripts in a `projects` folder; absent folders are empty.

    Sub-agents' transcripts lie deeper (or, in older versions, are named `agent-…`).
    """
    stamps: list[FileStamp] = []
    for folder in _entries(projects):
        if _is_folder(folder):
            for entry in _entries(folder.path):
                stamp = _stamp_entry(entry)
                if stamp is not None:
                    stamps.append(stamp)
    return stamps


def list_project_folders(projects: Path) -> list[Path]:
    """Return the folders in a `projects` folder."""
    return [Path(entry.path) for entry in _entries(projects) if _is_folder(entry)]


def stamp_file(path: str) -> FileStamp | None:
    """Return the stamp of one transcript, or None if it is no regular file (now)."""
    status = stat_regular(path)
    if status is None:
        return None
    return FileStamp(path, status.st_ino, status.st_size, status.st_mtime_ns)


def is_transcript_name(name: str) -> bool:
    """Tell whether a file of that name is a session's transcript."""
    return name.endswith(".jsonl") and not name.startswith(("agent-", "."))


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _stamp_entry(entry: os.DirEntry[str]) -> FileStamp | None:
    return stamp_file(entry.path) if is_transcript_name(entry.name) else None


def fold_whole(stamp: FileStamp) -> Fold:
    """Fold the whole file. Raises `OSError`."""
    fold = Fold()
    with open_regular(stamp.path) as file:
        _fold_from(file, fold, stamp.conversation_id)
    return fold


def fold_further(stamp: FileStamp, fold: Fold) -> Fold:
    """Fold what was added after *fold*; the whole file if it is not the same any more.

    Raises `OSError`.
    """
    if not fold.complete or stamp.size < fold.offset:
        return fold_whole(stamp)
    with open_regular(stamp.path) as file:
        if read_guard(file, fold.offset) != fold.guard:
            fold = Fold()
        _fold_from(file, fold, stamp.conversation_id)
    return fold


def fold_ends(stamp: FileStamp) -> Fold:
    """Fold the head and the tail only, unless both are the whole. Raises `OSError`."""
    if stamp.size <= 2 * END_BYTES:
        return fold_whole(stamp)
    with open_regular(stamp.path) as file:
        head = _fold_part(file.read(END_BYTES), stamp.conversation_id)
        file.seek(stamp.size - END_BYTES)
        tail_bytes = file.read(END_BYTES)
    tail = _fold_part(tail_bytes[tail_bytes.find(b"\n") + 1 :], stamp.conversation_id)
    return merge_tail(head, tail)


def _fold_part(data: bytes, conversation_id: str) -> Fold:
    fold = Fold()
    for line in LineSplitter().feed(data):
        fold_line(fold, line, conversation_id)
    return fold


def _fold_from(file: BinaryIO, fold: Fold, conversation_id: str) -> None:
    splitter = LineSplitter(fold.offset)
    file.seek(fold.offset)
    for chunk in read_chunks(file):
        for line in splitter.feed(chunk):
            fold_line(fold, line, conversation_id)
    fold.guard = read_guard(file, fold.offset)


def read_chunks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the rest of the file in chunks."""
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def read_guard(file: BinaryIO, offset: int) -> str:
    """Return a digest of the bytes just before *offset*."""
    start = max(offset - GUARD_BYTES, 0)
    file.seek(start)
    return hashlib.blake2b(file.read(offset - start), digest_size=8).hexdigest()
