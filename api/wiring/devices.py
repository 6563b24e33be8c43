"""Paired devices: their list, the host's key, and what is sealed with it."""

from dataclasses import dataclass

from api.wiring.ground import Ground
from sidestage.devices.host_keys import HostKeys
from sidestage.devices.registry import DeviceRegistry
from sidestage.devices.sealing_desk import SealingDesk
from sidestage.settings import Settings
from sidestage.storage.device_store import SqlDeviceStore
from sidestage.storage.seen_envelopes import SqlSeenEnvelopes
from sidestage.storage.stores import utc_now


@dataclass(frozen=True, slots=True)
class DeviceParts:
    """The paired devices, and the desk that seals for them and opens their answers."""

    registry: DeviceRegistry
    keys: HostKeys
    seen: SqlSeenEnvelopes
    seals: SealingDesk


async def load_devices(settings: Settings, ground: Ground) -> DeviceParts:
    """Load every device, and the host's key, made at the first start."""
    registry = DeviceRegistry(SqlDeviceStore(ground.database), clock=utc_now)
    await registry.load()
    keys = HostKeys(settings.host_key_file, ground.host_id, clock=utc_now)
    await keys.load()
    seen = SqlSeenEnvelopes(ground.database)
    seals = SealingDesk(keys, registry, seen, ground.audit, clock=utc_now)
    return DeviceParts(registry, keys, seen, seals)
