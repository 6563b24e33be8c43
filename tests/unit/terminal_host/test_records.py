"""The folder of records: what is kept, what gives way, what a crash may leave."""

import errno
import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from sidestage.ids import TerminalId
from terminal_host.host.record_format import RecordTooLarge, encode_record
from terminal_host.host.records import RecordLimits, RecordStore
from tests.fakes.records import NOON, make_record

A = TerminalId("terminal:a")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "screens"


@pytest.fixture
def store(folder: Path) -> RecordStore:
    store = RecordStore(folder)
    assert store.open() == ()
    return store


def test_a_saved_record_is_found_by_the_next_host(
    store: RecordStore, folder: Path
) -> None:
    record = make_record()
    assert store.save(record) == ()
    later = RecordStore(folder)
    assert later.open() == (record.meta,)
    assert later.find(A) == record


def test_folder_and_files_are_for_their_owner_alone(
    store: RecordStore, folder: Path
) -> None:
    folder.chmod(0o755)
    store.open()
    store.save(make_record())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "terminal:a.screen").stat().st_mode) == 0o600


def test_what_an_unfinished_write_left_is_deleted(
    store: RecordStore, folder: Path
) -> None:
    store.save(make_record())
    (folder / ".new-terminal:b").write_bytes(b"half")
    assert len(store.open()) == 1
    assert [path.name for path in folder.iterdir()] == ["terminal:a.screen"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"SIDESCRN",
        encode_record(make_record("terminal:other")),
        b"\0" * (5 << 20),
    ],
    ids=["empty", "short", "of another terminal", "over-long"],
)
def test_a_file_that_is_no_record_counts_as_absent(
    store: RecordStore, folder: Path, content: bytes
) -> None:
    """durability 4: the start goes on, and others are unaffected."""
    store.save(make_record("terminal:b"))
    (folder / "terminal:a.screen").write_bytes(content)
    assert [meta.terminal_id for meta in store.open()] == ["terminal:b"]
    assert store.find(A) is None
    store.save(make_record())
    assert store.find(A) is not None


def test_a_removed_record_is_gone_and_removing_it_again_is_no_error(
    store: RecordStore, folder: Path
) -> None:
    store.save(make_record())
    store.remove(A)
    store.remove(A)
    assert store.find(A) is None
    assert list(folder.iterdir()) == []


def test_a_screen_beyond_the_bound_leaves_no_older_one(folder: Path) -> None:
    """durability 7."""
    store = RecordStore(folder, RecordLimits(record_bytes=2000))
    store.open()
    store.save(make_record())
    with pytest.raises(RecordTooLarge):
        store.save(make_record(screen=b"x" * 2000))
    assert store.find(A) is None


def test_beyond_the_number_unreadable_then_ended_then_the_oldest_give_way(
    folder: Path,
) -> None:
    """durability 7: the newest stay."""
    store = RecordStore(folder, RecordLimits(records=3))
    folder.mkdir()
    (folder / "terminal:broken.screen").write_bytes(b"?")
    store.open()
    gone = [
        store.save(
            make_record(
                f"terminal:{name}",
                saved_at=NOON + timedelta(minutes=minute),
                ended_at=NOON if name.startswith("ended") else None,
            )
        )
        for minute, name in enumerate(
            ["old", "ended1", "ended2", "new", "newer", "newest", "last"]
        )
    ]
    assert gone == [
        (),
        (),
        ("terminal:broken",),
        ("terminal:ended1",),
        ("terminal:ended2",),
        ("terminal:old",),
        ("terminal:new",),
    ]
    assert sorted(path.name for path in folder.iterdir()) == [
        "terminal:last.screen",
        "terminal:newer.screen",
        "terminal:newest.screen",
    ]


@pytest.mark.parametrize("name", ["write", "fsync"])
def test_a_write_that_fails_leaves_the_older_record_and_nothing_else(
    store: RecordStore, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """durability 6: a full disk."""
    before = make_record(screen=b"before")
    store.save(before)

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail)
        with pytest.raises(OSError, match="No space"):
            store.save(make_record(screen=b"after"))
    assert store.find(A) == before
    assert [path.name for path in folder.iterdir()] == ["terminal:a.screen"]
    store.save(make_record(screen=b"after"))
    found = store.find(A)
    assert found is not None
    assert found.screen == b"after"


def test_a_write_that_is_cut_short_goes_on(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    record = make_record(screen=b"long enough" * 50)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, data[:100]))
        store.save(record)
    assert store.find(A) == record


def test_content_and_name_are_synced_in_this_order(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the folder's own sync a rename may be lost with the power."""
    steps: list[str] = []
    fsync, replace, unlink = os.fsync, Path.replace, Path.unlink

    def note_sync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def note_replace(path: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(path, target)

    def note_unlink(path: Path, *, missing_ok: bool = False) -> None:
        steps.append("unlink")
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", note_sync)
        patch.setattr(Path, "replace", note_replace)
        patch.setattr(Path, "unlink", note_unlink)
        store.save(make_record())
        store.remove(A)
    assert steps == ["file", "rename", "folder", "unlink", "folder"]


def test_a_folder_that_vanished_is_made_again(store: RecordStore, folder: Path) -> None:
    folder.rmdir()
    store.save(make_record())
    assert store.find(A) is not None
