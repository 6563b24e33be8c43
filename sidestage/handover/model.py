"""A handover offer: a session's open question, and what becomes of it.

The text of the question is never in it: only where it stands in the transcript, and a
keyed digest by which it is known again (docs/security.md, "Offers").
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NewType

from sidestage.envelopes.envelope import Envelope, Subject
from sidestage.ids import (
    ConversationId,
    DeviceId,
    ProjectId,
    SessionId,
    TerminalId,
)

OfferId = NewType("OfferId", str)
"""`offer:` and 32 hex digits."""

OFFER_LIFETIME: Final = timedelta(hours=12)
"""A working day: who answers later should look at the session first."""


class OfferState(StrEnum):
    """Where an offer stands. It never goes back from a closed state."""

    PENDING = "PENDING"
    """It can be answered."""
    ANSWERING = "ANSWERING"
    """A device's answer was accepted and is on its way to the agent."""
    CONTINUED = "CONTINUED"
    """The answer stands in the transcript of the continuation."""
    SUPERSEDED = "SUPERSEDED"
    """The session went on at its keyboard."""
    DISMISSED = "DISMISSED"
    """A person, or a change of the adoption policy, put it away."""
    EXPIRED = "EXPIRED"
    CLOSED = "CLOSED"
    """The session ended first; it can be resumed."""

    @property
    def is_open(self) -> bool:
        """Whether something may still become of it."""
        return self in (OfferState.PENDING, OfferState.ANSWERING)


class OfferDelivery(StrEnum):
    """How an answer reaches the agent."""

    FORK = "FORK"
    """In a continuation: a new conversation that knows the earlier turns."""
    TYPE = "TYPE"
    """Typed into the terminal of ours in which the session runs."""


class OfferBlock(StrEnum):
    """What keeps an accepted answer from being typed; the terminal shows it."""

    DIALOG = "DIALOG"
    """The agent shows a dialog: trust, login, a permission."""
    NOT_READY = "NOT_READY"
    """The agent has not got to its prompt yet."""
    BUSY = "BUSY"
    """The agent works on something else."""
    PROMPT_BOX_IN_USE = "PROMPT_BOX_IN_USE"
    """Somebody's unsent text stands in the agent's prompt box."""
    NOT_CONFIRMED = "NOT_CONFIRMED"
    """It was sent, but the transcript does not show it yet."""
    TERMINAL_ENDED = "TERMINAL_ENDED"
    """The terminal ended before the answer was sent; nothing more is tried."""


@dataclass(frozen=True, slots=True)
class QuestionSource:
    """Where a question stands, and what it is known by."""

    record_uuid: str
    """The transcript's record that ends it."""
    order: str
    """That record's place (`TranscriptEntry.order`)."""
    digest: bytes = field(repr=False)
    """HMAC-SHA256 of its text, keyed by the machine secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The answer that was accepted, and where it goes. The text stays sealed."""

    envelope: Envelope | None = field(repr=False)
    """None once the continuation exists."""
    device_id: DeviceId
    message_id: str
    at: datetime
    terminal_id: TerminalId
    conversation_id: ConversationId = field(repr=False)
    """The continuation's; for `TYPE` the session's own."""
    is_fresh: bool = False
    """The conversation could not be resumed: a new one is told all."""
    sent_at: datetime | None = None
    """When Enter was pressed; from then on it is never typed again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One offer. Times are UTC; nothing in it is content."""

    id: OfferId
    session_id: SessionId
    project_id: ProjectId | None
    state: OfferState
    delivery: OfferDelivery
    created_at: datetime
    expires_at: datetime
    source: QuestionSource
    state_since: datetime
    accepted: Accepted | None = None
    continuation_id: SessionId | None = None
    """The session that the answer began, or (`TYPE`) went on in."""
    blocked_by: OfferBlock | None = None
    last_failure: str | None = None
    """The code of the last start that failed before anything ran."""
    envelopes: Mapping[DeviceId, Envelope] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )
    """What is sealed for each device, as long as it is kept."""

    @property
    def subject(self) -> Subject:
        """What envelopes about it name."""
        expires_at_ms = int(self.expires_at.timestamp() * 1000)
        return Subject(self.id, self.session_id, expires_at_ms)

    @property
    def terminal_id(self) -> TerminalId | None:
        """The terminal its answer goes to."""
        return None if self.accepted is None else self.accepted.terminal_id

    def with_envelopes(self, envelopes: Mapping[DeviceId, Envelope]) -> "Offer":
        """Return the offer with these envelopes in place of those it has."""
        return replace(self, envelopes=MappingProxyType(dict(envelopes)))

    def is_answer(self, envelope: Envelope) -> bool:
        """Tell whether *envelope* bears the id of the answer that was accepted."""
        accepted, header = self.accepted, envelope.header
        return accepted is not None and (header.device_id, header.message_id) == (
            accepted.device_id,
            accepted.message_id,
        )


@dataclass(frozen=True, slots=True)
class Handoff:
    """A parent that was continued elsewhere, until its keyboard is used again."""

    session_id: SessionId
    at: datetime
    order: str
    """The end of its transcript then: a prompt behind it takes the session back."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """A conversation of ours and the session it continues. It stays for good."""

    conversation_id: ConversationId = field(repr=False)
    parent_id: SessionId
    at: datetime


def question_digest(question: str, *, machine_secret: bytes) -> bytes:
    """Return what a question is known by without being kept."""
    text = question.encode("utf-8", "replace")
    return hmac.new(machine_secret, text, hashlib.sha256).digest()
