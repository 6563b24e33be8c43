"""Devices with fixed keys, and the list that holds them."""

from datetime import UTC, datetime
from typing import Any

from sidestage.devices.model import ContentMode, Device, DeviceState, Scope
from sidestage.envelopes.keys import PrivateKey
from sidestage.feeds import Feed
from sidestage.ids import DeviceId

PAIRED_AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def device_key(number: int = 1) -> PrivateKey:
    """Return the private key of the device of that number."""
    return PrivateKey.from_secret(bytes([0x10 + number]) * 32)


def a_device(number: int = 1, **changes: Any) -> Device:
    """Return an active device that may view, read and answer."""
    key = device_key(number).public
    values: dict[str, Any] = {
        "id": DeviceId(f"device:{number}"),
        "name": f"Phone {number}",
        "platform": "ios",
        "key": key.raw,
        "key_id": key.key_id,
        "scopes": frozenset({Scope.VIEW, Scope.READ, Scope.ANSWER}),
        "content": ContentMode.CLEAR,
        "state": DeviceState.ACTIVE,
        "paired_at": PAIRED_AT,
    }
    return Device(**values | changes)


class FakeDevices:
    """Holds the devices it is given, as `sidestage.devices.model.Devices`."""

    def __init__(self, *devices: Device) -> None:
        self._feed: Feed[Device] = Feed(lambda device: device.id)
        for device in devices:
            self._feed.upsert(device)

    @property
    def feed(self) -> Feed[Device]:
        """The devices by id."""
        return self._feed

    def list_answering(self) -> tuple[Device, ...]:
        """Return the devices that may answer."""
        return tuple(device for device in self._feed.values() if device.may_answer)
