"""Knowing an envelope again: a retry gets its outcome, a replay is refused.

The message id is the idempotency key of an answer. What is kept is one row for each
envelope that was accepted, written in the transaction of what it caused; a refused
envelope leaves none. So there are never more rows than answered offers and requests.
"""

import hmac
from dataclasses import dataclass
from typing import Final, Protocol

from sidestage.envelopes.envelope import Envelope
from sidestage.errors import EnvelopeReplayed
from sidestage.ids import DeviceId

KEPT_AFTER_EXPIRY_MS: Final = 24 * 60 * 60 * 1000
"""A device that was out of reach for a day still learns what became of its answer."""


@dataclass(frozen=True, slots=True)
class SeenEnvelope:
    """An envelope that was accepted. *outcome* is None until it is final.

    What an outcome looks like is its writer's business. It holds ids, never content.
    """

    device_id: DeviceId
    message_id: str
    digest: bytes
    keep_until_ms: int
    outcome: str | None = None

    @classmethod
    def of(cls, envelope: Envelope) -> "SeenEnvelope":
        """Return the row for *envelope*, its outcome open."""
        header = envelope.header
        return cls(
            device_id=header.device_id,
            message_id=header.message_id,
            digest=envelope.digest,
            keep_until_ms=header.expires_at_ms + KEPT_AFTER_EXPIRY_MS,
        )


class SeenEnvelopes(Protocol):
    """The rows, wherever they are kept. They outlive a restart of the server."""

    async def find(self, device_id: DeviceId, message_id: str) -> SeenEnvelope | None:
        """Return the row of that message of that device, or None."""

    async def add(self, seen: SeenEnvelope) -> SeenEnvelope:
        """Keep *seen* unless its message is known; return the row that is kept.

        One atomic step: of two callers with one message id, one finds the other's row
        (`check_not_replayed` it). Call it in the transaction of the effect.
        """

    async def settle(self, device_id: DeviceId, message_id: str, outcome: str) -> None:
        """Write down how it ended; the first outcome stays. Unknown: nothing."""

    async def forget_before(self, now_ms: int) -> None:
        """Drop the rows whose `keep_until_ms` has passed."""


def check_not_replayed(known: SeenEnvelope | None, envelope: Envelope) -> None:
    """Raise `EnvelopeReplayed` if *known*, the row of its ids, is of another one."""
    if known is None or hmac.compare_digest(known.digest, envelope.digest):
        return
    raise EnvelopeReplayed("This message id came before, in another envelope.")
