import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.errors import StorageUnavailable
from sidestage.storage import database as module
from sidestage.storage.database import Database
from sidestage.storage.stores import SqlAuditLog


@pytest.fixture
async def database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Database]:
    patience = tuple(
        "PRAGMA busy_timeout=20" if "busy_timeout" in pragma else pragma
        for pragma in module._PRAGMAS
    )
    monkeypatch.setattr(module, "_PRAGMAS", patience)
    opened = await Database.open(tmp_path / "sidestage.db")
    yield opened
    await opened.close()


def record(detail: str = "") -> AuditRecord:
    return AuditRecord("admin", "test", None, AuditOutcome.DONE, detail=detail)


async def limit_pages(database: Database, pages: int) -> None:
    """Leave room for so many pages: what a disk does that is nearly full."""
    async with database.write() as db:
        await db.execute(text(f"PRAGMA max_page_count = {pages}"))


async def test_a_full_disk_is_told_and_nothing_is_lost(database: Database) -> None:
    log = SqlAuditLog(database)
    kept = await log.write(record())
    await limit_pages(database, 1)
    with pytest.raises(StorageUnavailable, match="disk is full"):
        await log.write(record("x" * 200_000))
    assert await log.head() == kept
    await limit_pages(database, 100_000)
    assert (await log.write(record("x" * 200_000))).seq == kept.seq + 1


async def test_a_lock_that_is_never_let_go_is_told(
    database: Database, tmp_path: Path
) -> None:
    log = SqlAuditLog(database)
    other = sqlite3.connect(tmp_path / "sidestage.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable, match="another program holds it"):
        await log.write(record())
    assert await log.head() is None  # reading goes on
    other.execute("ROLLBACK")
    other.close()
    assert (await log.write(record())).seq == 1


async def test_damage_that_comes_later_is_told(
    database: Database, tmp_path: Path
) -> None:
    path = tmp_path / "sidestage.db"
    log = SqlAuditLog(database)
    for _ in range(20):
        await log.write(record("x" * 4_000))
    async with database.write() as db:
        await db.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
    await database.close()
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StorageUnavailable, match="damaged"):
        await log.list_entries(limit=50)


async def test_a_mistake_of_ours_is_no_fault_of_the_disk(database: Database) -> None:
    with pytest.raises(OperationalError, match="no such table"):
        async with database.read() as db:
            await db.execute(text("SELECT * FROM missing_table"))


async def test_a_file_that_is_no_database_is_refused_with_what_to_do(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sidestage.db"
    path.write_bytes(b"garbage" * 1000)
    with pytest.raises(StorageUnavailable, match="damaged") as told:
        await Database.open(path)
    assert str(path) in str(told.value)
    assert "move it away" in str(told.value)
    assert path.read_bytes().startswith(b"garbage")


async def test_a_database_in_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="cannot be made"):
        await Database.open(tmp_path / "missing" / "sidestage.db")


async def test_a_database_that_is_held_at_the_start_is_refused(
    database: Database, tmp_path: Path
) -> None:
    other = sqlite3.connect(tmp_path / "sidestage.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable, match="another program holds it"):
        await Database.open(tmp_path / "sidestage.db")
    other.close()
