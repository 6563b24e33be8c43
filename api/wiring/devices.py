"""Paired devices: their list, pairing, the host's key, and what is sealed with it."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from api.presence import ConnectedDevices
from api.rates import RateLimiter
from api.wiring.background import running
from api.wiring.ground import Ground
from sidestage.devices.credentials import DeviceCredentials
from sidestage.devices.host_keys import HostKeys
from sidestage.devices.keeper import TokenKeeper
from sidestage.devices.key_change import KeyChange
from sidestage.devices.pairing import PairingService
from sidestage.devices.pairing_rules import (
    REQUESTS_A_MINUTE,
    REQUESTS_A_MINUTE_FROM_ADDRESS,
)
from sidestage.devices.registry import DeviceRegistry
from sidestage.devices.sealing_desk import SealingDesk
from sidestage.devices.service import DeviceService
from sidestage.settings import Settings
from sidestage.storage import offers, push
from sidestage.storage.device_store import ForgetDevice, SqlDeviceStore
from sidestage.storage.seen_envelopes import SqlSeenEnvelopes
from sidestage.storage.stores import utc_now

FORGET_DEVICE: tuple[ForgetDevice, ...] = (
    offers.forget_device,
    push.forget_device,
)
"""What further tables delete in the transaction that revokes a device."""


@dataclass(frozen=True, slots=True)
class DeviceParts:
    """The paired devices, and all that is done with their keys."""

    registry: DeviceRegistry
    seen: SqlSeenEnvelopes
    seals: SealingDesk
    desk: DeviceService
    pairings: PairingService
    key_change: KeyChange
    presence: ConnectedDevices


@asynccontextmanager
async def open_devices(
    settings: Settings, ground: Ground, keeper: TokenKeeper
) -> AsyncGenerator[DeviceParts]:
    """Load every device, and the host's key, made at the first start."""
    clock = utc_now
    store = SqlDeviceStore(ground.database, forget=FORGET_DEVICE)
    registry = DeviceRegistry(store, clock=clock)
    await registry.load()
    keys = HostKeys(settings.host_key_file, ground.host_id, clock=clock)
    await keys.load()
    seen = SqlSeenEnvelopes(ground.database)
    seals = SealingDesk(keys, registry, seen, ground.audit, clock=clock)
    credentials = DeviceCredentials(registry, keeper, keys, seals, clock=clock)
    keeper.tell_devices(credentials)
    desk = DeviceService(registry, keeper, keys, credentials, seen, clock=clock)
    pairings = PairingService(
        registry,
        keeper,
        keys,
        seals,
        credentials,
        ground.audit,
        rate=_per_minute(REQUESTS_A_MINUTE),
        rate_of_address=_per_minute(REQUESTS_A_MINUTE_FROM_ADDRESS),
        clock=clock,
    )
    change = KeyChange(keys, registry, desk, pairings, ground.audit, clock)
    await change.announce()
    presence = ConnectedDevices(keeper.device_of)
    async with running(devices=desk.run()):
        try:
            yield DeviceParts(registry, seen, seals, desk, pairings, change, presence)
        finally:
            pairings.close()


def _per_minute(times: int) -> RateLimiter:
    return RateLimiter(times, times / 60, time.monotonic)
