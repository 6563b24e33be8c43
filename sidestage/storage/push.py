"""The tables of push endpoints, and of who was told of what."""

from sqlalchemy import Column, LargeBinary, Row, Table, Text, delete, select
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.audit import AuditRecord
from sidestage.devices.push import PushEndpoint, Told, WebPushKeys
from sidestage.ids import DeviceId
from sidestage.storage import audit
from sidestage.storage.database import Database
from sidestage.storage.schema import UtcTime, metadata
from sidestage.storage.stores import Clock, utc_now

push_endpoints = Table(
    "push_endpoints",
    metadata,
    Column("id", Text, primary_key=True),
    Column("device_id", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("p256dh", LargeBinary),
    Column("auth", LargeBinary),
    Column("secret", LargeBinary),
)
"""Web Push has the keys, a webhook the secret."""

push_told = Table(
    "push_told",
    metadata,
    Column("subject_id", Text, primary_key=True),
    Column("device_id", Text, primary_key=True),
    Column("topic", Text, nullable=False),
)
"""What is to be withdrawn when it is over, also by the next server."""


async def forget_device(db: AsyncConnection, device_id: DeviceId) -> None:
    """Delete all that lets a device be told."""
    for table in (push_endpoints, push_told):
        await db.execute(delete(table).where(table.c.device_id == device_id))


class SqlPushStore:
    """`sidestage.devices.push.PushStore` on the database: one transaction a call."""

    def __init__(self, database: Database, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    async def load(self) -> tuple[tuple[PushEndpoint, ...], tuple[Told, ...]]:
        """Return everything, endpoints oldest first."""
        order = (push_endpoints.c.created_at, push_endpoints.c.id)
        async with self._database.read() as db:
            endpoints = await db.execute(select(push_endpoints).order_by(*order))
            told = await db.execute(select(push_told))
            return (
                tuple(_endpoint(row) for row in endpoints),
                tuple(Told(*row) for row in told),
            )

    async def put(self, endpoint: PushEndpoint, record: AuditRecord) -> None:
        """Write the endpoint over the one with its id."""
        values = _values(endpoint)
        statement = upsert(push_endpoints).values(values)
        async with self._database.write() as db:
            await db.execute(statement.on_conflict_do_update(set_=values))
            await audit.append_entry(db, record, at=self._clock())

    async def remove(self, endpoint_id: str, record: AuditRecord) -> None:
        """Delete the endpoint."""
        async with self._database.write() as db:
            which = push_endpoints.c.id == endpoint_id
            await db.execute(delete(push_endpoints).where(which))
            await audit.append_entry(db, record, at=self._clock())

    async def add_told(self, told: Told) -> None:
        """Remember that the device was told."""
        values = {
            "subject_id": told.subject_id,
            "device_id": told.device_id,
            "topic": told.topic,
        }
        async with self._database.write() as db:
            await db.execute(upsert(push_told).values(values).on_conflict_do_nothing())

    async def forget_told(self, subject_id: str) -> None:
        """Forget who was told of the subject."""
        async with self._database.write() as db:
            which = push_told.c.subject_id == subject_id
            await db.execute(delete(push_told).where(which))


def _values(endpoint: PushEndpoint) -> dict[str, object]:
    keys = endpoint.keys
    return {
        "id": endpoint.id,
        "device_id": endpoint.device_id,
        "url": endpoint.url,
        "created_at": endpoint.created_at,
        "p256dh": None if keys is None else keys.p256dh,
        "auth": None if keys is None else keys.auth,
        "secret": endpoint.secret,
    }


def _endpoint(row: Row[tuple[object, ...]]) -> PushEndpoint:
    has_keys = row.p256dh is not None
    return PushEndpoint(
        id=row.id,
        device_id=DeviceId(row.device_id),
        url=row.url,
        created_at=row.created_at,
        keys=WebPushKeys(p256dh=row.p256dh, auth=row.auth) if has_keys else None,
        secret=row.secret,
    )
