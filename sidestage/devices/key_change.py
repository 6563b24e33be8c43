"""Changing the host's key: the old one announces the new one to each device."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sidestage.audit import AuditLog, AuditOutcome, AuditRecord
from sidestage.devices.host_keys import HostKeys, PreviousKey
from sidestage.devices.model import ADMIN_SCOPES, Device, Principal, PrincipalKind
from sidestage.devices.pairing import PairingService
from sidestage.devices.registry import DeviceRegistry
from sidestage.devices.sealing_desk import to_ms
from sidestage.devices.service import DeviceService
from sidestage.devices.store import KeptEnvelope
from sidestage.envelopes.encoding import encode_base64url
from sidestage.envelopes.envelope import Purpose, Subject
from sidestage.envelopes.keys import PublicKey
from sidestage.envelopes.sealing import Parties, seal_envelope

_SYSTEM = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "system")


@dataclass(frozen=True, slots=True)
class KeyChange:
    """Rotates the host's key, and tells every device of it."""

    keys: HostKeys
    registry: DeviceRegistry
    devices: DeviceService
    pairings: PairingService
    audit: AuditLog
    clock: Callable[[], datetime]

    async def rotate(self, *, compromised: bool, actor: Principal) -> int:
        """Make a new key; return how many devices are told, or were revoked.

        After a compromise nothing the old key signs can be believed: it is erased at
        once, and every device has to be paired again.
        """
        async with self.pairings.void_all(actor=actor):
            devices = self.registry.list_live()
            if compromised:
                for device in devices:
                    await self.devices.revoke(device.id, actor=actor)
            await self.keys.rotate(keep_previous=not compromised)
        detail = f"compromised={str(compromised).lower()}"
        await self.audit.write(_record("keys.rotate", actor, detail))
        if not compromised:
            await self.announce(actor=actor)
        return len(devices)

    async def announce(self, *, actor: Principal = _SYSTEM) -> None:
        """Seal the new key for each device that does not have it from the old one.

        At every start too: a crash may have come between the key and the envelopes.
        """
        previous = self.keys.previous
        if previous is None:
            return
        kept = tuple(
            self._news(device, previous)
            for device in self.registry.list_live()
            if device.paired_at <= previous.rotated_at
            and not self._is_told(device, previous)
        )
        if kept:
            record = _record("keys.announce", actor, f"devices={len(kept)}")
            await self.registry.keep(kept, record)

    def _is_told(self, device: Device, previous: PreviousKey) -> bool:
        kept = self.registry.find_kept(device.id, Purpose.HOST_KEY)
        sealing = previous.key.public.key_id
        return kept is not None and kept.envelope.header.host_key_id == sealing

    def _news(self, device: Device, previous: PreviousKey) -> KeptEnvelope:
        now = self.clock()
        envelope = seal_envelope(
            {"hostKey": encode_base64url(self.keys.current.public.raw)},
            purpose=Purpose.HOST_KEY,
            parties=Parties(
                self.keys.host_id,
                previous.key.public,
                device.id,
                PublicKey(device.key),
            ),
            subject=Subject("", "", to_ms(previous.until)),
            sender=previous.key,
            sealed_at_ms=to_ms(now),
        )
        return KeptEnvelope(device.id, Purpose.HOST_KEY, envelope)


def _record(action: str, actor: Principal, detail: str) -> AuditRecord:
    return AuditRecord(
        actor=actor.actor,
        address=actor.address,
        action=action,
        target_id=None,
        outcome=AuditOutcome.DONE,
        detail=detail,
    )
