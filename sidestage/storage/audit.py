"""The audit log's table: append-only by trigger, chained by hash."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Column, Integer, Row, Table, Text, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.audit import AuditEntry, AuditOutcome, AuditRecord
from sidestage.canonical import pae
from sidestage.storage.schema import UtcTime, metadata

audit_entries = Table(
    "audit_entries",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", UtcTime, nullable=False),
    Column("actor", Text, nullable=False),
    Column("address", Text),
    Column("action", Text, nullable=False),
    Column("target_id", Text),
    Column("outcome", Text, nullable=False),
    Column("code", Text),
    Column("message_id", Text),
    Column("detail", Text),
    Column("prev", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

GENESIS: Final = "0" * 64
"""What the first entry names as its predecessor."""


def entry_hash(seq: int, at: datetime, record: AuditRecord, prev: str) -> str:
    """Return the hex SHA-256 that chains an entry to *prev* (docs/security.md)."""
    fields = (
        record.actor,
        record.address or "",
        record.action,
        record.target_id or "",
        record.outcome.value,
        record.code or "",
        record.message_id or "",
        record.detail or "",
    )
    stamp = at.isoformat(timespec="microseconds")
    text = pae(("sidestage/audit/v1", str(seq), stamp, *fields, prev))
    return hashlib.sha256(text).hexdigest()


async def append_entry(
    db: AsyncConnection, record: AuditRecord, *, at: datetime
) -> AuditEntry:
    """Chain *record* to the newest entry, inside the caller's transaction."""
    newest = await head_entry(db)
    seq = newest.seq + 1 if newest else 1
    prev = newest.hash if newest else GENESIS
    digest = entry_hash(seq, at, record, prev)
    await db.execute(
        insert(audit_entries).values(
            seq=seq,
            at=at,
            actor=record.actor,
            address=record.address,
            action=record.action,
            target_id=record.target_id,
            outcome=record.outcome.value,
            code=record.code,
            message_id=record.message_id,
            detail=record.detail,
            prev=prev,
            hash=digest,
        )
    )
    return AuditEntry(seq, at, record, digest)


async def head_entry(db: AsyncConnection) -> AuditEntry | None:
    """Return the newest entry, or None."""
    query = select(audit_entries).order_by(audit_entries.c.seq.desc()).limit(1)
    row = (await db.execute(query)).first()
    return None if row is None else _entry(row)


async def list_entries(
    db: AsyncConnection, *, limit: int, before_seq: int | None, after_seq: int | None
) -> tuple[AuditEntry, ...]:
    """Return entries newest first (see `sidestage.audit.AuditLog.list_entries`)."""
    query = select(audit_entries).limit(limit)
    if before_seq is not None:
        query = query.where(audit_entries.c.seq < before_seq)
    if after_seq is not None:
        query = query.where(audit_entries.c.seq > after_seq)
    upwards = after_seq is not None and before_seq is None
    column = audit_entries.c.seq
    rows = (
        await db.execute(query.order_by(column if upwards else column.desc()))
    ).all()
    return tuple(_entry(row) for row in (reversed(rows) if upwards else rows))


async def first_broken_seq(db: AsyncConnection) -> int | None:
    """Walk the chain; return the first entry that does not fit, or None."""
    prev, expected = GENESIS, 1
    result = await db.stream(select(audit_entries).order_by(audit_entries.c.seq))
    async for rows in result.partitions(1000):
        expected, prev, broken = _check_rows(rows, expected, prev)
        if broken is not None:
            return broken
    return None


def _check_rows(
    rows: Sequence[Row[tuple[object, ...]]], expected: int, prev: str
) -> tuple[int, str, int | None]:
    for row in rows:
        entry = _entry(row)
        digest = entry_hash(entry.seq, entry.at, entry.record, prev)
        if entry.seq != expected or row.prev != prev or entry.hash != digest:
            return expected, prev, entry.seq
        expected, prev = expected + 1, entry.hash
    return expected, prev, None


def _entry(row: Row[tuple[object, ...]]) -> AuditEntry:
    record = AuditRecord(
        actor=row.actor,
        action=row.action,
        target_id=row.target_id,
        outcome=AuditOutcome(row.outcome),
        address=row.address,
        code=row.code,
        message_id=row.message_id,
        detail=row.detail,
    )
    return AuditEntry(row.seq, row.at, record, row.hash)
