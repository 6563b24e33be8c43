"""The desk of devices in memory, and pairings that never come about."""

from dataclasses import replace
from datetime import UTC, datetime

from sidestage.devices.desk import DeviceDesk, Revoked
from sidestage.devices.model import (
    ContentMode,
    Device,
    DeviceState,
    Principal,
    Scope,
)
from sidestage.devices.pairings import Claimed, Pairing, Pairings, PairRequest
from sidestage.envelopes.encoding import encode_base64url
from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.envelopes.keys import PublicKey
from sidestage.envelopes.pairing import PairingLink
from sidestage.envelopes.sealing import Parties, seal_envelope
from sidestage.errors import (
    DeviceKeyRequired,
    DeviceNotFound,
    PairingClosed,
    PairingLimitReached,
    PairingRefused,
)
from sidestage.feeds import Feed
from sidestage.ids import DeviceId
from tests.fakes.envelopes import HOST_ID, HOST_KEY, STRANGER_KEY


def key_news(device: Device) -> Envelope:
    """Return the envelope that tells *device* of the host's new key."""
    return seal_envelope(
        {"hostKey": encode_base64url(HOST_KEY.public.raw)},
        purpose=Purpose.HOST_KEY,
        parties=Parties(HOST_ID, STRANGER_KEY.public, device.id, PublicKey(device.key)),
        subject=Subject("", "", 0),
        sender=STRANGER_KEY,
        sealed_at_ms=0,
    )


class FakeDeviceDesk(DeviceDesk):
    """Holds the devices it is given; `news` are the envelopes kept for them."""

    def __init__(self, *devices: Device) -> None:
        self._feed: Feed[Device] = Feed(lambda device: device.id)
        for device in devices:
            self._feed.upsert(device)
        self.news: dict[DeviceId, Envelope] = {}

    @property
    def feed(self) -> Feed[Device]:
        """The devices by id."""
        return self._feed

    @property
    def host_key(self) -> PublicKey:
        """The host's key."""
        return HOST_KEY.public

    def list_answering(self) -> tuple[Device, ...]:
        """Return the devices that may answer."""
        return tuple(device for device in self._feed.values() if device.may_answer)

    def find_key_news(self, device_id: DeviceId) -> Envelope | None:
        """Return what `news` holds for the device."""
        return self.news.get(device_id)

    async def rename(
        self, device_id: DeviceId, name: str, *, actor: Principal
    ) -> Device:
        """Rename the device."""
        device = replace(self._get(device_id), name=name)
        self._feed.upsert(device)
        return device

    async def revoke(self, device_id: DeviceId, *, actor: Principal) -> Revoked:
        """Mark the device as revoked."""
        device = self._get(device_id)
        revoked = replace(
            device, state=DeviceState.REVOKED, revoked_at=datetime.now(UTC)
        )
        self._feed.upsert(revoked)
        return Revoked(revoked, device.state is DeviceState.REVOKED)

    async def refresh_token(self, device_key_id: str, *, actor: Principal) -> Envelope:
        """Refuse."""
        raise DeviceKeyRequired("Only a paired device has a token to refresh.")

    def _get(self, device_id: DeviceId) -> Device:
        device = self._feed.get(device_id)
        if device is None:
            raise DeviceNotFound("There is no such device.")
        return device


class FakePairings(Pairings):
    """Opens and takes in nothing."""

    def __init__(self) -> None:
        self._feed: Feed[Pairing] = Feed(lambda pairing: pairing.id)

    @property
    def feed(self) -> Feed[Pairing]:
        """The pairings."""
        return self._feed

    async def create(
        self,
        *,
        base_url: str,
        name: str | None,
        scopes: frozenset[Scope] | None,
        content: ContentMode,
        actor: Principal,
    ) -> tuple[Pairing, PairingLink]:
        """Refuse."""
        raise PairingLimitReached("No more pairings.")

    async def claim(self, request: PairRequest, *, actor: Principal) -> Claimed:
        """Refuse."""
        raise PairingRefused("Not open.")

    async def confirm(self, pairing_id: str, code: str, *, actor: Principal) -> Device:
        """Refuse."""
        raise PairingClosed("Not open.")

    async def cancel(self, pairing_id: str, *, actor: Principal) -> Pairing:
        """Refuse."""
        raise PairingClosed("Not open.")
