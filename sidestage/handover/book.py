"""The offers, each change of theirs written down before anybody sees it."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.devices.model import Principal
from sidestage.devices.push import Push
from sidestage.envelopes.envelope import Envelope
from sidestage.feeds import Feed
from sidestage.handover.model import Handoff, Offer, OfferId, OfferState
from sidestage.handover.store import Changes, OfferStore, Outcome
from sidestage.ids import DeviceId, SessionId
from sidestage.sessions.lineage import Lineage

_NOTHING: Final = Changes()


class OfferBook:
    """The list of offers and of parents that were handed off. `load` it first."""

    def __init__(
        self,
        store: OfferStore,
        lineage: Lineage,
        push: Push,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self.feed: Feed[Offer] = Feed(lambda offer: offer.id)
        self.clock = clock
        self._store = store
        self._lineage = lineage
        self._push = push
        self._handoffs: dict[SessionId, Handoff] = {}
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        """Read everything from the store, and mark the sessions."""
        stored = await self._store.load()
        for continuation in stored.continuations:
            self._lineage.set_continues(
                continuation.conversation_id, continuation.parent_id
            )
        for handoff in stored.handoffs:
            self._put_handoff(handoff)
        for offer in stored.offers:
            self.feed.upsert(offer)

    def get(self, offer_id: str) -> Offer | None:
        """Return the offer with that id, or None."""
        return self.feed.get(offer_id)

    def open_of(self, session_id: SessionId) -> Offer | None:
        """Return the session's offer of which something may still become, or None."""
        for offer in self.feed.values():
            if offer.session_id == session_id and offer.state.is_open:
                return offer
        return None

    def list_in(self, *states: OfferState) -> tuple[Offer, ...]:
        """Return the offers in one of *states*, oldest first."""
        return tuple(offer for offer in self.feed.values() if offer.state in states)

    def handoff_of(self, session_id: SessionId) -> Handoff | None:
        """Return the session's handoff, if it is handed off now."""
        return self._handoffs.get(session_id)

    def handoffs(self) -> tuple[Handoff, ...]:
        """Return the sessions that are handed off now."""
        return tuple(self._handoffs.values())

    async def add(self, offer: Offer) -> bool:
        """Make *offer*, unless its session has an open one."""
        async with self._changing:
            if self.open_of(offer.session_id) is not None:
                return False
            record = offer_record("offer", offer)
            await self._write(Changes(offers=(offer,), records=(record,)))
        self._push.waiting(offer.id, offer.session_id)
        return True

    async def move(
        self,
        offer_id: OfferId,
        origin: Collection[OfferState],
        *,
        record: AuditRecord | None = None,
        changes: Changes = _NOTHING,
        **values: Any,  # noqa: ANN401 -- the fields of an Offer: `replace` checks
    ) -> Offer | None:
        """Change the offer if it is in one of the states *origin*; return it.

        None if it is not. *changes* are written with it.
        """
        async with self._changing:
            before = self.feed.get(offer_id)
            if before is None or before.state not in origin:
                return None
            after = self._changed(before, values)
            if after == before and changes == _NOTHING and record is None:
                return before
            records = () if record is None else (record,)
            outcome = changes.outcome or _outcome(before, after)
            await self._write(
                replace(changes, offers=(after,), records=records, outcome=outcome)
            )
        if before.state is OfferState.PENDING is not after.state:
            self._push.settled(offer_id)
        return after

    async def close(
        self,
        offer: Offer,
        state: OfferState,
        *,
        origin: Collection[OfferState] = (OfferState.PENDING,),
        actor: Principal | None = None,
    ) -> Offer | None:
        """Move the offer to the closed *state*; None if it has moved on already."""
        record = offer_record(state.value.lower(), offer, actor=actor)
        return await self.move(offer.id, origin, state=state, record=record)

    async def seal(
        self, offer_id: OfferId, envelopes: Mapping[DeviceId, Envelope]
    ) -> None:
        """Add what was sealed for devices that were paired later."""
        async with self._changing:
            offer = self.feed.get(offer_id)
            if offer is not None and offer.state.is_open:
                sealed = offer.with_envelopes({**offer.envelopes, **envelopes})
                await self._write(Changes(offers=(sealed,)))

    async def forget_envelopes(self, keep: Callable[[Offer, DeviceId], bool]) -> None:
        """Delete what is sealed for a device, where *keep* says no."""
        async with self._changing:
            changed = [
                offer.with_envelopes({id_: offer.envelopes[id_] for id_ in kept})
                for offer in self.feed.values()
                if len(kept := [i for i in offer.envelopes if keep(offer, i)])
                < len(offer.envelopes)
            ]
            if changed:
                await self._write(Changes(offers=tuple(changed)))

    async def remove(self, offers: Collection[Offer]) -> None:
        """Forget offers that were closed long ago."""
        async with self._changing:
            await self._write(Changes(removed=tuple(offer.id for offer in offers)))

    async def note(self, changes: Changes) -> None:
        """Write *changes* that move no offer."""
        async with self._changing:
            await self._write(changes)

    async def hand_off(self, handoff: Handoff, changes: Changes) -> None:
        """Mark a parent, without an offer of its own, as handed off."""
        async with self._changing:
            await self._write(replace(changes, handoff=handoff))

    async def take_back(self, session_id: SessionId) -> None:
        """Note that a person went on at the keyboard of a session handed off."""
        async with self._changing:
            if session_id in self._handoffs:
                record = AuditRecord(
                    actor="system",
                    action="session.take-back",
                    target_id=session_id,
                    outcome=AuditOutcome.DONE,
                )
                await self._write(Changes(taken_back=session_id, records=(record,)))

    def _changed(self, before: Offer, values: Mapping[str, Any]) -> Offer:
        after = replace(before, **values)
        if after.state is not before.state:
            after = replace(after, state_since=self.clock())
        return after

    async def _write(self, changes: Changes) -> None:
        await self._store.write(changes)
        for offer in changes.offers:
            self.feed.upsert(offer)
        for offer_id in changes.removed:
            self.feed.remove(offer_id)
        if changes.handoff is not None:
            self._put_handoff(changes.handoff)
        if changes.taken_back is not None:
            self._handoffs.pop(changes.taken_back, None)
            self._lineage.set_handed_off(changes.taken_back, None)
        if changes.continuation is not None:
            self._lineage.set_continues(
                changes.continuation.conversation_id, changes.continuation.parent_id
            )

    def _put_handoff(self, handoff: Handoff) -> None:
        self._handoffs[handoff.session_id] = handoff
        self._lineage.set_handed_off(handoff.session_id, handoff.at)


def offer_record(
    verb: str,
    offer: Offer,
    *,
    actor: Principal | None = None,
    outcome: AuditOutcome = AuditOutcome.DONE,
    code: str | None = None,
    message_id: str | None = None,
    detail: str | None = None,
) -> AuditRecord:
    """Return what the audit log says of something that befell *offer*."""
    accepted = offer.accepted
    return AuditRecord(
        actor="system" if actor is None else actor.actor,
        address=None if actor is None else actor.address,
        action=f"handover.{verb}",
        target_id=offer.id,
        outcome=outcome,
        code=code,
        message_id=message_id or (accepted.message_id if accepted else None),
        detail=detail or f"session={offer.session_id}",
    )


def _outcome(before: Offer, after: Offer) -> Outcome | None:
    """Return what a retry of the accepted answer is told, once that is final."""
    accepted = before.accepted
    if accepted is None or after.state.is_open or not before.state.is_open:
        return None
    return Outcome(accepted.device_id, accepted.message_id, after.state.value)
