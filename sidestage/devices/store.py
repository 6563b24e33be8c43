"""Where devices and the envelopes kept for them are written down: the port."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from sidestage.audit import AuditRecord
from sidestage.devices.model import Device
from sidestage.devices.tokens import StoredToken
from sidestage.envelopes.envelope import Envelope, Purpose
from sidestage.ids import DeviceId


@dataclass(frozen=True, slots=True)
class KeptEnvelope:
    """An envelope that its device may ask for again: one a device and purpose.

    *token_id* names the token that a `credentials` envelope carries.
    """

    device_id: DeviceId
    purpose: Purpose
    envelope: Envelope
    token_id: str | None = None


@dataclass(frozen=True, slots=True)
class PairedBy:
    """Which request made a device: its pairing, and the SHA-256 of its bytes."""

    pairing_id: str
    request_sha256: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredDevice:
    """A device and how it came."""

    device: Device
    paired_by: PairedBy


class DeviceStore(Protocol):
    """Every call is one transaction, with its audit record in it."""

    async def load(self) -> tuple[tuple[StoredDevice, ...], tuple[KeptEnvelope, ...]]:
        """Return every device, oldest first, and every kept envelope."""

    async def pair(
        self,
        stored: StoredDevice,
        token: StoredToken,
        credentials: KeptEnvelope,
        record: AuditRecord,
    ) -> None:
        """Insert a device with its token and the envelope that carries it."""

    async def save(self, device: Device, record: AuditRecord | None = None) -> None:
        """Write *device* over its row."""

    async def activate(
        self, device: Device, old_token_ids: tuple[str, ...], record: AuditRecord
    ) -> None:
        """Write *device*, drop its `credentials` envelope, mark old tokens replaced.

        Tokens that were replaced before are deleted: one generation is remembered.
        """

    async def remove(self, device_id: DeviceId, record: AuditRecord) -> None:
        """Delete the device, its tokens and its kept envelopes."""

    async def revoke(self, device: Device, record: AuditRecord) -> None:
        """Write *device* and delete all that lets it call, open or be reached."""

    async def refresh(
        self,
        token: StoredToken,
        credentials: KeptEnvelope,
        never_opened: str | None,
        record: AuditRecord,
    ) -> None:
        """Insert a further token of a device with the envelope that carries it.

        *never_opened* is the token of the envelope that this one takes the place of.
        """

    async def keep(
        self, envelopes: tuple[KeptEnvelope, ...], record: AuditRecord
    ) -> None:
        """Keep *envelopes* in place of those of the same device and purpose."""

    async def mark_seen(self, device_id: DeviceId, at: datetime) -> None:
        """Note when the device last called."""
