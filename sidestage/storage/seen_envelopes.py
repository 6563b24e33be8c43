"""The table of answers that were accepted: what makes a retry safe and a replay known.

`add_seen` and `set_outcome` run in the caller's transaction, so that an answer's row
and its effect are written together or not at all.
"""

from sqlalchemy import BigInteger, Column, LargeBinary, Table, Text, delete, select
from sqlalchemy import update as sql_update
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.envelopes.replay import SeenEnvelope
from sidestage.ids import DeviceId
from sidestage.storage.database import Database
from sidestage.storage.schema import metadata

seen_envelopes = Table(
    "seen_envelopes",
    metadata,
    Column("device_id", Text, primary_key=True),
    Column("message_id", Text, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("keep_until_ms", BigInteger, nullable=False, index=True),
    Column("outcome", Text),
)


async def find_seen(
    db: AsyncConnection, device_id: DeviceId, message_id: str
) -> SeenEnvelope | None:
    """Return the row of that message of that device, or None."""
    table = seen_envelopes.c
    query = select(seen_envelopes).where(
        table.device_id == device_id, table.message_id == message_id
    )
    row = (await db.execute(query)).first()
    if row is None:
        return None
    return SeenEnvelope(
        device_id=DeviceId(row.device_id),
        message_id=row.message_id,
        digest=row.digest,
        keep_until_ms=row.keep_until_ms,
        outcome=row.outcome,
    )


async def add_seen(db: AsyncConnection, seen: SeenEnvelope) -> SeenEnvelope:
    """Keep *seen* unless its message is known; return the row that is kept.

    Of two callers with one message id the second finds the first one's row: compare it
    with `check_not_replayed`, which may raise and so undo the transaction.
    """
    values = {
        "device_id": seen.device_id,
        "message_id": seen.message_id,
        "digest": seen.digest,
        "keep_until_ms": seen.keep_until_ms,
        "outcome": seen.outcome,
    }
    await db.execute(insert(seen_envelopes).values(values).on_conflict_do_nothing())
    kept = await find_seen(db, seen.device_id, seen.message_id)
    assert kept is not None, "it was inserted, or was there"
    return kept


async def set_outcome(
    db: AsyncConnection, device_id: DeviceId, message_id: str, outcome: str
) -> None:
    """Write down how it ended; the first outcome stays. Unknown: nothing."""
    table = seen_envelopes.c
    await db.execute(
        sql_update(seen_envelopes)
        .where(
            table.device_id == device_id,
            table.message_id == message_id,
            table.outcome.is_(None),
        )
        .values(outcome=outcome)
    )


async def delete_seen_before(db: AsyncConnection, now_ms: int) -> None:
    """Drop the rows whose `keep_until_ms` has passed."""
    await db.execute(
        delete(seen_envelopes).where(seen_envelopes.c.keep_until_ms <= now_ms)
    )


class SqlSeenEnvelopes:
    """`sidestage.envelopes.replay.SeenEnvelopes`, one transaction a call."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, device_id: DeviceId, message_id: str) -> SeenEnvelope | None:
        """Return the row of that message of that device, or None."""
        async with self._database.read() as db:
            return await find_seen(db, device_id, message_id)

    async def add(self, seen: SeenEnvelope) -> SeenEnvelope:
        """Keep *seen* unless its message is known; return the row that is kept."""
        async with self._database.write() as db:
            return await add_seen(db, seen)

    async def settle(self, device_id: DeviceId, message_id: str, outcome: str) -> None:
        """Write down how it ended; the first outcome stays. Unknown: nothing."""
        async with self._database.write() as db:
            await set_outcome(db, device_id, message_id, outcome)

    async def forget_before(self, now_ms: int) -> None:
        """Drop the rows whose `keep_until_ms` has passed."""
        async with self._database.write() as db:
            await delete_seen_before(db, now_ms)
