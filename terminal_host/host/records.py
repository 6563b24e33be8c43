"""The folder of records: written so that a crash leaves the old one or the new one.

Everything here blocks; one thread at a time may call it.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.ids import TerminalId
from terminal_host.host.record_format import (
    RECORD_LIMIT_BYTES,
    RecordInvalid,
    RecordMeta,
    RecordTooLarge,
    ScreenRecord,
    decode_record,
    encode_record,
)

FOLDER_NAME: Final = "screens"
RECORDS_LIMIT: Final = 64
"""Records kept: at 4 MiB each they fill 256 MiB at most."""
SUFFIX: Final = ".screen"
_TEMPORARY_PREFIX: Final = ".new-"
"""No id begins with a dot."""
_LEAVE_ALONE: Final = os.O_NOFOLLOW | os.O_CLOEXEC

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLimits:
    """How large a record, and how many."""

    record_bytes: int = RECORD_LIMIT_BYTES
    records: int = RECORDS_LIMIT


class RecordStore:
    """The records of one folder. `open` it first."""

    def __init__(self, folder: Path, limits: RecordLimits | None = None) -> None:
        self.limits = limits or RecordLimits()
        self._folder = folder
        self._known: dict[TerminalId, RecordMeta | None] = {}
        """None for a file that is there but no record."""

    def open(self) -> tuple[RecordMeta, ...]:
        """Take the folder in use; return what it holds, oldest start first.

        Deletes what unfinished writes left. Raises `OSError`.
        """
        self._make_folder()
        self._folder.chmod(0o700)
        for path in self._folder.glob(_TEMPORARY_PREFIX + "*"):
            path.unlink(missing_ok=True)
        self._known.clear()
        for path in self._folder.glob("*" + SUFFIX):
            terminal_id = TerminalId(path.name.removesuffix(SUFFIX))
            record = self.find(terminal_id)
            self._known[terminal_id] = None if record is None else record.meta
        metas = [meta for meta in self._known.values() if meta is not None]
        return tuple(sorted(metas, key=lambda meta: meta.started_at))

    def find(self, terminal_id: TerminalId) -> ScreenRecord | None:
        """Return the record, or None: one that cannot be read counts as absent."""
        try:
            return self._read(terminal_id)
        except FileNotFoundError:
            return None
        except (OSError, RecordInvalid) as error:
            _log.warning("the screen of %s cannot be shown: %s", terminal_id, error)
            return None

    def save(self, record: ScreenRecord) -> tuple[TerminalId, ...]:
        """Write *record*, on disk when this returns; return whose records gave way.

        Raises `OSError`, and `RecordTooLarge` when even an older record is deleted:
        it would show a screen that is long gone.
        """
        terminal_id = record.meta.terminal_id
        try:
            data = encode_record(record, limit_bytes=self.limits.record_bytes)
        except RecordTooLarge:
            self.remove(terminal_id)
            raise
        self._make_folder()
        temporary = self._folder / (_TEMPORARY_PREFIX + terminal_id)
        try:
            _write(temporary, data)
            temporary.replace(self._path(terminal_id))
        except BaseException:
            # Whatever ended the write (Ctrl-C too), half a record is to stay nowhere.
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        self._sync_folder()
        self._known[terminal_id] = record.meta
        return self.prune()

    def remove(self, terminal_id: TerminalId) -> None:
        """Delete the record for good, if there is one; raises `OSError`."""
        try:
            self._path(terminal_id).unlink()
        except FileNotFoundError:
            self._known.pop(terminal_id, None)
            return
        self._sync_folder()
        self._known.pop(terminal_id, None)

    def prune(self) -> tuple[TerminalId, ...]:
        """Delete what is beyond the number kept; return whose records went.

        First those that cannot be read, then those of programs that had ended, then
        the rest; of each kind the oldest. Raises `OSError`.
        """
        order = sorted(self._known, key=lambda each: _worth(self._known[each]))
        excess = tuple(order[: max(0, len(order) - self.limits.records)])
        for terminal_id in excess:
            self.remove(terminal_id)
        return excess

    def _read(self, terminal_id: TerminalId) -> ScreenRecord:
        limit = self.limits.record_bytes
        with self._path(terminal_id).open("rb") as file:
            # One more, so that a longer file is seen to be one.
            record = decode_record(file.read(limit + 1), limit_bytes=limit)
        if record.meta.terminal_id != terminal_id:
            raise RecordInvalid("the record of another terminal")
        return record

    def _path(self, terminal_id: TerminalId) -> Path:
        return self._folder / (terminal_id + SUFFIX)

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _sync_folder(self) -> None:
        """Bring names given and taken to the disk: files alone do not (fsync(2))."""
        with _opened(self._folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            os.fsync(descriptor)


def _worth(meta: RecordMeta | None) -> tuple[int, float]:
    if meta is None:
        return 0, 0.0
    return 1 if meta.ended_at is not None else 2, meta.saved_at.timestamp()


def _write(path: Path, data: bytes) -> None:
    """Write a new file, whole and on disk."""
    with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | _LEAVE_ALONE, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
