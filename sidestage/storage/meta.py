"""The table of single values: this host's id and the like."""

from sqlalchemy import Column, Table, Text, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.storage.schema import metadata

single_values = Table(
    "single_values",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)


async def get_or_add(db: AsyncConnection, name: str, value: str) -> str:
    """Return the value under *name*; if there is none, *value* becomes it."""
    await db.execute(
        insert(single_values).values(name=name, value=value).on_conflict_do_nothing()
    )
    query = select(single_values.c.value).where(single_values.c.name == name)
    return str((await db.execute(query)).scalar_one())
