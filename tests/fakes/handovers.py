"""The offers in memory, as the API meets them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from sidestage.devices.model import Principal
from sidestage.envelopes.envelope import Envelope
from sidestage.errors import OfferNotFound, SidestageError, TerminalNotFound
from sidestage.feeds import Feed
from sidestage.handover.model import (
    Offer,
    OfferDelivery,
    OfferId,
    OfferState,
    QuestionSource,
)
from sidestage.handover.takeover import TakenOver
from sidestage.ids import ProjectId, SessionId, TerminalId
from sidestage.terminals.model import Terminal
from tests.fakes.values import START, a_terminal, session_id


def an_offer(number: int = 1, **changes: Any) -> Offer:
    """Return an open offer of the session of that number."""
    values: dict[str, Any] = {
        "id": OfferId(f"offer:{number}"),
        "session_id": session_id(number),
        "project_id": ProjectId("project:1"),
        "state": OfferState.PENDING,
        "delivery": OfferDelivery.FORK,
        "created_at": START + timedelta(seconds=number),
        "expires_at": START + timedelta(hours=12, seconds=number),
        "source": QuestionSource("uuid", "000000000001.0000", b"digest"),
        "state_since": START,
    }
    return Offer(**values | changes)


class FakeHandovers:
    """`sidestage.handover.desk.Handovers`; `failure` is raised by all that acts."""

    def __init__(self, terminals: Feed[Terminal], *offers: Offer) -> None:
        self._feed: Feed[Offer] = Feed(lambda offer: offer.id)
        self._terminals = terminals
        self.failure: SidestageError | None = None
        self.answered: list[tuple[str, Envelope, Principal]] = []
        self.sent: list[str] = []
        for offer in offers:
            self._feed.upsert(offer)

    @property
    def feed(self) -> Feed[Offer]:
        """The offers by id."""
        return self._feed

    def open_of(self, session_id: SessionId) -> Offer | None:
        """Return the session's open offer."""
        for offer in self._feed.values():
            if offer.session_id == session_id and offer.state.is_open:
                return offer
        return None

    async def answer(
        self, offer_id: str, envelope: Envelope, *, actor: Principal
    ) -> Offer:
        """Take the answer."""
        self.answered.append((offer_id, envelope, actor))
        return self._move(offer_id, OfferState.ANSWERING)

    async def dismiss(self, offer_id: str, *, actor: Principal) -> Offer:
        """Put it away."""
        return self._move(offer_id, OfferState.DISMISSED)

    async def take_over(
        self,
        session_id: SessionId,
        *,
        cols: int,
        rows: int,
        idempotency_key: str | None,
        actor: Principal,
    ) -> TakenOver:
        """Start a terminal."""
        self._fail()
        terminal = a_terminal(2000, cols=cols, rows=rows)
        self._terminals.upsert(terminal)
        return TakenOver(terminal, handed_off=True)

    async def send_prompt(
        self, terminal_id: TerminalId, text: str, *, actor: Principal
    ) -> Terminal:
        """Take the prompt."""
        self._fail()
        self.sent.append(text)
        terminal = self._terminals.get(terminal_id)
        if terminal is None:
            raise TerminalNotFound("There is no terminal with that id.")
        return terminal

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _move(self, offer_id: str, state: OfferState) -> Offer:
        self._fail()
        offer = self._feed.get(offer_id)
        if offer is None:
            raise OfferNotFound("There is no offer with that id.")
        moved = replace(offer, state=state)
        self._feed.upsert(moved)
        return moved
