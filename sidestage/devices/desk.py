"""What may be asked of the paired devices: the port that resolvers call."""

from dataclasses import dataclass
from typing import Protocol

from sidestage.devices.model import Device, Devices, Principal
from sidestage.envelopes.envelope import Envelope
from sidestage.envelopes.keys import PublicKey
from sidestage.ids import DeviceId


@dataclass(frozen=True, slots=True)
class Revoked:
    """A device that may nothing any more; *was_revoked* tells that it was so before."""

    device: Device
    was_revoked: bool


class DeviceDesk(Devices, Protocol):
    """The paired devices, and what their owner and they themselves may change."""

    @property
    def host_key(self) -> PublicKey:
        """The key that devices pin."""

    def find_key_news(self, device_id: DeviceId) -> Envelope | None:
        """Return the `host-key` envelope that the key before sealed for the device."""

    async def rename(
        self, device_id: DeviceId, name: str, *, actor: Principal
    ) -> Device:
        """Call the device *name*; raises `DeviceNotFound`, `InvalidInput`."""

    async def revoke(self, device_id: DeviceId, *, actor: Principal) -> Revoked:
        """Cut the device off, for good; raises `DeviceNotFound`."""

    async def refresh_token(self, device_key_id: str, *, actor: Principal) -> Envelope:
        """Return a new token of the calling device, sealed for its key.

        The same envelope again until its token is used. Raises `DeviceKeyRequired` for
        a caller that is no device, `InvalidInput` if the key is not the caller's.
        """
