"""The paired devices in memory, each change written down first."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from sidestage.audit import AuditRecord
from sidestage.devices.model import Device, DeviceState
from sidestage.devices.store import DeviceStore, KeptEnvelope, PairedBy, StoredDevice
from sidestage.devices.tokens import StoredToken
from sidestage.envelopes.envelope import Purpose
from sidestage.errors import DeviceNotFound
from sidestage.feeds import Feed
from sidestage.ids import DeviceId

DEVICES_LIMIT: Final = 20
"""Devices that are not revoked: every offer is sealed for each that may answer."""


class DeviceRegistry:
    """`sidestage.devices.model.Devices`, and the envelopes kept for them."""

    def __init__(self, store: DeviceStore, *, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._feed: Feed[Device] = Feed(lambda device: device.id, clock=clock)
        self._paired_by: dict[DeviceId, PairedBy] = {}
        self._kept: dict[tuple[DeviceId, Purpose], KeptEnvelope] = {}
        self.changing = asyncio.Lock()
        """Held by whoever reads a device and writes it changed."""

    async def load(self) -> None:
        """Read everything from the store. Call once, before anything else."""
        devices, kept = await self._store.load()
        for stored in devices:
            self._paired_by[stored.device.id] = stored.paired_by
            self._feed.upsert(stored.device)
        for each in kept:
            self._remember(each)

    @property
    def feed(self) -> Feed[Device]:
        """The devices by id, revoked ones included, with their changes."""
        return self._feed

    def list_answering(self) -> tuple[Device, ...]:
        """Return the devices that may answer, in the order they were paired."""
        return tuple(device for device in self._feed.values() if device.may_answer)

    def list_live(self) -> tuple[Device, ...]:
        """Return the devices that are not revoked."""
        return tuple(
            device
            for device in self._feed.values()
            if device.state is not DeviceState.REVOKED
        )

    def get(self, device_id: DeviceId) -> Device:
        """Return the device; raise `DeviceNotFound` if there is none."""
        device = self._feed.get(device_id)
        if device is None:
            raise DeviceNotFound("There is no such device.")
        return device

    def is_key_known(self, raw: bytes) -> bool:
        """Tell whether the key was registered once, even if revoked since."""
        return any(device.key == raw for device in self._feed.values())

    def find_paired(self, pairing_id: str) -> StoredDevice | None:
        """Return the device that the pairing made, or None."""
        for device_id, paired_by in self._paired_by.items():
            if paired_by.pairing_id == pairing_id:
                return StoredDevice(self.get(device_id), paired_by)
        return None

    def find_kept(self, device_id: DeviceId, purpose: Purpose) -> KeptEnvelope | None:
        """Return the envelope kept for the device, or None."""
        return self._kept.get((device_id, purpose))

    async def add(
        self,
        stored: StoredDevice,
        token: StoredToken,
        credentials: KeptEnvelope,
        record: AuditRecord,
    ) -> None:
        """Take a device in, with its token and the envelope that carries it."""
        await self._store.pair(stored, token, credentials, record)
        self._paired_by[stored.device.id] = stored.paired_by
        self._remember(credentials)
        self._feed.upsert(stored.device)

    async def save(self, device: Device, record: AuditRecord) -> None:
        """Write *device* in place of what it was."""
        await self._store.save(device, record)
        self._feed.upsert(device)

    async def activate(
        self, device: Device, old_token_ids: tuple[str, ...], record: AuditRecord
    ) -> None:
        """Write *device*, whose token was used: its envelope is needed no more."""
        await self._store.activate(device, old_token_ids, record)
        self._kept.pop((device.id, Purpose.CREDENTIALS), None)
        self._feed.upsert(device)

    async def remove(self, device_id: DeviceId, record: AuditRecord) -> None:
        """Forget a device that never called."""
        await self._store.remove(device_id, record)
        self._drop_kept(device_id)
        self._paired_by.pop(device_id, None)
        self._feed.remove(device_id)

    async def revoke(self, device: Device, record: AuditRecord) -> None:
        """Write *device*, revoked, and delete all that served it."""
        await self._store.revoke(device, record)
        self._drop_kept(device.id)
        self._feed.upsert(device)

    async def refresh(
        self,
        token: StoredToken,
        credentials: KeptEnvelope,
        never_opened: str | None,
        record: AuditRecord,
    ) -> None:
        """Keep a further token of a device and the envelope that carries it."""
        await self._store.refresh(token, credentials, never_opened, record)
        self._remember(credentials)

    async def keep(
        self, envelopes: tuple[KeptEnvelope, ...], record: AuditRecord
    ) -> None:
        """Keep *envelopes*; a `host-key` one is told in its device's row."""
        await self._store.keep(envelopes, record)
        for kept in envelopes:
            self._remember(kept)

    async def mark_seen(self, device_id: DeviceId, at: datetime) -> None:
        """Note when the device last called."""
        async with self.changing:
            device = self._feed.get(device_id)
            if device is not None:
                await self._store.mark_seen(device_id, at)
                self._feed.upsert(replace(device, last_seen_at=at))

    def _remember(self, kept: KeptEnvelope) -> None:
        self._kept[kept.device_id, kept.purpose] = kept
        device = self._feed.get(kept.device_id)
        if device is not None and kept.purpose is Purpose.HOST_KEY:
            # Its message id: another envelope is another row, so that the feed tells.
            message_id = kept.envelope.header.message_id
            self._feed.upsert(replace(device, announced_by=message_id))

    def _drop_kept(self, device_id: DeviceId) -> None:
        for purpose in Purpose:
            self._kept.pop((device_id, purpose), None)
