"""What every other part stands on: the database, this host's id and the audit log."""

import platform
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sidestage.ids import HostId, new_id
from sidestage.settings import Settings
from sidestage.storage import meta
from sidestage.storage.database import Database
from sidestage.storage.stores import SqlAuditLog


@dataclass(frozen=True, slots=True)
class Ground:
    """The open database and what is read from it first."""

    database: Database
    host_id: HostId
    host_name: str
    audit: SqlAuditLog


@asynccontextmanager
async def open_ground(settings: Settings) -> AsyncGenerator[Ground]:
    """Open the database until the block ends."""
    database = await Database.open(settings.database)
    try:
        async with database.write() as db:
            host_id = await meta.get_or_add(db, "host_id", new_id("host"))
        yield Ground(
            database=database,
            host_id=HostId(host_id),
            host_name=platform.node() or "this machine",
            audit=SqlAuditLog(database),
        )
    finally:
        await database.close()
