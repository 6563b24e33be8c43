"""From the end of a turn to an offer: what is asked, in which order.

Every hook is answered before this is told of it: nothing here holds an agent up.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from sidestage.errors import SidestageError
from sidestage.handover.book import OfferBook
from sidestage.handover.model import (
    OFFER_LIFETIME,
    Offer,
    OfferDelivery,
    OfferId,
    OfferState,
    QuestionSource,
)
from sidestage.handover.parts import HandoverParts
from sidestage.handover.question import is_free_form_question
from sidestage.handover.sealing import OfferSealer
from sidestage.handover.turns import LastTurn, read_last_turn, squeezed
from sidestage.ids import new_id
from sidestage.sessions.hooks import Hold, HookEvent, HookKind
from sidestage.sessions.model import Session, SessionState
from sidestage.text import clean_text

_ACTIVITY: Final = frozenset({HookKind.PROMPT, HookKind.TOOL_STARTING})
_log = logging.getLogger(__name__)


class OfferMaker:
    """`sidestage.sessions.hooks.HookListener`: makes offers and supersedes them.

    *settle* is told of an offer whose answer is on its way when its turn has ended.
    """

    def __init__(
        self,
        parts: HandoverParts,
        book: OfferBook,
        sealer: OfferSealer,
        settle: Callable[[Offer], Awaitable[object]],
    ) -> None:
        self._parts = parts
        self._book = book
        self._sealer = sealer
        self._settle = settle

    async def held(self, event: HookEvent, hold: Hold) -> None:
        """Leave permission requests to their own listener."""

    async def heard(self, event: HookEvent) -> None:
        """Take in an event; a sub-agent's says nothing of its session's turn."""
        if event.is_from_subagent:
            return
        if event.kind in _ACTIVITY:
            await self._went_on(event)
        elif event.kind is HookKind.STOPPED:
            await self._stopped(event)

    async def _went_on(self, event: HookEvent) -> None:
        offer = self._book.open_of(event.session_id)
        # What waited in the spool may be older than the offer.
        if offer is not None and event.at > offer.created_at:
            await self._book.close(offer, OfferState.SUPERSEDED)
        handoff = self._book.handoff_of(event.session_id)
        if handoff and event.at > handoff.at and _is_by_person(event):
            await self._book.take_back(event.session_id)

    async def _stopped(self, event: HookEvent) -> None:
        """Make an offer of the turn that ended, if it ended in a question.

        The order is part of the product (docs/handover-protocol.md, "Offers").
        """
        if self._parts.sessions.find(event.session_id) is None:
            return
        if event.payload.get("stop_hook_active") is True:
            return
        try:
            session, turn = await self._bring_up_to_date(event)
        except (SidestageError, OSError):
            _log.exception("A turn's transcript could not be read; no offer is made.")
            return
        if session is None or session.state is SessionState.ENDED:
            return
        if self._book.handoff_of(session.id) is not None:
            return
        if not await self._make_room(session, turn):
            return
        if turn is not None and self._may_offer(session, turn):
            await self._book.add(self._offer(session, turn))

    def _may_offer(self, session: Session, turn: LastTurn) -> bool:
        if self._parts.requests.open_of(session.id):
            return False  # what waits at the keyboard comes first
        if not self._parts.adoption.adopts(session.directory):
            return False
        return is_free_form_question(turn.text)

    async def _bring_up_to_date(
        self, event: HookEvent
    ) -> tuple[Session | None, LastTurn | None]:
        """Return the session and its last turn, once the hook's message is in it."""
        told = event.payload.get("last_assistant_message")
        shown = clean_text(told, multiline=True) if isinstance(told, str) else ""
        wanted = squeezed(shown)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._parts.pace.flush_seconds
        while True:
            seq = self._parts.sessions.feed.seq
            session = await self._parts.sessions.refresh(event.session_id)
            if session is None:
                return None, None
            turn = await read_last_turn(self._parts.transcripts, event.session_id)
            if turn is not None and squeezed(turn.text).endswith(wanted):
                return session, turn
            if loop.time() > deadline:
                _log.info("A turn's message is not in its transcript; no offer.")
                return session, None
            with suppress(TimeoutError):
                async with asyncio.timeout(self._parts.pace.look_again_seconds):
                    await self._parts.sessions.feed.wait_beyond(seq)

    async def _make_room(self, session: Session, turn: LastTurn | None) -> bool:
        """Supersede an older offer; False if there is one for this very turn."""
        older = self._book.open_of(session.id)
        if older is None:
            return True
        if turn is not None and older.source.record_uuid == turn.record_uuid:
            return False
        if older.state is OfferState.ANSWERING:
            await self._settle(older)
        else:
            await self._book.close(older, OfferState.SUPERSEDED)
        return True

    def _offer(self, session: Session, turn: LastTurn) -> Offer:
        now = self._parts.clock()
        offer = Offer(
            id=OfferId(new_id("offer")),
            session_id=session.id,
            project_id=session.project_id,
            state=OfferState.PENDING,
            delivery=OfferDelivery.TYPE if session.terminal_id else OfferDelivery.FORK,
            created_at=now,
            expires_at=now + OFFER_LIFETIME,
            source=QuestionSource(
                turn.record_uuid, turn.order, self._sealer.digest(turn)
            ),
            state_since=now,
        )
        devices = self._parts.devices.list_answering()
        sealed = self._sealer.seal(turn, session, offer.subject, devices)
        return offer.with_envelopes(sealed)


def _is_by_person(event: HookEvent) -> bool:
    """Tell whether a prompt came from a person, not from a task that ended."""
    prompt = event.payload.get("prompt")
    return event.kind is HookKind.PROMPT and not str(prompt).startswith("<")
