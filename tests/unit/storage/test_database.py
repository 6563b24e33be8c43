import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.storage import (
    audit,
    devices,
    meta,
    projects,
    seen_envelopes,
    terminals,
    tokens,
    transcripts,
)
from sidestage.storage.database import Database
from sidestage.storage.schema import metadata
from sidestage.storage.stores import SqlAuditLog

TABLES = (
    audit,
    devices,
    meta,
    projects,
    seen_envelopes,
    terminals,
    tokens,
    transcripts,
)
"""Importing them declares their tables; a missing one would look like a difference."""


@pytest.fixture
async def database(tmp_path: Path) -> Database:
    return await Database.open(tmp_path / "sidestage.db")


def record(target: str = "project:1") -> AuditRecord:
    return AuditRecord("admin", "project.register", target, AuditOutcome.DONE)


async def test_the_migrations_make_exactly_the_tables_of_the_code(
    database: Database,
) -> None:
    def differences(connection: Connection) -> list[object]:
        context = MigrationContext.configure(connection)
        return list(compare_metadata(context, metadata))

    async with database.read() as db:
        assert await db.run_sync(differences) == []
    await database.close()


async def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "sidestage.db"
    database = await Database.open(path)
    await database.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_failed_write_leaves_nothing_behind(database: Database) -> None:
    async def fail_halfway() -> None:
        async with database.write() as db:
            await meta.get_or_add(db, "half", "done")
            await db.execute(text("INSERT INTO single_values VALUES ('half', NULL)"))

    with pytest.raises(IntegrityError):
        await fail_halfway()
    async with database.write() as db:
        assert await meta.get_or_add(db, "half", "new") == "new"
    await database.close()


async def test_the_audit_log_chains_its_entries(database: Database) -> None:
    log = SqlAuditLog(database)
    entries = [await log.write(record(f"project:{n}")) for n in range(4)]
    assert [entry.seq for entry in entries] == [1, 2, 3, 4]
    assert await log.head() == entries[-1]
    assert await log.first_broken_seq() is None
    await database.close()


async def test_the_audit_log_is_read_from_both_ends(database: Database) -> None:
    log = SqlAuditLog(database)
    for n in range(5):
        await log.write(record(f"project:{n}"))
    newest = await log.list_entries(limit=2)
    older = await log.list_entries(limit=2, before_seq=newest[-1].seq)
    nearest = await log.list_entries(limit=2, after_seq=1)
    assert [entry.seq for entry in newest] == [5, 4]
    assert [entry.seq for entry in older] == [3, 2]
    assert [entry.seq for entry in nearest] == [3, 2]
    await database.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entries SET actor = 'nobody' WHERE seq = 2",
        "DELETE FROM audit_entries WHERE seq = 2",
    ],
)
async def test_the_audit_log_refuses_changes(
    database: Database, statement: str
) -> None:
    log = SqlAuditLog(database)
    for n in range(3):
        await log.write(record(f"project:{n}"))
    with pytest.raises(IntegrityError, match="append-only"):
        async with database.write() as db:
            await db.execute(text(statement))
    await database.close()


@pytest.mark.parametrize(
    ("statement", "first_broken"),
    [
        ("UPDATE audit_entries SET target_id = 'project:9' WHERE seq = 2", 2),
        ("DELETE FROM audit_entries WHERE seq = 2", 3),
        ("UPDATE audit_entries SET seq = 9 WHERE seq = 3", 9),
        ("UPDATE audit_entries SET at = at + 1 WHERE seq = 1", 1),
    ],
)
async def test_who_gets_around_the_triggers_breaks_the_chain(
    database: Database, statement: str, first_broken: int
) -> None:
    log = SqlAuditLog(database)
    for n in range(3):
        await log.write(record(f"project:{n}"))
    async with database.write() as db:
        await db.execute(text("DROP TRIGGER audit_entries_no_update"))
        await db.execute(text("DROP TRIGGER audit_entries_no_delete"))
        await db.execute(text(statement))
    assert await log.first_broken_seq() == first_broken
    await database.close()


async def test_times_come_back_as_they_went(database: Database) -> None:
    at = datetime(2026, 11, 30, 21, 0, 0, 123456, tzinfo=UTC)
    log = SqlAuditLog(database, clock=lambda: at)
    await log.write(record())
    head = await log.head()
    assert head is not None
    assert head.at == at
    await database.close()
