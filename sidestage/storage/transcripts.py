"""The transcript index: one row a file, so that a start need not read every file."""

import os
from collections.abc import Iterable
from typing import Final

from sqlalchemy import BigInteger, Column, LargeBinary, Table, Text, delete, select
from sqlalchemy.dialects.sqlite import insert

from sidestage.sessions.index import StoredTranscript
from sidestage.storage.database import Database
from sidestage.storage.schema import metadata

FORGET_LIMIT_ROWS: Final = 500
"""Rows named in one statement: SQLite takes at most 32,766 values."""

transcripts = Table(
    "transcripts",
    metadata,
    # Bytes: a file's name need not be text.
    Column("path", LargeBinary, primary_key=True),
    # Text: an inode number may need all of 64 unsigned bits.
    Column("inode", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)


class SqlTranscriptStore:
    """`sidestage.sessions.index.TranscriptStore` on the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> tuple[StoredTranscript, ...]:
        """Return every row."""
        async with self._database.read() as db:
            rows = await db.execute(select(transcripts))
            return tuple(
                StoredTranscript(
                    os.fsdecode(row.path),
                    int(row.inode),
                    row.size,
                    row.mtime_ns,
                    row.offset,
                    row.body,
                )
                for row in rows
            )

    async def save(self, rows: Iterable[StoredTranscript]) -> None:
        """Write rows by path, in one transaction."""
        values = [_values(row) for row in rows]
        if not values:
            return
        statement = insert(transcripts)
        changed = {
            column.name: statement.excluded[column.name]
            for column in transcripts.columns
            if not column.primary_key
        }
        upsert = statement.on_conflict_do_update(index_elements=["path"], set_=changed)
        async with self._database.write() as db:
            await db.execute(upsert, values)

    async def forget(self, paths: Iterable[str]) -> None:
        """Delete the rows of files that are gone."""
        gone = [os.fsencode(path) for path in paths]
        async with self._database.write() as db:
            for start in range(0, len(gone), FORGET_LIMIT_ROWS):
                batch = gone[start : start + FORGET_LIMIT_ROWS]
                await db.execute(
                    delete(transcripts).where(transcripts.c.path.in_(batch))
                )


def _values(row: StoredTranscript) -> dict[str, object]:
    return {
        "path": os.fsencode(row.path),
        "inode": str(row.inode),
        "size": row.size,
        "mtime_ns": row.mtime_ns,
        "offset": row.offset,
        "body": row.body,
    }
