"""Handover offers, as GraphQL shows them. No field of theirs carries a clear text."""

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import strawberry

from resolvers.content import plain
from resolvers.context import Info, given
from resolvers.envelopes import Envelope
from resolvers.error_texts import ERROR_CODES
from resolvers.feeds import After as FeedAfter
from resolvers.feeds import FeedMessage, open_stream
from resolvers.node import Node
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
from resolvers.scalars import write_datetime
from resolvers.terminals import Terminal
from sidestage.envelopes import envelope as envelopes
from sidestage.errors import ErrorCode
from sidestage.feeds import FeedView, Follows
from sidestage.handover.model import Offer, OfferBlock, OfferDelivery, OfferState
from sidestage.sessions.model import Session
from sidestage.terminals import model as terminals

if TYPE_CHECKING:
    from resolvers.sessions import OutsideSession

LazySession = Annotated["OutsideSession", strawberry.lazy("resolvers.sessions")]


@strawberry.type(description="Why a start came to nothing; nothing ran.")
class HandoverFailure:
    """Why a start came to nothing."""

    code: ErrorCode = plain("What went wrong, for programs.")
    message: str = plain("What went wrong, as a sentence for people.")


def _session(info: Info, root: strawberry.Parent[Offer]) -> Session | None:
    return info.context.parts.sessions.find(root.session_id)


def _envelope(info: Info, root: strawberry.Parent[Offer]) -> envelopes.Envelope | None:
    device_id = info.context.principal.device_id
    return None if device_id is None else root.envelopes.get(device_id)


def _continuation(info: Info, root: strawberry.Parent[Offer]) -> Session | None:
    if root.continuation_id is None:
        return None
    return info.context.parts.sessions.find(root.continuation_id)


def _terminal(info: Info, root: strawberry.Parent[Offer]) -> terminals.Terminal | None:
    return info.context.parts.terminals.feed.get(root.terminal_id or "")


def _last_failure(root: strawberry.Parent[Offer]) -> HandoverFailure | None:
    if root.last_failure is None:
        return None
    code = ErrorCode(root.last_failure)
    return HandoverFailure(code=code, message=ERROR_CODES[code])


@strawberry.type(
    description=(
        "A question in which a session's turn ended. Its text travels in `envelope` "
        "only, sealed for each paired device; answer with `answerHandover`."
    )
)
class HandoverOffer(Node):
    """A question in which a session's turn ended."""

    state: OfferState = plain("Where it stands.")
    state_since: datetime = plain("Since when it stands there.")
    delivery: OfferDelivery = plain("How an answer reaches the agent.")
    created_at: datetime = plain("When the turn ended.")
    expires_at: datetime = plain("Until when it can be answered.")
    session = strawberry.field(
        resolver=_session,
        graphql_type=LazySession | None,
        description="The session that asks; null once it is no longer listed.",
    )
    envelope = strawberry.field(
        resolver=_envelope,
        graphql_type=Envelope | None,
        description=(
            "Question, summary, title and folder, sealed for the calling device. Null "
            "for a caller without a device key, if the text could not be read again "
            "for a device that was paired later, and a day after the offer closed."
        ),
    )
    terminal = strawberry.field(
        resolver=_terminal,
        graphql_type=Terminal | None,
        description="The terminal an accepted answer goes to.",
    )
    continuation = strawberry.field(
        resolver=_continuation,
        graphql_type=LazySession | None,
        description=(
            "Once it is CONTINUED: the session that the answer began, or with `TYPE` "
            "went on in."
        ),
    )
    blocked_by: OfferBlock | None = plain(
        "While it is ANSWERING: what keeps the answer from being typed. Attach to "
        "`terminal` and see to it."
    )
    last_failure = strawberry.field(
        resolver=_last_failure,
        graphql_type=HandoverFailure | None,
        description=(
            "Why the last answer's start came to nothing. Send the same envelope "
            "again to try once more."
        ),
    )

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is an offer."""
        return isinstance(value, Offer)


HandoverOfferConnection = Connection[HandoverOffer]
ORDER: Final[Order[Offer]] = Order(
    "offers",
    lambda offer: (write_datetime(offer.created_at), offer.id),
    descending=True,
)


def list_offers(
    info: Info,
    first: First = strawberry.UNSET,
    after: After = strawberry.UNSET,
    last: Last = strawberry.UNSET,
    before: Before = strawberry.UNSET,
) -> Page[Offer]:
    """Return a page of the offers, latest first."""
    request = PageRequest.of(first, after, last, before)
    return page_of(info.context.parts.handovers.feed.values(), ORDER, request)


@strawberry.type(description="News of the handover offers.")
class HandoverOfferFeedMessage(FeedMessage):
    """News of the handover offers."""

    upserts: list[HandoverOffer] = plain("Rows to put or replace, by `id`.")


async def follow_offers(
    info: Info, after: FeedAfter = strawberry.UNSET
) -> AsyncGenerator[HandoverOfferFeedMessage]:
    """Open the feed of the offers."""
    parts = info.context.parts
    feed = parts.handovers.feed

    def of_terminal(id_: str) -> list[str]:
        return [offer.id for offer in feed.values() if offer.terminal_id == id_]

    follows: tuple[Follows, ...] = ()
    if "HandoverOffer.terminal" in info.context.reached:
        follows = (Follows(parts.terminals.feed, of_terminal),)
    view = FeedView[Offer](
        name="handoverOfferFeed",
        feed=feed,
        key=lambda offer: offer.id,
        follows=follows,
        clock=parts.clock,
    )
    stream: AsyncGenerator[HandoverOfferFeedMessage] = open_stream(
        info.context, view, "", given(after)
    )
    return stream
