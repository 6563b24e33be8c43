"""Typing an accepted answer, and seeing it in the transcript."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from sidestage.errors import SidestageError
from sidestage.handover.book import OfferBook, offer_record
from sidestage.handover.model import (
    Accepted,
    Continuation,
    Handoff,
    Offer,
    OfferBlock,
    OfferDelivery,
    OfferState,
)
from sidestage.handover.parts import HandoverParts
from sidestage.handover.prompt_box import find_prompt_box
from sidestage.handover.store import Changes
from sidestage.handover.turns import last_order, prompts_since, squeezed, went_on
from sidestage.handover.typing_in import Blocked, PromptTypist, Target
from sidestage.ids import SessionId
from sidestage.terminals.model import TerminalState

_ANSWERING: Final = frozenset({OfferState.ANSWERING})
_AT_ONCE: Final = frozenset({OfferBlock.DIALOG, OfferBlock.PROMPT_BOX_IN_USE})
"""What a person must see to; everything else may pass by itself."""
_log = logging.getLogger(__name__)


class AnswerDelivery:
    """Follows one answer at a time to its end; any number beside each other."""

    def __init__(
        self, parts: HandoverParts, book: OfferBook, typist: PromptTypist
    ) -> None:
        self._parts = parts
        self._book = book
        self._typist = typist

    async def deliver(self, offer: Offer, text: str) -> None:
        """Type *text* once the agent is idle; return when the offer has moved on.

        Until then it stays ANSWERING, and says what blocks it.
        """
        began = asyncio.get_running_loop().time()
        while True:
            seq = self._parts.sessions.feed.seq
            now = self._book.get(offer.id)
            if now is None or now.state is not OfferState.ANSWERING:
                return
            if await self.confirm(now, text):
                return
            if self._has_ended(now):
                await self._block(now, OfferBlock.TERMINAL_ENDED)
                return
            is_late = (
                asyncio.get_running_loop().time() - began
                > self._parts.pace.patience_seconds
            )
            if await self._step(now, text, is_late=is_late):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(self._parts.pace.look_again_seconds):
                    await self._parts.sessions.feed.wait_beyond(seq)

    async def confirm(self, offer: Offer, text: str) -> bool:
        """Move the offer to CONTINUED if the transcript shows *text*; tell whether."""
        accepted = accepted_of(offer)
        child = self._target_session(offer, accepted)
        told = await self._prompts(child, accepted.at)
        if squeezed(text) not in told:
            return False
        continued = await self._continued(offer, accepted, child)
        return continued is not None

    async def _step(self, offer: Offer, text: str, *, is_late: bool) -> bool:
        """Do the next thing for the answer; True if there is nothing more to do."""
        accepted = accepted_of(offer)
        if accepted.sent_at is not None:
            await self._nudge(offer, accepted, text, is_late=is_late)
            return False
        if await self._keyboard_was_first(offer, accepted):
            return True
        try:
            await self._type(offer, accepted, text)
        except Blocked as blocked:
            by = blocked.by
            if is_late and by is OfferBlock.NOT_READY:
                by = await self._look(accepted)
            if is_late or by in _AT_ONCE:
                await self._block(offer, by)
        except SidestageError as error:
            _log.warning("An answer could not be typed yet: %s", error.code)
        return False

    async def _type(self, offer: Offer, accepted: Accepted, text: str) -> None:
        async def note() -> None:
            sent = replace(accepted, sent_at=self._parts.clock())
            record = offer_record("typed", offer)
            moved = await self._book.move(
                offer.id, _ANSWERING, record=record, accepted=sent, blocked_by=None
            )
            if moved is None:
                raise Blocked(OfferBlock.BUSY)  # dismissed at the last moment

        try:
            await self._typist.send(
                text, self._target(offer, accepted), before_enter=note
            )
        except Blocked:
            # Noted, but not pressed: it is as if it had not been tried.
            await self._book.move(offer.id, _ANSWERING, accepted=accepted)
            raise

    async def _nudge(
        self, offer: Offer, accepted: Accepted, text: str, *, is_late: bool
    ) -> None:
        """Press Enter again while the box still shows the answer."""
        if is_late:
            await self._block(offer, OfferBlock.NOT_CONFIRMED)
            return
        with suppress(Blocked, SidestageError):
            await self._typist.press_again(text, self._target(offer, accepted))

    async def _keyboard_was_first(self, offer: Offer, accepted: Accepted) -> bool:
        """Tell whether somebody prompted the agent in our place; then nothing is typed.

        In a terminal of ours that supersedes the offer; a continuation is the owner's
        to go on with, and stays ANSWERING.
        """
        if offer.delivery is OfferDelivery.TYPE:
            with suppress(SidestageError):
                if await went_on(
                    self._parts.transcripts, offer.session_id, offer.source.order
                ):
                    record = offer_record("superseded", offer)
                    await self._book.move(
                        offer.id,
                        _ANSWERING,
                        state=OfferState.SUPERSEDED,
                        record=record,
                    )
                    return True
            return False
        child = self._target_session(offer, accepted)
        if await self._prompts(child, accepted.at):
            await self._block(offer, OfferBlock.BUSY)
            return True
        return False

    async def _continued(
        self, offer: Offer, accepted: Accepted, child: SessionId
    ) -> Offer | None:
        return await self._book.move(
            offer.id,
            _ANSWERING,
            state=OfferState.CONTINUED,
            continuation_id=child,
            accepted=replace(accepted, envelope=None),
            blocked_by=None,
            record=offer_record("continued", offer, detail=f"continuation={child}"),
            changes=await self._lineage_of(offer, accepted),
        )

    async def _lineage_of(self, offer: Offer, accepted: Accepted) -> Changes:
        if offer.delivery is OfferDelivery.TYPE:
            return Changes()
        at = self._parts.clock()
        continuation = Continuation(accepted.conversation_id, offer.session_id, at)
        handoff = None
        with suppress(SidestageError):
            handoff = await self._handoff(offer, at)
        return Changes(continuation=continuation, handoff=handoff)

    async def _handoff(self, offer: Offer, at: datetime) -> Handoff | None:
        """Return the parent's handoff; None if its keyboard was used meanwhile."""
        transcripts, parent = self._parts.transcripts, offer.session_id
        session = self._parts.sessions.find(parent)
        if session is None:
            return None
        if session.origin.transcript is None:
            return Handoff(parent, at, offer.source.order)
        if await went_on(transcripts, parent, offer.source.order):
            return None
        order = await last_order(transcripts, parent)
        return Handoff(parent, at, order or offer.source.order)

    async def _prompts(self, session_id: SessionId, since: datetime) -> frozenset[str]:
        """Return what was prompted since, white space left out; nothing if unlisted."""
        try:
            return await prompts_since(self._parts.transcripts, session_id, since)
        except SidestageError:
            return frozenset()

    async def _look(self, accepted: Accepted) -> OfferBlock:
        """Tell a dialog that comes before the registry (trust, login) by the screen."""
        with suppress(SidestageError):
            async with self._parts.typist.open_keyboard(
                accepted.terminal_id
            ) as keyboard:
                screen = await keyboard.screen()
                if screen.strip() and find_prompt_box(screen) is None:
                    return OfferBlock.DIALOG
        return OfferBlock.NOT_READY

    async def _block(self, offer: Offer, by: OfferBlock) -> None:
        if offer.blocked_by is not by:
            await self._book.move(offer.id, _ANSWERING, blocked_by=by)

    def _has_ended(self, offer: Offer) -> bool:
        terminal = self._parts.terminals.get(offer.terminal_id or "")
        return terminal is None or terminal.state is not TerminalState.RUNNING

    def _target_session(self, offer: Offer, accepted: Accepted) -> SessionId:
        if offer.delivery is OfferDelivery.TYPE:
            return offer.session_id
        return self._parts.lineage.session_id(accepted.conversation_id)

    def _target(self, offer: Offer, accepted: Accepted) -> Target:
        return Target(
            self._target_session(offer, accepted),
            accepted.terminal_id,
            is_ours=offer.delivery is OfferDelivery.FORK,
        )


def accepted_of(offer: Offer) -> Accepted:
    """Return the answer of an offer that has one: every ANSWERING one does."""
    if offer.accepted is None:
        raise ValueError("This offer has no answer.")
    return offer.accepted
