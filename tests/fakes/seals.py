"""`Seals` with the fixed keys of `tests.fakes.envelopes`, and no files."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sidestage.devices.model import Device, Devices, Principal
from sidestage.devices.sealing_desk import to_ms
from sidestage.devices.seals import Seals
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
from sidestage.envelopes.replay import SeenEnvelopes
from sidestage.envelopes.sealing import Parties, seal_envelope
from tests.fakes.devices import device_key
from tests.fakes.envelopes import HOST, HOST_ID, HOST_KEY


class FakeSeals(Seals):
    """Seals and opens for real; keeps no audit."""

    def __init__(
        self, devices: Devices, seen: SeenEnvelopes, clock: Callable[[], datetime]
    ) -> None:
        self._devices = devices
        self._seen = seen
        self._clock = clock

    def seal(
        self,
        device: Device,
        *,
        purpose: Purpose,
        subject: Subject,
        content: Mapping[str, Any],
    ) -> Envelope:
        return seal_envelope(
            content,
            purpose=purpose,
            parties=_parties(device),
            subject=subject,
            sender=HOST_KEY,
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
        device = actor.device_id and self._devices.feed.get(actor.device_id)
        message_id = envelope.header.message_id
        known = None
        if actor.device_id is not None:
            known = await self._seen.find(actor.device_id, message_id)
        expected = Expected(
            purpose=purpose,
            host=HOST,
            caller=Caller(device.id, PublicKey(device.key)) if device else None,
            known=known,
            subject=subject,
            now_ms=to_ms(self._clock()),
        )
        return open_answer(envelope, expected)

    def reopen(
        self, envelope: Envelope, *, purpose: Purpose, device: Device
    ) -> Mapping[str, Any]:
        caller = Caller(device.id, PublicKey(device.key))
        return reopen_answer(envelope, purpose=purpose, host=HOST, caller=caller)


def seal_by_device(
    device: Device, number: int, *, purpose: Purpose, subject: Subject, content: Any
) -> Envelope:
    """Return *content* as the device of that number seals it for the host."""
    return seal_envelope(
        content,
        purpose=purpose,
        parties=_parties(device),
        subject=subject,
        sender=device_key(number),
        sealed_at_ms=0,
    )


def _parties(device: Device) -> Parties:
    return Parties(HOST_ID, HOST_KEY.public, device.id, PublicKey(device.key))
