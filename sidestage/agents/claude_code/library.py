"""Every transcript's index row, kept up to date in the background."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.folding import Fold, dump_fold, load_fold
from sidestage.agents.claude_code.scanning import (
    TRANSCRIPT_LIMIT,
    FileStamp,
    fold_ends,
    fold_further,
    fold_whole,
    list_transcripts,
    stamp_file,
)
from sidestage.errors import StorageUnavailable
from sidestage.ids import ConversationId
from sidestage.sessions.index import StoredTranscript, TranscriptStore

AT_ONCE_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""A change whose reading would cost more waits for the background: 10 ms at most."""
SAVE_LIMIT_ROWS: Final = 50
"""Rows written in one transaction."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript file and what is known of it."""

    stamp: FileStamp
    config_dir: Path
    fold: Fold

    @property
    def conversation_id(self) -> ConversationId:
        """The conversation it holds."""
        return ConversationId(self.stamp.conversation_id)

    @property
    def modified_at(self) -> datetime:
        """When it was written last (UTC)."""
        return datetime.fromtimestamp(self.stamp.mtime_ns / 1e9, UTC)


@dataclass(slots=True)
class TranscriptLibrary:
    """The transcripts of some config dirs, by path. For one event loop.

    *on_change* is told which conversations' rows may have changed.
    """

    store: TranscriptStore
    on_change: Callable[[set[ConversationId]], None]
    transcripts: dict[str, Transcript] = field(default_factory=dict)
    left_out: int = 0
    """Transcripts over the limit."""
    storage_failed: bool = False
    """Whether the rows could not be written the last time."""
    _by_conversation: dict[ConversationId, set[str]] = field(default_factory=dict)
    _waiting: dict[str, None] = field(default_factory=dict)
    """Paths the background has to read, in the order in which they came."""
    _work: asyncio.Event = field(default_factory=asyncio.Event)
    _changes: dict[ConversationId, asyncio.Event] = field(default_factory=dict)
    _unsaved: set[str] = field(default_factory=set)
    _gone: set[str] = field(default_factory=set)

    def find(self, conversation: ConversationId) -> Transcript | None:
        """Return the conversation's transcript; of several, the newest."""
        paths = self._by_conversation.get(conversation, ())
        return max(
            (self.transcripts[path] for path in paths),
            key=lambda transcript: transcript.stamp.mtime_ns,
            default=None,
        )

    def conversations(self) -> set[ConversationId]:
        """Return every conversation that has a transcript."""
        return set(self._by_conversation)

    async def open(self, config_dirs: Iterable[Path]) -> None:
        """Fill the library for the first list: stored rows, and ends of new files."""
        stored = {row.path: row for row in await self.store.load()}
        found = await asyncio.to_thread(_first_folds, tuple(config_dirs), stored)
        for transcript, is_current in found.transcripts:
            self._put(transcript)
            if not is_current:
                self._queue(transcript.stamp.path)
        self.left_out = found.left_out
        self._gone = set(stored) - set(self.transcripts)

    async def rescan(self, config_dirs: Iterable[Path]) -> None:
        """Look at every file's stamp again and take in what changed."""
        stamps = await asyncio.to_thread(_list_stamps, tuple(config_dirs))
        for path in set(self.transcripts) - set(stamps.by_path):
            self._remove(path)
        self.left_out = stamps.left_out
        changed = [
            (stamp, config_dir)
            for path, (stamp, config_dir) in stamps.by_path.items()
            if path not in self.transcripts or self.transcripts[path].stamp != stamp
        ]
        await self._read(changed)

    async def changed(self, paths: Iterable[tuple[str, Path]]) -> None:
        """Take in what was added to the files at *paths* (with their config dirs)."""
        stamps = await asyncio.to_thread(
            lambda: [(path, stamp_file(path), home) for path, home in paths]
        )
        present: list[tuple[FileStamp, Path]] = []
        for path, stamp, config_dir in stamps:
            if stamp is None:
                self._remove(path)
            elif path in self.transcripts or len(self.transcripts) < TRANSCRIPT_LIMIT:
                present.append((stamp, config_dir))
        await self._read(present)

    async def index(self) -> None:
        """Read in the background what the first list left out, until cancelled."""
        thread = ThreadPoolExecutor(1, "sidestage-index")
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._work.wait()
                await self._index_some(
                    lambda path: loop.run_in_executor(thread, self._fold_anew, path)
                )
        finally:
            # Not waited for: a file of gigabytes would hold up the server's end.
            thread.shutdown(wait=False, cancel_futures=True)

    async def wait_for_change(
        self, conversation: ConversationId, seen: FileStamp | None
    ) -> None:
        """Return once the conversation's transcript is another than *seen*."""
        while self._stamp(conversation) == seen:
            event = self._changes.setdefault(conversation, asyncio.Event())
            await event.wait()

    async def save(self) -> None:
        """Write the rows that changed since the last time.

        What the database cannot take is kept for the next time, and said once: without
        the rows the next start reads the files anew, and nothing else is lost.
        """
        try:
            await self._forget_gone()
            unsaved = sorted(self._unsaved)
            for start in range(0, len(unsaved), SAVE_LIMIT_ROWS):
                await self._save_some(unsaved[start : start + SAVE_LIMIT_ROWS])
        except StorageUnavailable as error:
            if not self.storage_failed:
                _log.warning("The index of transcripts is stored later. %s", error)
            self.storage_failed = True
        else:
            self.storage_failed = False

    async def _forget_gone(self) -> None:
        gone, self._gone = self._gone, set()
        try:
            if gone:
                await self.store.forget(gone)
        except StorageUnavailable:
            self._gone |= gone - self.transcripts.keys()
            raise

    async def _save_some(self, batch: list[str]) -> None:
        # Taken out first: what changes while they are written is written again.
        self._unsaved.difference_update(batch)
        try:
            await self.store.save(
                _stored(self.transcripts[path])
                for path in batch
                if path in self.transcripts
            )
        except StorageUnavailable:
            self._unsaved.update(path for path in batch if path in self.transcripts)
            raise

    @property
    def waiting_count(self) -> int:
        """How many rows still lack what only the whole file tells."""
        return len(self._waiting)

    async def _index_some(
        self, fold_anew: Callable[[str], Awaitable[Transcript | None]]
    ) -> None:
        while self._waiting:
            path = next(iter(self._waiting))
            transcript = await fold_anew(path)
            self._waiting.pop(path, None)
            if transcript is not None:
                self._take(transcript)
            # A database that fails is tried again at regular times only.
            if len(self._unsaved) >= SAVE_LIMIT_ROWS and not self.storage_failed:
                await self.save()
        self._work.clear()
        if not self.storage_failed:
            await self.save()

    def _fold_anew(self, path: str) -> Transcript | None:
        """Read one transcript as far as it is unread. Blocks."""
        known = self.transcripts.get(path)
        stamp = stamp_file(path)
        if known is None or stamp is None:
            return None
        try:
            fold = fold_further(stamp, copy_fold(known.fold))
        except OSError:
            return None
        return Transcript(stamp, known.config_dir, fold)

    async def _read(self, stamps: Iterable[tuple[FileStamp, Path]]) -> None:
        wanted = [
            (stamp, config_dir, self.transcripts.get(stamp.path))
            for stamp, config_dir in stamps
        ]
        if not wanted:
            return
        for transcript, is_current in await asyncio.to_thread(_read_changes, wanted):
            if not is_current:
                self._queue(transcript.stamp.path)
            self._take(transcript)

    def _take(self, transcript: Transcript) -> None:
        """Put a fold in, unless a newer one of the same file is there already."""
        known = self.transcripts.get(transcript.stamp.path)
        if known is not None and _is_ahead(known, transcript):
            return
        self._put(transcript)
        if transcript.fold.complete:
            self._unsaved.add(transcript.stamp.path)
        self._tell(transcript.conversation_id)

    def _put(self, transcript: Transcript) -> None:
        path = transcript.stamp.path
        self.transcripts[path] = transcript
        self._by_conversation.setdefault(transcript.conversation_id, set()).add(path)

    def _stamp(self, conversation: ConversationId) -> FileStamp | None:
        transcript = self.find(conversation)
        return None if transcript is None else transcript.stamp

    def _tell(self, conversation: ConversationId) -> None:
        """Wake whoever follows the transcript, and tell the list."""
        event = self._changes.pop(conversation, None)
        if event is not None:
            event.set()
        self.on_change({conversation})

    def _queue(self, path: str) -> None:
        self._waiting[path] = None
        self._work.set()

    def _remove(self, path: str) -> None:
        transcript = self.transcripts.pop(path, None)
        if transcript is None:
            return
        conversation = transcript.conversation_id
        self._by_conversation[conversation].discard(path)
        if not self._by_conversation[conversation]:
            del self._by_conversation[conversation]
        self._gone.add(path)
        self._unsaved.discard(path)
        self._waiting.pop(path, None)
        self._tell(conversation)


def copy_fold(fold: Fold) -> Fold:
    """Return a fold of its own with the same values, to fold on in a thread."""
    return load_fold(dump_fold(fold)) or Fold()


def _is_ahead(known: Transcript, other: Transcript) -> bool:
    """Tell whether *known* has read more of the same file than *other*."""
    if known.stamp.inode != other.stamp.inode or not known.fold.complete:
        return False
    if not other.fold.complete:
        return known.stamp.size >= other.stamp.size
    return known.stamp.mtime_ns > other.stamp.mtime_ns


def _stored(transcript: Transcript) -> StoredTranscript:
    stamp, fold = transcript.stamp, transcript.fold
    return StoredTranscript(
        stamp.path,
        stamp.inode,
        stamp.size,
        stamp.mtime_ns,
        fold.offset,
        dump_fold(fold),
    )


@dataclass(frozen=True, slots=True)
class _Stamps:
    by_path: dict[str, tuple[FileStamp, Path]]
    left_out: int


@dataclass(frozen=True, slots=True)
class _FirstFolds:
    transcripts: list[tuple[Transcript, bool]]
    left_out: int


def _list_stamps(config_dirs: tuple[Path, ...]) -> _Stamps:
    stamps = [
        (stamp, config_dir)
        for config_dir in config_dirs
        for stamp in list_transcripts(config_dir / "projects")
    ]
    stamps.sort(key=lambda pair: pair[0].mtime_ns, reverse=True)
    kept = stamps[:TRANSCRIPT_LIMIT]
    return _Stamps(
        {stamp.path: (stamp, config_dir) for stamp, config_dir in kept},
        len(stamps) - len(kept),
    )


def _first_folds(
    config_dirs: tuple[Path, ...], stored: dict[str, StoredTranscript]
) -> _FirstFolds:
    stamps = _list_stamps(config_dirs)
    transcripts: list[tuple[Transcript, bool]] = []
    for path, (stamp, config_dir) in stamps.by_path.items():
        fold = _stored_fold(stored.get(path), stamp)
        first = _first_fold(stamp, config_dir, fold, stored.get(path))
        if first is not None:
            transcripts.append(first)
    return _FirstFolds(transcripts, stamps.left_out)


def _first_fold(
    stamp: FileStamp, config_dir: Path, fold: Fold | None, row: StoredTranscript | None
) -> tuple[Transcript, bool] | None:
    if fold is not None and row is not None and _is_unchanged(row, stamp):
        return Transcript(stamp, config_dir, fold), True
    known = None if fold is None else Transcript(stamp, config_dir, fold)
    changes = _read_changes([(stamp, config_dir, known)])
    return changes[0] if changes else None


def _is_unchanged(row: StoredTranscript, stamp: FileStamp) -> bool:
    return (row.size, row.mtime_ns) == (stamp.size, stamp.mtime_ns)


def _stored_fold(row: StoredTranscript | None, stamp: FileStamp) -> Fold | None:
    if row is None or row.inode != stamp.inode or row.offset > stamp.size:
        return None
    return load_fold(row.body)


def _read_changes(
    wanted: Iterable[tuple[FileStamp, Path, Transcript | None]],
) -> list[tuple[Transcript, bool]]:
    """Read changed files, large ones only at their ends; the flag: is it the whole."""
    changes: list[tuple[Transcript, bool]] = []
    for stamp, config_dir, known in wanted:
        try:
            fold = _read_change(stamp, known)
        except OSError:
            continue  # it went away; its removal is another change
        changes.append((Transcript(stamp, config_dir, fold), fold.complete))
    return changes


def _read_change(stamp: FileStamp, known: Transcript | None) -> Fold:
    if known is not None and known.fold.complete and known.stamp.inode == stamp.inode:
        if stamp.size - known.fold.offset <= AT_ONCE_LIMIT_BYTES:
            return fold_further(stamp, copy_fold(known.fold))
    elif known is not None and stamp.size <= AT_ONCE_LIMIT_BYTES:
        return fold_whole(stamp)
    return fold_ends(stamp)
