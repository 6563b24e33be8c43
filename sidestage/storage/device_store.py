"""`sidestage.devices.store.DeviceStore` on the database."""

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import TypeAlias

from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.audit import AuditRecord
from sidestage.devices.model import Device
from sidestage.devices.store import KeptEnvelope, StoredDevice
from sidestage.devices.tokens import StoredToken
from sidestage.envelopes.envelope import Purpose
from sidestage.ids import DeviceId
from sidestage.storage import audit, devices, tokens
from sidestage.storage.database import Database
from sidestage.storage.stores import Clock, utc_now

ForgetDevice: TypeAlias = Callable[[AsyncConnection, DeviceId], Awaitable[None]]
"""Deletes what another table holds for a device, in the transaction it is given."""


class SqlDeviceStore:
    """Every call is one transaction, with its audit record in it.

    *forget* is what other tables delete when a device is revoked: envelopes of offers
    and requests, push subscriptions.
    """

    def __init__(
        self,
        database: Database,
        *,
        forget: Iterable[ForgetDevice] = (),
        clock: Clock = utc_now,
    ) -> None:
        self._database = database
        self._forget = tuple(forget)
        self._clock = clock

    async def load(self) -> tuple[tuple[StoredDevice, ...], tuple[KeptEnvelope, ...]]:
        """Return every device, oldest first, and every kept envelope."""
        async with self._database.read() as db:
            return await devices.list_devices(db), await devices.list_kept(db)

    async def pair(
        self,
        stored: StoredDevice,
        token: StoredToken,
        credentials: KeptEnvelope,
        record: AuditRecord,
    ) -> None:
        """Insert a device with its token and the envelope that carries it."""
        async with self._database.write() as db:
            await devices.add_device(db, stored)
            await tokens.add_token(db, token)
            await devices.keep_envelope(db, credentials)
            await audit.append_entry(db, record, at=self._clock())

    async def save(self, device: Device, record: AuditRecord | None = None) -> None:
        """Write *device* over its row."""
        async with self._database.write() as db:
            await devices.save_device(db, device)
            if record is not None:
                await audit.append_entry(db, record, at=self._clock())

    async def activate(
        self, device: Device, old_token_ids: tuple[str, ...], record: AuditRecord
    ) -> None:
        """Write *device*, drop its `credentials` envelope, mark old tokens replaced."""
        now = self._clock()
        async with self._database.write() as db:
            await devices.save_device(db, device)
            await devices.delete_kept(db, device.id, Purpose.CREDENTIALS)
            await tokens.delete_replaced_tokens(db, device.id)
            for token_id in old_token_ids:
                await tokens.mark_token_replaced(db, token_id, now)
            await audit.append_entry(db, record, at=now)

    async def remove(self, device_id: DeviceId, record: AuditRecord) -> None:
        """Delete the device, its tokens and its kept envelopes."""
        async with self._database.write() as db:
            await devices.delete_device(db, device_id)
            await devices.delete_kept(db, device_id)
            await tokens.delete_tokens_of(db, device_id)
            await audit.append_entry(db, record, at=self._clock())

    async def revoke(self, device: Device, record: AuditRecord) -> None:
        """Write *device* and delete all that lets it call, open or be reached."""
        async with self._database.write() as db:
            await devices.save_device(db, device)
            await devices.delete_kept(db, device.id)
            await tokens.delete_tokens_of(db, device.id)
            for forget in self._forget:
                await forget(db, device.id)
            await audit.append_entry(db, record, at=self._clock())

    async def refresh(
        self,
        token: StoredToken,
        credentials: KeptEnvelope,
        never_opened: str | None,
        record: AuditRecord,
    ) -> None:
        """Insert a further token of a device with the envelope that carries it."""
        async with self._database.write() as db:
            if never_opened is not None:
                await tokens.delete_token(db, never_opened)
            await tokens.add_token(db, token)
            await devices.keep_envelope(db, credentials)
            await audit.append_entry(db, record, at=self._clock())

    async def keep(
        self, envelopes: tuple[KeptEnvelope, ...], record: AuditRecord
    ) -> None:
        """Keep *envelopes* in place of those of the same device and purpose."""
        async with self._database.write() as db:
            for kept in envelopes:
                await devices.keep_envelope(db, kept)
            await audit.append_entry(db, record, at=self._clock())

    async def mark_seen(self, device_id: DeviceId, at: datetime) -> None:
        """Note when the device last called."""
        async with self._database.write() as db:
            await devices.mark_device_seen(db, device_id, at)
