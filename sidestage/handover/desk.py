"""The port through which offers are listed and answered."""

from typing import Protocol

from sidestage.devices.model import Principal
from sidestage.envelopes.envelope import Envelope
from sidestage.feeds import Feed
from sidestage.handover.model import Offer
from sidestage.handover.takeover import TakenOver
from sidestage.ids import SessionId, TerminalId
from sidestage.terminals.model import Terminal


class Handovers(Protocol):
    """The one door through which sessions are continued elsewhere."""

    @property
    def feed(self) -> Feed[Offer]:
        """The offers by id, closed ones for a week, with their changes."""

    def open_of(self, session_id: SessionId) -> Offer | None:
        """Return the session's offer that is PENDING or ANSWERING, or None (no I/O)."""

    async def answer(
        self, offer_id: str, envelope: Envelope, *, actor: Principal
    ) -> Offer:
        """Bring a sealed answer on its way; return the offer once something runs.

        The same envelope again gets what became of it. Raises `OfferNotFound`,
        `OfferNotOpen`, `InvalidInput`, `AnswerStartsACommand`, `AgentNotIdle`, what
        `Seals.open_answer` raises, and what `Forks.fork` raises: then nothing ran,
        and the same envelope may be sent again.
        """

    async def dismiss(self, offer_id: str, *, actor: Principal) -> Offer:
        """Put an offer away, also one whose answer is still on its way.

        What runs in a terminal goes on; nothing more is typed there. Raises
        `OfferNotFound`, `OfferNotOpen`.
        """

    async def take_over(
        self,
        session_id: SessionId,
        *,
        cols: int,
        rows: int,
        idempotency_key: str | None,
        actor: Principal,
    ) -> TakenOver:
        """Fork a live, idle session at once, and hand it off to the fork.

        If its keyboard was used meanwhile, it stays as it is. Raises `AgentNotIdle`,
        `OutsideSessionNotFound`, `OutsideSessionResumed`, and what `Forks.fork` does.
        """

    async def send_prompt(
        self, terminal_id: TerminalId, text: str, *, actor: Principal
    ) -> Terminal:
        """Type *text* into an idle agent in a terminal of ours, and press Enter.

        A leading `/` or `!` acts as at the keyboard. Raises `InvalidInput`,
        `TerminalNotFound`, `TerminalNotRunning`, `AgentNotIdle`, `PromptNotSent`,
        `HostUnavailable`.
        """
