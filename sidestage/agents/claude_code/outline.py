"""A transcript's outline: where each record stands and which branch it belongs to.

It grows with the number of records, not with their size: the texts stay in the file and
are read again for the page that is asked for. Reading blocks, and belongs in a thread.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, Final

from sidestage.agents.claude_code.entries import (
    count_entries,
    find_node,
    parse_order,
    read_entries,
)
from sidestage.agents.claude_code.folding import is_bookkeeping
from sidestage.agents.claude_code.lines import LINE_LIMIT_BYTES, Line, LineSplitter
from sidestage.agents.claude_code.records import parse_record
from sidestage.agents.claude_code.scanning import (
    FileStamp,
    read_chunks,
    read_guard,
)
from sidestage.agents.claude_code.tree import BranchNodes, Tree
from sidestage.agents.regular_files import open_regular
from sidestage.sessions.transcript import TranscriptEntry

NODE_BYTES: Final = 700
"""What a record costs in memory, about: measured with `tracemalloc`."""
ENTRY_BYTES: Final = 250


@dataclass(frozen=True, slots=True)
class Place:
    """A line that has entries: its length in the file, and how many they are."""

    length: int
    count: int


@dataclass(slots=True)
class Outline:
    """The outline of one file, as far as it was read."""

    inode: int
    offset: int = 0
    guard: str = ""
    tree: Tree = field(default_factory=Tree)
    places: dict[int, Place] = field(default_factory=dict)
    loose: list[int] = field(default_factory=list)
    """Lines with entries that stand in no branch, so they are shown in each."""
    skipped_lines: int = 0

    @property
    def size_bytes(self) -> int:
        """About how much memory the outline takes."""
        return len(self.tree.nodes) * NODE_BYTES + len(self.places) * ENTRY_BYTES

    def views(self) -> tuple["BranchView", ...]:
        """Return the branches as they are shown, the active one first."""
        branches = self.tree.branches() or (BranchNodes("", (), ""),)
        return tuple(self._view(branch) for branch in branches)

    def _view(self, branch: BranchNodes) -> "BranchView":
        told = [offset for offset in branch.offsets if offset in self.places]
        offsets = sorted({*told, *self.loose})
        counts = accumulate(self.places[offset].count for offset in offsets)
        return BranchView(branch.leaf, branch.last_time, offsets, list(counts))


@dataclass(frozen=True, slots=True)
class BranchView:
    """The entries of one branch, by position, without their texts."""

    leaf: str
    last_time: str
    offsets: Sequence[int]
    ends: Sequence[int]
    """For each line, how many entries there are up to and with it."""

    @property
    def total(self) -> int:
        """How many entries the branch has."""
        return self.ends[-1] if self.ends else 0

    def find(self, order: str) -> int | None:
        """Return the position of the entry with that `order`, or None."""
        parsed = parse_order(order)
        if parsed is None:
            return None
        offset, block = parsed
        index = bisect_left(self.offsets, offset)
        if index == len(self.offsets) or self.offsets[index] != offset:
            return None
        position = (self.ends[index - 1] if index else 0) + block
        return position if position < self.ends[index] else None

    def lines(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield `(offset, first block, end block)` of the positions up to *end*."""
        index = bisect_right(self.ends, start)
        while start < end and index < len(self.offsets):
            before = self.ends[index - 1] if index else 0
            stop = min(end, self.ends[index])
            yield self.offsets[index], start - before, stop - before
            start, index = stop, index + 1


def update_outline(outline: Outline | None, stamp: FileStamp) -> Outline:
    """Return the outline of the file as it is now; *outline* is read on if it fits.

    Raises `OSError`.
    """
    with open_regular(stamp.path) as file:
        if outline is None or not _fits(outline, stamp, file):
            outline = Outline(stamp.inode)
        splitter = LineSplitter(outline.offset)
        file.seek(outline.offset)
        for chunk in read_chunks(file):
            for line in splitter.feed(chunk):
                _add(outline, line)
        outline.guard = read_guard(file, outline.offset)
    return outline


def _fits(outline: Outline, stamp: FileStamp, file: BinaryIO) -> bool:
    return (
        outline.inode == stamp.inode
        and outline.offset <= stamp.size
        and read_guard(file, outline.offset) == outline.guard
    )


def _add(outline: Outline, line: Line) -> None:
    outline.offset = line.offset + line.length
    if line.data is None:
        _add_loose(outline, line, skipped=True)
        return
    if not line.data.strip() or is_bookkeeping(line.data):
        return
    record = parse_record(line.data)
    if record is None:
        _add_loose(outline, line, skipped=True)
        return
    count = count_entries(record)
    node = find_node(record, line.offset)
    if node is not None:
        if outline.tree.add(node) and count:
            outline.places[line.offset] = Place(line.length, count)
    elif count:
        _add_loose(outline, line, skipped=False)


def _add_loose(outline: Outline, line: Line, *, skipped: bool) -> None:
    outline.places[line.offset] = Place(line.length, 1)
    outline.loose.append(line.offset)
    outline.skipped_lines += skipped


def read_view(
    path: Path,
    outline: Outline,
    view: BranchView,
    positions: Iterable[tuple[int, int]],
    session_hex: str,
) -> tuple[TranscriptEntry, ...]:
    """Return the entries at some ranges of positions. Raises `OSError`."""
    entries: list[TranscriptEntry] = []
    with open_regular(path) as file:
        for start, end in positions:
            for offset, first, stop in view.lines(start, end):
                line = _read_line(file, offset, outline.places[offset].length)
                entries += read_entries(line, session_hex)[first:stop]
    return tuple(entries)


def _read_line(file: BinaryIO, offset: int, length: int) -> Line:
    if length - 1 > LINE_LIMIT_BYTES:
        return Line(offset, length, None)
    file.seek(offset)
    data = file.read(length)
    while len(data) < length and (more := file.read(length - len(data))):
        data += more
    return Line(offset, length, data.rstrip(b"\n"))
