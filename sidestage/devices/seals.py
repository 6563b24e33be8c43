"""The port through which texts are sealed for devices and their answers opened."""

from collections.abc import Mapping
from typing import Any, Protocol

from sidestage.devices.model import Device, Principal
from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.envelopes.opening import Opened, Settled


class Seals(Protocol):
    """The host's key at work. Nothing sealed or opened here is kept or logged."""

    def seal(
        self,
        device: Device,
        *,
        purpose: Purpose,
        subject: Subject,
        content: Mapping[str, Any],
    ) -> Envelope:
        """Seal *content* for *device*; raises `InvalidInput` if it is too long."""

    async def open_answer(
        self,
        envelope: Envelope,
        *,
        purpose: Purpose,
        actor: Principal,
        subject: Subject | None,
    ) -> Opened | Settled:
        """Open an answer that *actor* sent, or return the outcome it had before.

        *subject* is what the envelope's `subject_id` names; None if there is no such
        thing. Refusals are written to the audit log. Raises `DeviceKeyRequired`,
        `EnvelopeReplayed`, `EnvelopeInvalid`. Whoever acts on an `Opened` adds the
        envelope's `SeenEnvelope` row in the transaction of what it causes.
        """

    def reopen(
        self, envelope: Envelope, *, purpose: Purpose, device: Device
    ) -> Mapping[str, Any]:
        """Open an answer of *device* that was accepted before and kept sealed.

        What may have changed since is not asked: replays, expiry, revocation. Raises
        `EnvelopeInvalid` if the key it was sealed for is erased.
        """
