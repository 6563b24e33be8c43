"""The life of paired devices: renamed, revoked, and forgotten if they never called."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.devices.credentials import DeviceCredentials
from sidestage.devices.desk import Revoked
from sidestage.devices.host_keys import HostKeys
from sidestage.devices.keeper import TokenKeeper
from sidestage.devices.model import Device, DeviceState, Principal
from sidestage.devices.registry import DeviceRegistry
from sidestage.devices.sealing_desk import to_ms
from sidestage.envelopes.envelope import Envelope, Purpose
from sidestage.envelopes.keys import PublicKey
from sidestage.envelopes.replay import SeenEnvelopes
from sidestage.errors import InvalidInput
from sidestage.feeds import Feed
from sidestage.ids import DeviceId
from sidestage.text import clean_text

FIRST_CALL_WITHIN: Final = timedelta(minutes=10)
"""From the confirmation to the device's first call; then it is forgotten again."""
NAME_LIMIT_CHARACTERS: Final = 64
TIDY_SECONDS: Final = 3_600.0
"""Between two looks for what has passed its time; pending devices are looked for when
they are due."""


class DeviceService:
    """`sidestage.devices.desk.DeviceDesk`."""

    def __init__(
        self,
        registry: DeviceRegistry,
        keeper: TokenKeeper,
        keys: HostKeys,
        credentials: DeviceCredentials,
        seen: SeenEnvelopes,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._registry = registry
        self._keeper = keeper
        self._keys = keys
        self._credentials = credentials
        self._seen = seen
        self._clock = clock

    @property
    def feed(self) -> Feed[Device]:
        """The devices by id, revoked ones included, with their changes."""
        return self._registry.feed

    def list_answering(self) -> tuple[Device, ...]:
        """Return the devices that may answer, in the order they were paired."""
        return self._registry.list_answering()

    @property
    def host_key(self) -> PublicKey:
        """The key that devices pin."""
        return self._keys.current.public

    def find_key_news(self, device_id: DeviceId) -> Envelope | None:
        """Return the `host-key` envelope that the key before sealed for the device."""
        kept = self._registry.find_kept(device_id, Purpose.HOST_KEY)
        return None if kept is None else kept.envelope

    async def rename(
        self, device_id: DeviceId, name: str, *, actor: Principal
    ) -> Device:
        """Call the device *name*; raises `DeviceNotFound`, `InvalidInput`."""
        cleaned = clean_device_name(name)
        async with self._registry.changing:
            device = replace(self._registry.get(device_id), name=cleaned)
            await self._registry.save(device, _record("device.rename", device, actor))
        return device

    async def revoke(self, device_id: DeviceId, *, actor: Principal) -> Revoked:
        """Cut the device off, for good; raises `DeviceNotFound`."""
        async with self._registry.changing:
            device = self._registry.get(device_id)
            if device.state is DeviceState.REVOKED:
                return Revoked(device, was_revoked=True)
            revoked = replace(
                device, state=DeviceState.REVOKED, revoked_at=self._clock()
            )
            await self._registry.revoke(
                revoked, _record("device.revoke", device, actor)
            )
            self._keeper.forget_device(device_id)
        return Revoked(self._registry.get(device_id), was_revoked=False)

    async def refresh_token(self, device_key_id: str, *, actor: Principal) -> Envelope:
        """Return a new token of the calling device, sealed for its key."""
        return await self._credentials.refresh(device_key_id, actor=actor)

    async def tidy(self) -> None:
        """Forget what has passed its time."""
        async with self._registry.changing:
            now = self._clock()
            for device in self._registry.list_live():
                if _due(device) is not None and device.paired_at <= (
                    now - FIRST_CALL_WITHIN
                ):
                    record = AuditRecord(
                        actor="system",
                        action="device.expire",
                        target_id=device.id,
                        outcome=AuditOutcome.DONE,
                    )
                    await self._registry.remove(device.id, record)
                    self._keeper.forget_device(device.id)
        await self._seen.forget_before(to_ms(now))
        await self._keys.forget_expired()

    async def run(self) -> None:
        """Tidy whenever something is due, for ever."""
        while True:
            await self.tidy()
            seq = self.feed.seq
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds_until_due()):
                    await self.feed.wait_beyond(seq)

    def _seconds_until_due(self) -> float:
        now = self._clock()
        dues = [due for each in self._registry.list_live() if (due := _due(each))]
        soonest = min(((due - now).total_seconds() for due in dues), default=None)
        # A moment later, or the next look would come too early for it.
        return TIDY_SECONDS if soonest is None else max(0.0, soonest) + 0.01


def clean_device_name(name: str) -> str:
    """Return *name* fit to be shown; raise `InvalidInput` if it is none."""
    cleaned = clean_text(name, multiline=False)
    if not 1 <= len(cleaned) <= NAME_LIMIT_CHARACTERS:
        raise InvalidInput(
            f"A device's name has 1 to {NAME_LIMIT_CHARACTERS} characters."
        )
    return cleaned


def _due(device: Device) -> datetime | None:
    """Return when a device that never called is forgotten; None if it called."""
    if device.state is not DeviceState.PENDING:
        return None
    return device.paired_at + FIRST_CALL_WITHIN


def _record(action: str, device: Device, actor: Principal) -> AuditRecord:
    return AuditRecord(
        actor=actor.actor,
        address=actor.address,
        action=action,
        target_id=device.id,
        outcome=AuditOutcome.DONE,
    )
