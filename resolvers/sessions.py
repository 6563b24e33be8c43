"""Outside sessions, as GraphQL shows them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import strawberry

from resolvers import node as nodes
from resolvers.agent_requests import (
    AgentRequest,
    list_requests_of,
    read_waiting_for,
)
from resolvers.content import labelled, plain, textual
from resolvers.context import Context, Info, check_clear, given
from resolvers.node import Node, check_id, host_of
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
from resolvers.paging_order import SessionOrder
from resolvers.projects import Host, Project, find_project
from resolvers.scalars import BigInt, write_datetime
from resolvers.terminals import Terminal
from resolvers.transcripts import TranscriptConnection, read_transcript
from sidestage.devices.model import Scope
from sidestage.errors import ErrorCode, PermissionDenied
from sidestage.handover.model import Offer
from sidestage.ids import ProjectId
from sidestage.projects import model as projects
from sidestage.sessions import model
from sidestage.sessions.filter import LONG_AGO, SessionFilter, last_activity
from sidestage.terminals import desk
from sidestage.terminals.model import Terminal as TerminalValue
from sidestage.text import clean_path

if TYPE_CHECKING:
    from resolvers.handover import HandoverOffer


@strawberry.type(description="Why a session's state is what it says.")
class StateEvidence:
    """Why a session's state is what it says."""

    source: model.EvidenceSource = plain("Where the evidence came from.")
    observed_at: datetime = plain("When it was seen.")


@strawberry.type(description="What an asking session waits for.")
class WaitingFor:
    """What an asking session waits for."""

    kind: model.WaitingKind = plain("The kind of thing it waits for.")
    label: str | None = labelled("The agent program's own words for it.")
    tool_name: str | None = labelled("The tool it wants to use, if it is known.")
    since: datetime = plain("Since when it waits.")


@strawberry.type(description="Tokens, each model answer counted once.")
class TokenUsage:
    """Tokens, each model answer counted once."""

    input_tokens: BigInt = plain("Tokens sent that no cache held.")
    output_tokens: BigInt = plain("Tokens the model wrote.")
    cache_creation_tokens: BigInt = plain("Tokens written to the provider's cache.")
    cache_read_tokens: BigInt = plain("Tokens read from the provider's cache.")


@strawberry.type(description="The last words of a session.")
class MessagePreview:
    """The last words of a session."""

    role: model.MessageRole = plain("Who said them.")
    text: str | None = textual("The words, at most 500 characters.")
    at: datetime | None = plain("When they were said.")


@strawberry.type(
    description="Two processes write one conversation; what they write may be lost."
)
class SessionConflict:
    """Two processes write one conversation."""

    since: datetime = plain("When it was seen first.")
    message: str = plain("A sentence to show.")


@strawberry.type(description="Why a session cannot be resumed.")
class ResumeRefusal:
    """Why a session cannot be resumed."""

    code: ErrorCode = plain("The code that `resumeOutsideSession` would answer.")
    message: str = plain("A sentence to show in place of a button.")


@strawberry.type(
    description=(
        "Whether an ended session may be resumed: the one rule every client shows. "
        "It may be a moment old; `resumeOutsideSession` decides."
    )
)
class ResumeAvailability:
    """Whether an ended session may be resumed."""

    available: bool = plain("Whether to show the button.")
    refusal: ResumeRefusal | None = plain(
        "Why not. Null when it is available, and when the session has not ended."
    )


NOT_ENDED: Final = desk.ResumeAvailability(available=False, refusal=None)


def _host(info: Info) -> nodes.Host:
    return host_of(info.context)


def _project(
    info: Info, root: strawberry.Parent[model.Session]
) -> projects.Project | None:
    return find_project(info.context, root.project_id)


def _terminal(
    info: Info, root: strawberry.Parent[model.Session]
) -> TerminalValue | None:
    if root.terminal_id is None:
        return None
    return info.context.parts.terminals.feed.get(root.terminal_id)


def _resume(
    info: Info, root: strawberry.Parent[model.Session]
) -> desk.ResumeAvailability:
    return info.context.parts.terminals.resume_availability(root) or NOT_ENDED


def _continued_from(
    info: Info, root: strawberry.Parent[model.Session]
) -> model.Session | None:
    if root.continued_from_id is None:
        return None
    return info.context.parts.sessions.find(root.continued_from_id)


def _continuations(
    info: Info,
    root: strawberry.Parent[model.Session],
    first: First = strawberry.UNSET,
    after: After = strawberry.UNSET,
) -> Page[model.Session]:
    request = PageRequest.of(first, after, None, None)
    rows = [
        session
        for session in info.context.parts.sessions.feed.values()
        if session.continued_from_id == root.id
    ]
    return page_of(rows, ORDERS[SessionOrder.STARTED], request)


def _directory(root: strawberry.Parent[model.Session]) -> str | None:
    return root.directory and clean_path(root.directory)


def _current_directory(root: strawberry.Parent[model.Session]) -> str | None:
    return root.current_directory and clean_path(root.current_directory)


def _handover_offer(info: Info, root: strawberry.Parent[model.Session]) -> Offer | None:
    return info.context.parts.handovers.open_of(root.id)


LazyOffer = Annotated["HandoverOffer", strawberry.lazy("resolvers.handover")]
Lazy = Annotated["OutsideSession", strawberry.lazy("resolvers.sessions")]


@strawberry.type(
    description=(
        "A conversation that an agent program recorded on a host, whoever started it. "
        "`terminal` is set while it runs in a terminal of Sidestage's."
    )
)
class OutsideSession(Node):
    """A conversation that an agent program recorded on a host."""

    agent: model.AgentKind = plain("The agent program.")
    name: str = labelled(
        "Its title, else its first prompt, else its folder's name. A placeholder "
        "when content is sealed."
    )
    directory = labelled(
        "The folder in which it began, if it is known.",
        resolver=_directory,
        graphql_type=str | None,
    )
    current_directory = labelled(
        "The folder it is in now, if it is known.",
        resolver=_current_directory,
        graphql_type=str | None,
    )
    git_branch: str | None = labelled("The branch its folder was on, if there was one.")
    state: model.SessionState = plain("What it does, as far as it can be known.")
    state_since: datetime = plain("Since when it does that.")
    state_evidence: StateEvidence | None = plain("Why `state` says so.")
    waiting_for = strawberry.field(
        resolver=read_waiting_for,
        graphql_type=WaitingFor | None,
        description="What it waits for, while it is ASKING.",
    )
    started_at: datetime | None = plain("When it began.")
    last_activity_at: datetime | None = plain("When something last happened in it.")
    ended_at: datetime | None = plain("When it ended, if it has ended.")
    model: str | None = plain("The model that answered last.")
    permission_mode: str | None = plain("The agent program's own name of its mode.")
    agent_version: str | None = plain("The agent program's version.")
    usage: TokenUsage | None = plain("The tokens it used.")
    last_message: MessagePreview | None = textual("Its last words.")
    conflict: SessionConflict | None = plain(
        "Set while two processes write this conversation."
    )
    handed_off_at: datetime | None = plain("When an answer continued it elsewhere.")
    host = strawberry.field(
        resolver=_host, graphql_type=Host, description="The machine it is on."
    )
    project = strawberry.field(
        resolver=_project,
        graphql_type=Project | None,
        description="The registered project its folder lies in.",
    )
    terminal = strawberry.field(
        resolver=_terminal,
        graphql_type=Terminal | None,
        description="The terminal of Sidestage's it runs in, if it runs in one.",
    )
    resume = strawberry.field(
        resolver=_resume,
        graphql_type=ResumeAvailability,
        description="Whether it may be resumed, and why not.",
    )
    continued_from = strawberry.field(
        resolver=_continued_from,
        graphql_type=Lazy | None,
        description="The session that this one continues.",
    )
    continuations = strawberry.field(
        resolver=_continuations,
        graphql_type=Connection[Lazy],
        description="The sessions that continue this one, latest first.",
    )
    handover_offer = strawberry.field(
        resolver=_handover_offer,
        graphql_type=LazyOffer | None,
        description="Its question that is PENDING or ANSWERING, if there is one.",
    )
    requests = strawberry.field(
        resolver=list_requests_of,
        graphql_type=list[AgentRequest],
        description="What it waits for a person for, oldest first.",
    )
    transcript = textual(
        "What was said and done in it, oldest first. Its own folder's file is read "
        "for this, so it can fail alone.",
        resolver=read_transcript,
        graphql_type=TranscriptConnection | None,
    )

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is a session."""
        return isinstance(value, model.Session)


@strawberry.input(
    description="Which sessions to list. What is left out asks for nothing."
)
class OutsideSessionFilter:
    """Which sessions to list."""

    states: list[model.SessionState] | None = strawberry.field(
        default=None, description="In one of these states; an empty list means any."
    )
    agent: model.AgentKind | None = strawberry.field(
        default=None, description="Of this agent program."
    )
    project_id: strawberry.ID | None = strawberry.field(
        default=None, description="In this project."
    )
    text: str | None = strawberry.field(
        default=None,
        description=(
            "With this text in name, folder, branch or last words, without regard to "
            "case. Needs the scope `READ`."
        ),
    )
    active_since: datetime | None = strawberry.field(
        default=None, description="Active at this time or later."
    )
    active_within_seconds: int | None = strawberry.field(
        default=None,
        description=(
            "Active within so many seconds before now; in a feed, sessions leave as "
            "time passes. 1 to 31622400."
        ),
    )
    has_terminal: bool | None = strawberry.field(
        default=None, description="In a terminal of Sidestage's (true), or not (false)."
    )
    resumable: bool | None = strawberry.field(
        default=None, description="That may be resumed now (true), or not (false)."
    )


def to_filter(context: Context, wish: OutsideSessionFilter | None) -> SessionFilter:
    """Return the filter that *wish* means.

    Raises `PermissionDenied` for a text without `READ`: it would tell, one guess at a
    time, what the caller may not read.
    """
    if not wish:
        return SessionFilter()
    if wish.text and not context.principal.may(Scope.READ):
        raise PermissionDenied("The filter `text` needs the scope READ.")
    if wish.text:
        check_clear(context)
    project = wish.project_id and ProjectId(check_id(wish.project_id, "project"))
    return SessionFilter(
        states=tuple(sorted(set(wish.states or ()))),
        agent=wish.agent,
        project_id=project or None,
        text=wish.text or None,
        active_since=wish.active_since,
        active_within_seconds=wish.active_within_seconds,
        has_terminal=wish.has_terminal,
        resumable=wish.resumable,
    )


def is_resumable(context: Context, session: model.Session) -> bool:
    """Tell whether *session* may be resumed, by the rule its row shows."""
    availability = context.parts.terminals.resume_availability(session)
    return availability is not None and availability.available


EVERY_SESSION: Final = SessionFilter()
ORDERS: Final[Mapping[SessionOrder, Order[model.Session]]] = {
    SessionOrder.STARTED: Order(
        "sessions:started",
        lambda session: (write_datetime(session.started_at or LONG_AGO), session.id),
        descending=True,
    ),
    SessionOrder.LAST_ACTIVITY: Order(
        "sessions:activity",
        lambda session: (write_datetime(last_activity(session)), session.id),
        descending=True,
    ),
    SessionOrder.NAME: Order(
        "sessions:name", lambda session: (session.name.casefold(), session.id)
    ),
}

FilterArgument = Annotated[
    OutsideSessionFilter | None,
    strawberry.argument(description="Which sessions; all of them if it is left out."),
]
OrderArgument = Annotated[
    SessionOrder, strawberry.argument(description="How they are ordered.")
]


def list_sessions(
    info: Info,
    filter: FilterArgument = strawberry.UNSET,  # noqa: A002 -- the schema's name
    order_by: OrderArgument = SessionOrder.STARTED,
    first: First = strawberry.UNSET,
    after: After = strawberry.UNSET,
    last: Last = strawberry.UNSET,
    before: Before = strawberry.UNSET,
) -> Page[model.Session]:
    """Return a page of the sessions that match."""
    context = info.context
    request = PageRequest.of(first, after, last, before)
    wish = to_filter(context, given(filter))
    rows: Sequence[model.Session] = context.parts.sessions.feed.values()
    if wish != EVERY_SESSION:
        matches = wish.with_resumable(lambda session: is_resumable(context, session))
        now = context.parts.clock()
        rows = [row for row in rows if matches(row, now)]
    if order_by is SessionOrder.NAME:
        check_clear(context)
    return page_of(rows, ORDERS[order_by], request)


OutsideSessionConnection = Connection[OutsideSession]
