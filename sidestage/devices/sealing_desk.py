"""`Seals` at work: the host's key, the paired devices, and what was seen before."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sidestage.audit import AuditLog, AuditOutcome, AuditRecord
from sidestage.devices.host_keys import HostKeys
from sidestage.devices.model import Device, Devices, DeviceState, Principal
from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.envelopes.keys import PublicKey
from sidestage.envelopes.opening import (
    Caller,
    Expected,
    Opened,
    Settled,
    open_answer,
    reopen_answer,
)
from sidestage.envelopes.replay import SeenEnvelope, SeenEnvelopes
from sidestage.envelopes.sealing import Parties, seal_envelope
from sidestage.errors import DeviceKeyRequired, EnvelopeInvalid, EnvelopeReplayed


class SealingDesk:
    """`sidestage.devices.seals.Seals`. Nothing sealed or opened stays here."""

    def __init__(
        self,
        keys: HostKeys,
        devices: Devices,
        seen: SeenEnvelopes,
        audit: AuditLog,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._keys = keys
        self._devices = devices
        self._seen = seen
        self._audit = audit
        self._clock = clock

    def seal(
        self,
        device: Device,
        *,
        purpose: Purpose,
        subject: Subject,
        content: Mapping[str, Any],
    ) -> Envelope:
        """Seal *content* for *device*; raises `InvalidInput` if it is too long."""
        sender = self._keys.current
        return seal_envelope(
            content,
            purpose=purpose,
            parties=Parties(
                self._keys.host_id, sender.public, device.id, PublicKey(device.key)
            ),
            subject=subject,
            sender=sender,
            sealed_at_ms=to_ms(self._clock()),
        )

    async def open_answer(
        self,
        envelope: Envelope,
        *,
        purpose: Purpose,
        actor: Principal,
        subject: Subject | None,
    ) -> Opened | Settled:
        """Open an answer of *actor*'s, or return the outcome it had before.

        See `Seals.open_answer`. Each refusal is in the audit log when this raises.
        """
        expected = Expected(
            purpose=purpose,
            host=self._keys.identity,
            caller=self._caller(actor),
            known=await self._known(actor, envelope),
            subject=subject,
            now_ms=to_ms(self._clock()),
        )
        try:
            return open_answer(envelope, expected)
        except (DeviceKeyRequired, EnvelopeInvalid, EnvelopeReplayed) as error:
            await self._audit.write(refusal_record(error, actor, purpose, envelope))
            raise

    def reopen(
        self, envelope: Envelope, *, purpose: Purpose, device: Device
    ) -> Mapping[str, Any]:
        """Open an answer of *device* that was accepted before and kept sealed."""
        return reopen_answer(
            envelope,
            purpose=purpose,
            host=self._keys.identity,
            caller=Caller(device.id, PublicKey(device.key)),
        )

    def _caller(self, actor: Principal) -> Caller | None:
        device = actor.device_id and self._devices.feed.get(actor.device_id)
        if not device:
            return None
        revoked = device.state is DeviceState.REVOKED
        return Caller(device.id, PublicKey(device.key), is_revoked=revoked)

    async def _known(self, actor: Principal, envelope: Envelope) -> SeenEnvelope | None:
        if actor.device_id is None:
            return None
        return await self._seen.find(actor.device_id, envelope.header.message_id)


def refusal_record(
    error: DeviceKeyRequired | EnvelopeInvalid | EnvelopeReplayed,
    actor: Principal,
    purpose: Purpose,
    envelope: Envelope | None = None,
) -> AuditRecord:
    """Return what the audit log says of a refused envelope: ids and the fault."""
    header = None if envelope is None else envelope.header
    fault = f" fault={error.fault}" if isinstance(error, EnvelopeInvalid) else ""
    return AuditRecord(
        actor=actor.actor,
        address=actor.address,
        action="envelope.open",
        target_id=(header.subject_id or None) if header else None,
        outcome=AuditOutcome.REFUSED,
        code=error.code.value,
        message_id=header.message_id if header else None,
        detail=f"purpose={purpose.value}{fault}",
    )


def to_ms(at: datetime) -> int:
    """Return *at* in whole milliseconds since 1970, as envelopes write times."""
    return int(at.timestamp() * 1000)
