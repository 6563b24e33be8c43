"""The tables of paired devices and of the envelopes kept for them."""

from datetime import datetime

import orjson
from sqlalchemy import (
    Column,
    LargeBinary,
    Row,
    Table,
    Text,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.devices.model import ContentMode, Device, DeviceState, Scope
from sidestage.devices.store import KeptEnvelope, PairedBy, StoredDevice
from sidestage.envelopes.envelope import Envelope, Purpose
from sidestage.ids import DeviceId
from sidestage.storage.schema import UtcTime, metadata

devices = Table(
    "devices",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("key", LargeBinary, nullable=False, unique=True),
    Column("key_id", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("paired_at", UtcTime, nullable=False),
    Column("last_seen_at", UtcTime),
    Column("revoked_at", UtcTime),
    Column("pairing_id", Text, nullable=False, unique=True),
    Column("request_sha256", LargeBinary, nullable=False),
)
"""Revoked devices stay: a key that was registered once is never taken again."""

kept_envelopes = Table(
    "kept_envelopes",
    metadata,
    Column("device_id", Text, primary_key=True),
    Column("purpose", Text, primary_key=True),
    Column("envelope", Text, nullable=False),
    Column("token_id", Text),
)
"""`envelope`: its fields as they travel, as JSON."""


async def list_devices(db: AsyncConnection) -> tuple[StoredDevice, ...]:
    """Return every device, in the order in which they were paired."""
    order = (devices.c.paired_at, devices.c.id)
    rows = await db.execute(select(devices).order_by(*order))
    return tuple(_device(row) for row in rows)


async def add_device(db: AsyncConnection, stored: StoredDevice) -> None:
    """Insert the device."""
    values = {
        **_values(stored.device),
        "pairing_id": stored.paired_by.pairing_id,
        "request_sha256": stored.paired_by.request_sha256,
    }
    await db.execute(insert(devices).values(values))


async def save_device(db: AsyncConnection, device: Device) -> None:
    """Write *device* over its row."""
    await db.execute(
        update(devices).where(devices.c.id == device.id).values(_values(device))
    )


async def mark_device_seen(
    db: AsyncConnection, device_id: DeviceId, at: datetime
) -> None:
    """Note when the device last called."""
    await db.execute(
        update(devices).where(devices.c.id == device_id).values(last_seen_at=at)
    )


async def delete_device(db: AsyncConnection, device_id: DeviceId) -> None:
    """Delete the row."""
    await db.execute(delete(devices).where(devices.c.id == device_id))


async def list_kept(db: AsyncConnection) -> tuple[KeptEnvelope, ...]:
    """Return every kept envelope."""
    return tuple(_kept(row) for row in await db.execute(select(kept_envelopes)))


async def keep_envelope(db: AsyncConnection, kept: KeptEnvelope) -> None:
    """Keep it, in place of the one of that device and purpose."""
    values = {
        "device_id": kept.device_id,
        "purpose": kept.purpose.value,
        "envelope": orjson.dumps(kept.envelope.to_fields()).decode(),
        "token_id": kept.token_id,
    }
    changed = {name: values[name] for name in ("envelope", "token_id")}
    statement = upsert(kept_envelopes).values(values)
    await db.execute(statement.on_conflict_do_update(set_=changed))


async def delete_kept(
    db: AsyncConnection, device_id: DeviceId, purpose: Purpose | None = None
) -> None:
    """Delete the device's envelope of that purpose; all of its envelopes without."""
    statement = delete(kept_envelopes).where(kept_envelopes.c.device_id == device_id)
    if purpose is not None:
        statement = statement.where(kept_envelopes.c.purpose == purpose.value)
    await db.execute(statement)


def _values(device: Device) -> dict[str, object]:
    return {
        "id": device.id,
        "name": device.name,
        "platform": device.platform,
        "key": device.key,
        "key_id": device.key_id,
        "scopes": " ".join(sorted(device.scopes)),
        "content": device.content.value,
        "state": device.state.value,
        "paired_at": device.paired_at,
        "last_seen_at": device.last_seen_at,
        "revoked_at": device.revoked_at,
    }


def _device(row: Row[tuple[object, ...]]) -> StoredDevice:
    device = Device(
        id=DeviceId(row.id),
        name=row.name,
        platform=row.platform,
        key=row.key,
        key_id=row.key_id,
        scopes=frozenset(Scope(word) for word in row.scopes.split()),
        content=ContentMode(row.content),
        state=DeviceState(row.state),
        paired_at=row.paired_at,
        last_seen_at=row.last_seen_at,
        revoked_at=row.revoked_at,
    )
    return StoredDevice(device, PairedBy(row.pairing_id, row.request_sha256))


def _kept(row: Row[tuple[object, ...]]) -> KeptEnvelope:
    return KeptEnvelope(
        DeviceId(row.device_id),
        Purpose(row.purpose),
        Envelope.from_fields(orjson.loads(row.envelope)),
        row.token_id,
    )
