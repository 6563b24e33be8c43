"""The port to where offers, answers and continuations are written down."""

from dataclasses import dataclass, field
from typing import Protocol

from sidestage.audit import AuditRecord
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.handover.model import Continuation, Handoff, Offer, OfferId
from sidestage.ids import DeviceId, SessionId


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an accepted answer ended: what its retry is told. An offer's state."""

    device_id: DeviceId
    message_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is written down together, or not at all."""

    offers: tuple[Offer, ...] = ()
    """Rows to put by id, each with exactly the envelopes it has now."""
    removed: tuple[OfferId, ...] = ()
    seen: SeenEnvelope | None = field(default=None, repr=False)
    """The answer that causes this."""
    outcome: Outcome | None = None
    handoff: Handoff | None = None
    taken_back: SessionId | None = None
    """A parent that is no longer handed off."""
    continuation: Continuation | None = None
    records: tuple[AuditRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """Everything that was written down, oldest first."""

    offers: tuple[Offer, ...] = ()
    handoffs: tuple[Handoff, ...] = ()
    continuations: tuple[Continuation, ...] = ()


class OfferStore(Protocol):
    """Keeps offers between runs of the server."""

    async def load(self) -> Stored:
        """Return everything."""

    async def write(self, changes: Changes) -> None:
        """Write *changes* in one transaction, on disk when this returns.

        Raises `EnvelopeReplayed` if *seen* bears the message id of another envelope;
        then nothing is written.
        """
