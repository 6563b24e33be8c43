"""A device's answer to an offer: opened, checked, accepted once."""

import uuid
from collections.abc import Mapping
from typing import Any, Final

from sidestage.audit import AuditOutcome
from sidestage.devices.model import Principal, Scope
from sidestage.envelopes.envelope import Envelope, Purpose
from sidestage.envelopes.opening import Settled
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.errors import (
    AgentNotIdle,
    OfferNotFound,
    OfferNotOpen,
    PermissionDenied,
    SidestageError,
)
from sidestage.handover.answer_text import checked_answer
from sidestage.handover.book import OfferBook, offer_record
from sidestage.handover.continuations import Continuations, typed_text
from sidestage.handover.model import Accepted, Offer, OfferDelivery, OfferState
from sidestage.handover.parts import HandoverParts
from sidestage.handover.store import Changes
from sidestage.handover.watch import OfferWatch
from sidestage.ids import ConversationId, DeviceId, TerminalId, new_id
from sidestage.sessions.model import Session, SessionState

GONE: Final = "There is no offer with that id."
_SENTENCES: Final[Mapping[OfferState, str]] = {
    OfferState.PENDING: "This offer can be answered again.",
    OfferState.ANSWERING: "Another answer is on its way to the agent.",
    OfferState.CONTINUED: "This was answered already.",
    OfferState.SUPERSEDED: "The session went on at its keyboard.",
    OfferState.DISMISSED: "This offer was put away.",
    OfferState.EXPIRED: "The time for an answer is over.",
    OfferState.CLOSED: "The session ended. It can be resumed.",
}
_PENDING: Final = frozenset({OfferState.PENDING})
_OPEN: Final = frozenset({OfferState.PENDING, OfferState.ANSWERING})


class Answers:
    """Takes answers in. Of any number, one is accepted."""

    def __init__(
        self,
        parts: HandoverParts,
        book: OfferBook,
        watch: OfferWatch,
        continuations: Continuations,
    ) -> None:
        self._parts = parts
        self._book = book
        self._watch = watch
        self._continuations = continuations

    async def answer(
        self, offer_id: str, envelope: Envelope, *, actor: Principal
    ) -> Offer:
        """Bring a sealed answer on its way (see `Handovers.answer`)."""
        offer = self.get(offer_id)
        opened = await self._parts.seals.open_answer(
            envelope,
            purpose=Purpose.HANDOVER_ANSWER,
            actor=actor,
            subject=offer.subject,
        )
        if isinstance(opened, Settled):
            return await self._retried(self.get(offer_id))
        try:
            if not actor.may(Scope.ANSWER):
                raise PermissionDenied("Answering needs the scope ANSWER.")
            checked_answer(opened.content["answer"])
            return await self._take(offer, envelope, opened.content, actor)
        except SidestageError as error:
            await self._parts.audit.write(
                offer_record(
                    "answer",
                    offer,
                    actor=actor,
                    outcome=AuditOutcome.REFUSED,
                    code=error.code.value,
                    message_id=envelope.header.message_id,
                )
            )
            raise

    async def dismiss(self, offer_id: str, *, actor: Principal) -> Offer:
        """Put an offer away (see `Handovers.dismiss`)."""
        offer = self.get(offer_id)
        dismissed = await self._book.close(
            offer, OfferState.DISMISSED, origin=_OPEN, actor=actor
        )
        if dismissed is None:
            raise not_open(self.get(offer_id))
        return dismissed

    def get(self, offer_id: str) -> Offer:
        """Return the offer with that id; raise `OfferNotFound`."""
        offer = self._book.get(offer_id)
        if offer is None:
            raise OfferNotFound(GONE)
        return offer

    async def _take(
        self,
        offer: Offer,
        envelope: Envelope,
        content: Mapping[str, Any],
        actor: Principal,
    ) -> Offer:
        now = await self._watch.check(offer) or offer
        if now.is_answer(envelope) and now.state is not OfferState.PENDING:
            return await self._retried(now)
        if now.state is not OfferState.PENDING:
            raise not_open(now)
        accepted = await self._plan(now, envelope)
        text = typed_text(content, is_fresh=accepted.is_fresh)
        moved = await self._book.move(
            now.id,
            _PENDING,
            state=OfferState.ANSWERING,
            accepted=accepted,
            blocked_by=None,
            last_failure=None,
            record=offer_record(
                "answer",
                now,
                actor=actor,
                outcome=AuditOutcome.BEGUN,
                message_id=accepted.message_id,
                detail=f"terminal={accepted.terminal_id}",
            ),
            changes=Changes(seen=SeenEnvelope.of(envelope)),
        )
        if moved is None:
            return await self._lost_race(self.get(offer.id), envelope)
        await self._continuations.begin(moved, text, actor=actor)
        return self.get(offer.id)

    async def _lost_race(self, offer: Offer, envelope: Envelope) -> Offer:
        if offer.is_answer(envelope):
            return await self._retried(offer)
        raise not_open(offer)

    async def _retried(self, offer: Offer) -> Offer:
        """Return what became of an answer that came before."""
        if offer.state is OfferState.ANSWERING:
            await self._continuations.wait_started(offer)
            offer = self.get(offer.id)
        if offer.state in (OfferState.ANSWERING, OfferState.CONTINUED):
            return offer
        raise not_open(offer)

    async def _plan(self, offer: Offer, envelope: Envelope) -> Accepted:
        """Return where the answer goes. Raises `AgentNotIdle`."""
        session = await self._parts.sessions.refresh(offer.session_id)
        terminal_id = TerminalId(new_id("terminal"))
        conversation = ConversationId(str(uuid.uuid4()))
        if offer.delivery is OfferDelivery.TYPE:
            terminal_id, conversation = await self._own_terminal(offer, session)
        is_gone = session is None or session.origin.transcript is None
        return Accepted(
            envelope=envelope,
            device_id=DeviceId(envelope.header.device_id),
            message_id=envelope.header.message_id,
            at=self._parts.clock(),
            terminal_id=terminal_id,
            conversation_id=conversation,
            is_fresh=is_gone and offer.delivery is OfferDelivery.FORK,
        )

    async def _own_terminal(
        self, offer: Offer, session: Session | None
    ) -> tuple[TerminalId, ConversationId]:
        if session is None or session.terminal_id is None:
            raise AgentNotIdle("The session no longer runs in a terminal of ours.")
        told = await self._parts.statuses.told_status(session.id)
        # Until its hooks have run, an agent is busy with the turn that asked.
        is_same_turn = told is not None and (
            told.state is SessionState.IDLE
            or (told.state is SessionState.RUNNING and told.at <= offer.created_at)
        )
        if not is_same_turn:
            raise AgentNotIdle("The agent is not waiting for a prompt now.")
        return session.terminal_id, session.origin.conversation_id


def not_open(offer: Offer) -> OfferNotOpen:
    """Return the error that tells a loser what became of *offer*."""
    return OfferNotOpen(
        _SENTENCES[offer.state], state=offer.state.value, offer_id=offer.id
    )
