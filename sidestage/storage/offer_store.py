"""`sidestage.handover.store.OfferStore` on the database: one transaction a call."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.envelopes.replay import SeenEnvelope
from sidestage.errors import EnvelopeReplayed
from sidestage.handover.store import Changes, Stored
from sidestage.storage import audit, offers, seen_envelopes
from sidestage.storage.database import Database
from sidestage.storage.stores import utc_now


class SqlOfferStore:
    """Keeps offers, answers, handoffs and continuations."""

    def __init__(
        self, database: Database, *, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._database = database
        self._clock = clock

    async def load(self) -> Stored:
        """Return everything."""
        async with self._database.read() as db:
            return Stored(
                await offers.list_offers(db),
                await offers.list_handoffs(db),
                await offers.list_continuations(db),
            )

    async def write(self, changes: Changes) -> None:
        """Write *changes* together; raises `EnvelopeReplayed`, and writes nothing."""
        async with self._database.write() as db:
            if changes.seen is not None:
                await _add_seen(db, changes.seen)
            for offer in changes.offers:
                await offers.put_offer(db, offer)
            for offer_id in changes.removed:
                await offers.delete_offer(db, offer_id)
            await _write_lineage(db, changes)
            if (outcome := changes.outcome) is not None:
                await seen_envelopes.set_outcome(
                    db, outcome.device_id, outcome.message_id, outcome.text
                )
            for record in changes.records:
                await audit.append_entry(db, record, at=self._clock())


async def _add_seen(db: AsyncConnection, seen: SeenEnvelope) -> None:
    kept = await seen_envelopes.add_seen(db, seen)
    if kept.digest != seen.digest:
        raise EnvelopeReplayed("This message id came before, in another envelope.")


async def _write_lineage(db: AsyncConnection, changes: Changes) -> None:
    if changes.handoff is not None:
        await offers.put_handoff(db, changes.handoff)
    if changes.taken_back is not None:
        await offers.delete_handoff(db, changes.taken_back)
    if changes.continuation is not None:
        await offers.put_continuation(db, changes.continuation)
