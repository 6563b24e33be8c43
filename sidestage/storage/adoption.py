"""The table of the adoption policy: one row, or none for the default."""

from sqlalchemy import Boolean, Column, Integer, Table, Text, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.projects.adoption import AdoptionPolicy
from sidestage.storage.schema import metadata

adoption = Table(
    "adoption",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("enabled", Boolean, nullable=False),
    Column("excluded", Text, nullable=False),
)
"""`excluded`: the folders, one a line; none has a line feed in its name."""

_ONLY = 1


async def read_policy(db: AsyncConnection) -> AdoptionPolicy:
    """Return the policy; the default one if none was ever set."""
    row = (await db.execute(select(adoption))).first()
    if row is None:
        return AdoptionPolicy()
    return AdoptionPolicy(row.enabled, tuple(filter(None, row.excluded.split("\n"))))


async def write_policy(db: AsyncConnection, policy: AdoptionPolicy) -> None:
    """Write *policy* over the one before."""
    values = {"enabled": policy.enabled, "excluded": "\n".join(policy.excluded)}
    statement = insert(adoption).values(id=_ONLY, **values)
    await db.execute(statement.on_conflict_do_update(["id"], set_=values))
