"""What becomes of offers that nobody answers: keyboards, ends, time, devices, policy.

Whether a session went on is read from what is on disk (its registry and transcript), so
it holds after a restart too. Hooks only make it faster.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from sidestage.errors import SidestageError
from sidestage.handover.book import OfferBook
from sidestage.handover.model import Handoff, Offer, OfferState
from sidestage.handover.parts import HandoverParts
from sidestage.handover.sealing import OfferSealer
from sidestage.handover.turns import was_prompted, went_on
from sidestage.ids import DeviceId, SessionId
from sidestage.sessions.model import Session, SessionState

SWEEP_SECONDS: Final = 30.0
"""How often time and policy are looked at; an answer looks by itself."""
ENVELOPES_KEPT: Final = timedelta(hours=24)
"""A device that was out of reach for a day can still show what it is too late for."""
CLOSED_KEPT: Final = timedelta(days=7)
"""Closed offers that are listed; the audit log knows them longer."""

_BUSY: Final = frozenset({SessionState.RUNNING, SessionState.ASKING})


class OfferWatch:
    """Closes offers that can no longer be answered. `run` it."""

    def __init__(
        self, parts: HandoverParts, book: OfferBook, sealer: OfferSealer
    ) -> None:
        self._parts = parts
        self._book = book
        self._sealer = sealer

    async def run(self) -> None:
        """Watch sessions, devices and the clock until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_sessions())
            tasks.create_task(self._follow_devices())
            tasks.create_task(self._sweep_regularly())

    async def check(self, offer: Offer) -> Offer | None:
        """Look now whether a pending offer still can be answered; return it as it is.

        None if it is gone.
        """
        if offer.state is OfferState.PENDING:
            state = await self._due_state(offer)
            if state is not None:
                await self._book.close(offer, state)
        return self._book.get(offer.id)

    async def _due_state(self, offer: Offer) -> OfferState | None:
        if offer.expires_at <= self._parts.clock():
            return OfferState.EXPIRED
        session = self._parts.sessions.find(offer.session_id)
        if session is None or session.state is SessionState.ENDED:
            return OfferState.CLOSED
        if not self._parts.adoption.adopts(session.directory):
            return OfferState.DISMISSED
        if await self._went_on(offer, session):
            return OfferState.SUPERSEDED
        return None

    async def _went_on(self, offer: Offer, session: Session) -> bool:
        if session.state in _BUSY and session.state_since > offer.created_at:
            return True
        if session.origin.transcript is None:
            return False  # it was deleted: the answer starts afresh
        try:
            return await went_on(
                self._parts.transcripts, session.id, offer.source.order
            )
        except SidestageError:
            return False  # the session left the list meanwhile: that is another change

    async def _follow_sessions(self) -> None:
        feed = self._parts.sessions.feed
        seq = feed.seq
        await self._look_at(offer.session_id for offer in self._pending())
        await self._look_at(it.session_id for it in self._book.handoffs())
        while True:
            await feed.wait_beyond(seq)
            changes = feed.changes_after(seq)
            seq = feed.seq
            if changes is None:
                await self._look_at(offer.session_id for offer in self._pending())
            else:
                await self._look_at(SessionId(change.id) for change in changes)

    async def _look_at(self, session_ids: Iterable[SessionId]) -> None:
        for session_id in dict.fromkeys(session_ids):
            offer = self._book.open_of(session_id)
            if offer is not None:
                await self.check(offer)
            handoff = self._book.handoff_of(session_id)
            if handoff is not None:
                await self._check_handoff(handoff)

    async def _check_handoff(self, handoff: Handoff) -> None:
        with suppress(SidestageError):
            if await was_prompted(
                self._parts.transcripts, handoff.session_id, handoff.order
            ):
                await self._book.take_back(handoff.session_id)

    async def _follow_devices(self) -> None:
        feed = self._parts.devices.feed
        while True:
            seq = feed.seq
            await self._bring_devices_in_line()
            await feed.wait_beyond(seq)

    async def _bring_devices_in_line(self) -> None:
        """Seal open offers for devices that came; delete what those had that went."""
        answering = self._parts.devices.list_answering()
        ids = {device.id for device in answering}
        await self._book.forget_envelopes(lambda _, device_id: device_id in ids)
        for offer in self._pending():
            missing = [it for it in answering if it.id not in offer.envelopes]
            session = self._parts.sessions.find(offer.session_id)
            if missing and session is not None:
                sealed = await self._sealer.seal_again(offer, session, missing)
                if sealed:
                    await self._book.seal(offer.id, sealed)

    async def _sweep_regularly(self) -> None:
        while True:
            await self.sweep()
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        """Look at the clock and at the adoption policy once."""
        for offer in self._pending():
            await self.check(offer)
        now = self._parts.clock()

        def is_kept(offer: Offer, _: DeviceId) -> bool:
            return offer.state.is_open or now - offer.state_since < ENVELOPES_KEPT

        await self._book.forget_envelopes(is_kept)
        old = [
            offer
            for offer in self._book.feed.values()
            if not offer.state.is_open and now - offer.state_since >= CLOSED_KEPT
        ]
        if old:
            await self._book.remove(old)

    def _pending(self) -> tuple[Offer, ...]:
        return self._book.list_in(OfferState.PENDING)
