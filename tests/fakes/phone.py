"""A device as an app would write it, after docs/handover-protocol.md and no further."""

from dataclasses import dataclass, field
from typing import Any

from sidestage.devices.pairings import PairRequest
from sidestage.envelopes.envelope import Envelope
from sidestage.envelopes.keys import PrivateKey
from sidestage.envelopes.pairing import PairingClaim, PairingLink
from sidestage.envelopes.sealing import unseal_envelope


@dataclass
class Phone:
    """Reads a link, proves it, and opens what the host seals for it."""

    link: PairingLink
    name: str = "Ada’s phone"
    key: PrivateKey = field(default_factory=PrivateKey.generate)
    nonce: bytes = bytes(16)

    def request(self, **changes: Any) -> PairRequest:
        """Return what asks to be paired, with a right proof unless told else."""
        claim = PairingClaim(
            pairing_id=self.link.pairing_id,
            host_id=self.link.host_id,
            host_key=self.link.host_key,
            device_key=self.key.public,
            name=self.name,
            platform="ios",
            nonce=self.nonce,
        )
        values: dict[str, Any] = {
            "pairing_id": self.link.pairing_id,
            "device_key": self.key.public.raw,
            "name": self.name,
            "platform": "ios",
            "nonce": self.nonce,
            "proof": claim.prove(self.link.secret),
        }
        return PairRequest(**values | changes)

    def open(self, envelope: Envelope) -> dict[str, Any]:
        """Open an envelope with the pinned host key."""
        return unseal_envelope(envelope, recipient=self.key, sender=self.link.host_key)
