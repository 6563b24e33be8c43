"""What live sessions ask a person, as GraphQL shows it."""

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import strawberry

from resolvers.content import plain, textual
from resolvers.context import Info, given
from resolvers.envelopes import Envelope
from resolvers.node import Node, check_id
from resolvers.paging import (
    After,
    Before,
    Connection,
    First,
    Last,
    Order,
    Page,
    PageRequest,
    page_of,
)
from resolvers.scalars import BigInt, write_datetime
from resolvers.terminals import Terminal
from sidestage.envelopes import envelope as envelopes
from sidestage.ids import SessionId
from sidestage.requests import model
from sidestage.sessions.model import Session, WaitingFor, WaitingKind
from sidestage.terminals.model import Terminal as TerminalValue
from sidestage.text import clean_text

if TYPE_CHECKING:
    from resolvers.sessions import OutsideSession

LazySession = Annotated["OutsideSession", strawberry.lazy("resolvers.sessions")]


@strawberry.type(description="One answer that a question offers.")
class RequestOption:
    """One answer that a question offers."""

    label: str = textual("The answer, in the agent's words.")
    description: str = textual("What it means; may be empty.")


@strawberry.type(
    description=(
        "One question. An answer chooses of its options by their place in the list, "
        "or is a text of the person's own."
    )
)
class RequestQuestion:
    """One question."""

    text: str = textual("The question.")
    header: str = textual("A word or two to show above it; may be empty.")
    options: list[RequestOption] = textual("What it offers, in order.")
    multi_select: bool = textual("Whether several options may be chosen.")


@strawberry.type(
    description=(
        "A lasting change of the agent's permissions that its dialog offers beside "
        '"yes". An answer chooses it by its place in the list.'
    )
)
class RequestSuggestion:
    """A change of the agent's permissions that its dialog offers."""

    json: str = textual("The offer, as JSON.")
    destination: str = textual("Where it is kept: `session`, `localSettings`, …")
    needs_admin: bool = textual("Whether choosing it takes a device with `ADMIN`.")
    is_forbidden: bool = textual("Whether no device may choose it.")


@strawberry.type(
    description=(
        "What a request asks, whole. Show all of it, as text: it comes from an agent. "
        "What you showed is what you sign: see `digest`."
    )
)
class RequestContent:
    """What a request asks, whole."""

    tool_name: str = textual("The tool the agent wants to use.")
    input_json: str = textual("The tool's input, as JSON, nothing left out.")
    digest: str = textual(
        "Hex SHA-256 over tool name and input. Compute it from what you showed (how is "
        "told in docs/handover-protocol.md) and send it back as `shown`."
    )
    suggestions: list[RequestSuggestion] = textual("What may be allowed for longer.")
    questions: list[RequestQuestion] = textual("The questions, of a QUESTION.")
    plan: str | None = textual("The plan in Markdown, of a PLAN.")


def _session(info: Info, root: strawberry.Parent[model.AgentRequest]) -> Session | None:
    return info.context.parts.sessions.find(root.session_id)


def _terminal(
    info: Info, root: strawberry.Parent[model.AgentRequest]
) -> TerminalValue | None:
    if root.terminal_id is None:
        return None
    return info.context.parts.terminals.feed.get(root.terminal_id)


def _session_id(root: strawberry.Parent[model.AgentRequest]) -> str:
    return root.session_id


def _expires_at_ms(root: strawberry.Parent[model.AgentRequest]) -> int:
    return root.subject.expires_at_ms


def _content(root: strawberry.Parent[model.AgentRequest]) -> model.AgentRequest:
    return root


def _envelope(
    info: Info, root: strawberry.Parent[model.AgentRequest]
) -> envelopes.Envelope | None:
    context = info.context
    return context.parts.requests.seal(root, reader=context.principal)


@strawberry.type(
    description=(
        "Something a live session waits for a person for: leave to use a tool, answers "
        "to questions, approval of a plan. The agent's own dialog stays open all the "
        "while; whoever answers first wins, and the request is then settled everywhere."
    )
)
class AgentRequest(Node):
    """Something a live session waits for a person for."""

    kind: model.RequestKind = plain("What is asked.")
    state: model.RequestState = plain("Where it stands.")
    state_since: datetime = plain("Since when it stands there.")
    created_at: datetime = plain("When the agent asked.")
    expires_at: datetime = plain("Until when a device can answer.")
    expires_at_ms: BigInt = plain(
        "The same in milliseconds since 1970, as an answer's envelope names it.",
        resolver=_expires_at_ms,
    )
    has_timed_out: bool = plain(
        "Whether the time for devices is over. It is nobody's answer."
    )
    settled_by: model.RequestEnd | None = plain("What ended it; null while it is open.")
    verdict: model.RequestVerdict | None = plain(
        "What a device decided, once an answer was accepted."
    )
    session_id: strawberry.ID = plain(
        "The id of the session that asks, as envelopes name it.", resolver=_session_id
    )
    session = strawberry.field(
        resolver=_session,
        graphql_type=LazySession | None,
        description="The session that asks; null once it is gone from the list.",
    )
    terminal = strawberry.field(
        resolver=_terminal,
        graphql_type=Terminal | None,
        description="The terminal of Sidestage's that it asks in, if it does.",
    )
    content = textual(
        "What it asks, in clear.",
        resolver=_content,
        graphql_type=RequestContent | None,
    )
    envelope = strawberry.field(
        resolver=_envelope,
        graphql_type=Envelope | None,
        description=(
            "What it asks, sealed for the calling device (`request`), if that may "
            "answer but not read `content`. Null for everyone else, and when it is too "
            "long to be sealed: answer at the keyboard then."
        ),
    )

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is a request."""
        return isinstance(value, model.AgentRequest)


AgentRequestConnection = Connection[AgentRequest]
ORDER: Final[Order[model.AgentRequest]] = Order(
    "requests",
    lambda request: (write_datetime(request.created_at), request.id),
    descending=True,
)

States = Annotated[
    list[model.RequestState] | None,
    strawberry.argument(
        description="In one of these states; left out or empty: those that are open."
    ),
]
OfSession = Annotated[
    strawberry.ID | None,
    strawberry.argument(description="Of this session; of all if it is left out."),
]


def list_requests(
    info: Info,
    session_id: OfSession = strawberry.UNSET,
    states: States = strawberry.UNSET,
    first: First = strawberry.UNSET,
    after: After = strawberry.UNSET,
    last: Last = strawberry.UNSET,
    before: Before = strawberry.UNSET,
) -> Page[model.AgentRequest]:
    """Return a page of the requests, latest first."""
    page = PageRequest.of(first, after, last, before)
    named = given(session_id)
    of_session = None if named is None else SessionId(check_id(named, "outside"))
    wanted = frozenset(given(states) or model.OPEN_STATES)
    rows = [
        request
        for request in info.context.parts.requests.feed.values()
        if request.state in wanted and of_session in (None, request.session_id)
    ]
    return page_of(rows, ORDER, page)


def list_requests_of(
    info: Info, root: strawberry.Parent[Session]
) -> list[model.AgentRequest]:
    """Return what a session waits for, oldest first."""
    return list(info.context.parts.requests.open_of(root.id))


def read_waiting_for(info: Info, root: strawberry.Parent[Session]) -> WaitingFor | None:
    """Return what an asking session waits for, as its oldest request tells it.

    The transcript names the tool later, and the registry its kind not at all.
    """
    waiting, requests = root.waiting_for, info.context.parts.requests.open_of(root.id)
    if waiting is None or not requests or waiting.kind is WaitingKind.DIALOG:
        return waiting
    kind = WaitingKind(requests[0].kind.value)
    tool_name = clean_text(requests[0].tool_name, multiline=False)
    return replace(waiting, kind=kind, tool_name=tool_name)
