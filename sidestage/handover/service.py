"""The handover, put together: `load` it, `run` it, then use it."""

from collections.abc import Awaitable, Callable

from sidestage.devices.model import Principal
from sidestage.envelopes.envelope import Envelope
from sidestage.feeds import Feed
from sidestage.handover.answers import Answers
from sidestage.handover.book import OfferBook
from sidestage.handover.continuations import Continuations
from sidestage.handover.delivery import AnswerDelivery
from sidestage.handover.model import Offer
from sidestage.handover.parts import HandoverParts
from sidestage.handover.sealing import OfferSealer
from sidestage.handover.stops import OfferMaker
from sidestage.handover.takeover import TakenOver, TakeOvers
from sidestage.handover.typing_in import PromptTypist
from sidestage.handover.watch import OfferWatch
from sidestage.ids import SessionId, TerminalId
from sidestage.sessions.hooks import HookListener
from sidestage.terminals.model import Terminal


class Handover:
    """`sidestage.handover.desk.Handovers`, and what makes offers out of hooks."""

    def __init__(self, parts: HandoverParts) -> None:
        self._book = OfferBook(
            parts.store, parts.lineage, parts.push, clock=parts.clock
        )
        self.feed: Feed[Offer] = self._book.feed
        sealer = OfferSealer(
            parts.seals, parts.transcripts, machine_secret=parts.machine_secret
        )
        typist = PromptTypist(parts.typist, parts.statuses, parts.pace)
        delivery = AnswerDelivery(parts, self._book, typist)
        self._watch = OfferWatch(parts, self._book, sealer)
        self._continuations = Continuations(parts, self._book, delivery)
        self._answers = Answers(parts, self._book, self._watch, self._continuations)
        self._take_overs = TakeOvers(parts, self._book, typist)
        self.listener: HookListener = OfferMaker(
            parts, self._book, sealer, self._continuations.settle
        )
        self.check_policy: Callable[[], Awaitable[None]] = self._watch.sweep
        """To be awaited when the adoption policy has changed."""

    async def load(self) -> None:
        """Read what was stored. Call once, before anything else."""
        await self._book.load()

    async def run(self) -> None:
        """Go on with answers, and watch offers, until cancelled."""
        await self._continuations.recover()
        try:
            await self._watch.run()
        finally:
            await self._continuations.close()

    def open_of(self, session_id: SessionId) -> Offer | None:
        """Return the session's offer that is PENDING or ANSWERING, or None."""
        return self._book.open_of(session_id)

    async def answer(
        self, offer_id: str, envelope: Envelope, *, actor: Principal
    ) -> Offer:
        """Bring a sealed answer on its way (see `Handovers.answer`)."""
        return await self._answers.answer(offer_id, envelope, actor=actor)

    async def dismiss(self, offer_id: str, *, actor: Principal) -> Offer:
        """Put an offer away (see `Handovers.dismiss`)."""
        return await self._answers.dismiss(offer_id, actor=actor)

    async def take_over(
        self,
        session_id: SessionId,
        *,
        cols: int,
        rows: int,
        idempotency_key: str | None,
        actor: Principal,
    ) -> TakenOver:
        """Fork a live, idle session at once (see `Handovers.take_over`)."""
        return await self._take_overs.take_over(
            session_id,
            cols=cols,
            rows=rows,
            idempotency_key=idempotency_key,
            actor=actor,
        )

    async def send_prompt(
        self, terminal_id: TerminalId, text: str, *, actor: Principal
    ) -> Terminal:
        """Type a prompt into a terminal of ours (see `Handovers.send_prompt`)."""
        return await self._take_overs.send_prompt(terminal_id, text, actor=actor)
