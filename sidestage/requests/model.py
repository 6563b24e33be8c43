"""What a live session asks a person, as the rest of the product sees it.

Its dialog stays open at the keyboard all the while: whoever answers first wins
(docs/handover-protocol.md, "Requests").
"""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, NewType, Protocol

from sidestage.canonical import pae
from sidestage.devices.model import Principal
from sidestage.envelopes.envelope import Envelope, Subject
from sidestage.feeds import Feed
from sidestage.ids import SessionId, TerminalId
from sidestage.sessions.model import Process

RequestId = NewType("RequestId", str)
"""`request:` and 32 hex digits."""

_DIGEST_DOMAIN: Final = "sidestage/request/v1"


class RequestKind(StrEnum):
    """What is asked."""

    PERMISSION = "PERMISSION"
    """Leave to use a tool."""
    QUESTION = "QUESTION"
    """Answers to questions with options."""
    PLAN = "PLAN"
    """Approval of a plan."""


class RequestState(StrEnum):
    """Where a request stands. It never goes back from a settled state."""

    PENDING = "PENDING"
    """A hook waits: a device can answer."""
    ANSWERING = "ANSWERING"
    """A device's answer was accepted and is on its way to the agent."""
    KEYBOARD_ONLY = "KEYBOARD_ONLY"
    """The session still asks, but no hook waits: only the keyboard can answer."""
    ANSWERED = "ANSWERED"
    """A device's answer was handed to the agent."""
    WITHDRAWN = "WITHDRAWN"
    """It is settled without a device: see `RequestEnd`."""
    TIMED_OUT = "TIMED_OUT"
    """Nobody answered in time, and the agent has gone on. It is nobody's "no"."""

    @property
    def is_open(self) -> bool:
        """Whether a person is still asked."""
        return self in OPEN_STATES


OPEN_STATES: Final = frozenset(
    {RequestState.PENDING, RequestState.ANSWERING, RequestState.KEYBOARD_ONLY}
)


class RequestEnd(StrEnum):
    """What ended a request."""

    DEVICE = "DEVICE"
    KEYBOARD = "KEYBOARD"
    """Answered, refused or dismissed in the agent's own dialog."""
    SESSION_ENDED = "SESSION_ENDED"
    """The agent's process ended, or went on to another conversation."""
    TIME_OUT = "TIME_OUT"
    POLICY = "POLICY"
    """The owner excluded the session's folder meanwhile."""
    UNKNOWN = "UNKNOWN"
    """It is settled, but nobody saw how: the server was away."""


class RequestVerdict(StrEnum):
    """What a device decided."""

    ALLOW = "ALLOW"
    DENY = "DENY"
    ANSWER = "ANSWER"
    """The questions are answered."""


@dataclass(frozen=True, slots=True)
class QuestionOption:
    """One answer that a question offers, in the agent's words."""

    label: str
    description: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a request; free text is always possible besides the options."""

    text: str
    header: str
    options: tuple[QuestionOption, ...]
    multi_select: bool


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change of the agent's permissions that its dialog offers beside "yes"."""

    json: str
    """The offer itself, as JSON."""
    destination: str
    """Where it would be kept: `session`, `localSettings`, …; empty if untold."""
    is_forbidden: bool
    """It would end all asking, so no device may choose it."""

    @property
    def needs_admin(self) -> bool:
        """Whether it outlives the session, which takes a device with `ADMIN`."""
        return self.destination != "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOrigin:
    """What only the server knows of a request. Nothing here reaches a client."""

    run: Process | None
    """The process that asks."""
    tool_use_id: str | None = field(repr=False)
    """The call that the request is about, once it is matched."""
    prompt_id: str | None = field(repr=False)
    claim: bytes = field(repr=False)
    """SHA-256 of what its hook shows when it comes back."""
    event_digest: bytes = field(repr=False)
    """SHA-256 of the very bytes the agent gave its hook."""
    is_headless: bool = False
    """The process has no dialog: only a device can answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """One thing a live session waits for a person for. Times are UTC."""

    id: RequestId
    session_id: SessionId
    terminal_id: TerminalId | None
    kind: RequestKind
    tool_name: str
    input_json: str = field(repr=False)
    """The tool's input as JSON, nothing left out: what runs is what this says."""
    suggestions: tuple[Suggestion, ...] = field(default=(), repr=False)
    questions: tuple[Question, ...] = field(default=(), repr=False)
    plan: str | None = field(default=None, repr=False)
    state: RequestState = RequestState.PENDING
    created_at: datetime
    expires_at: datetime
    """Until then a device can answer; its envelope names this time."""
    state_since: datetime
    has_timed_out: bool = False
    """Its time for devices is over; the dialog may still be open."""
    settled_by: RequestEnd | None = None
    verdict: RequestVerdict | None = None
    """What a device decided, once ANSWERING or ANSWERED."""
    origin: RequestOrigin = field(repr=False)

    @property
    def digest(self) -> str:
        """Hex SHA-256 over what it shows; an answer repeats it as `shown`."""
        return request_digest(self.tool_name, self.input_json)

    @property
    def subject(self) -> Subject:
        """What envelopes about it name."""
        expires_at_ms = int(self.expires_at.timestamp() * 1000)
        return Subject(self.id, self.session_id, expires_at_ms)


def request_digest(tool_name: str, input_json: str) -> str:
    """Return the hex SHA-256 that binds an answer to what was shown."""
    return hashlib.sha256(pae((_DIGEST_DOMAIN, tool_name, input_json))).hexdigest()


class Requests(Protocol):
    """The requests of live sessions: the open ones, and lately settled ones."""

    @property
    def feed(self) -> Feed[AgentRequest]:
        """The requests by id, with their changes, settled ones for a day."""

    def open_of(self, session_id: SessionId) -> tuple[AgentRequest, ...]:
        """Return what the session waits for, oldest first (no I/O)."""

    def seal(self, request: AgentRequest, *, reader: Principal) -> Envelope | None:
        """Return the request sealed for *reader*, if its device can read no clear one.

        None for a caller without a device key, or without `ANSWER`, and for a device
        that may read the content itself.
        """

    async def answer(
        self, request_id: str, envelope: Envelope, *, actor: Principal
    ) -> AgentRequest:
        """Open a device's answer and hand it to the agent, once; return the request.

        The same envelope again gets the same outcome. Raises `RequestNotFound`,
        `RequestSettled`, `RequestKeyboardOnly`, `RequestTimedOut`, `RequestChanged`,
        `SuggestionNotAllowed`, `InvalidInput`, and what `Seals.open_answer` raises.
        """
