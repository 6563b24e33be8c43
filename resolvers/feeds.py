"""The live feeds: their messages, and the views that a subscription opens.

A subscription's resolver returns a `FeedStream`. It can be iterated alone; the API does
better and streams its view to every client that asked the same thing at once.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Generic, TypeVar

import strawberry

from resolvers.content import plain, textual
from resolvers.context import Context, Info, given
from resolvers.node import check_id
from resolvers.scalars import FeedCursor
from resolvers.sessions import (
    FilterArgument,
    OutsideSession,
    is_resumable,
    to_filter,
)
from resolvers.terminals import Terminal
from resolvers.transcript_view import TranscriptView
from resolvers.transcripts import TranscriptEntry
from sidestage.feeds import (
    EndOfFeed,
    FeedKind,
    FeedView,
    Follows,
    Position,
    Rows,
    View,
    binding,
    read_cursor,
    write_cursor,
)
from sidestage.ids import SessionId
from sidestage.requests.model import AgentRequest
from sidestage.sessions import model as sessions
from sidestage.sessions.filter import SessionFilter
from sidestage.terminals import model as terminals

CHUNK_LIMIT_ROWS: Final = 200
"""Rows in one message: some 60 kB, which a phone shows at once."""
Value = TypeVar("Value")


@strawberry.interface(description="What every feed's message has.")
class FeedMessage:
    """What every feed's message has."""

    cursor: FeedCursor = plain("Keep the newest one: it is the `after` to come back.")
    kind: FeedKind = plain("What the message is.")
    removed_ids: list[strawberry.ID] = plain(
        "Rows to forget: they are gone, or no longer match the filter."
    )
    more: bool = plain("Whether the snapshot goes on in the next message.")
    at: datetime = plain("When the server looked.")

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is a message; a feed's field names its own type."""
        return isinstance(value, Message)


@strawberry.type(description="News of the sessions.")
class OutsideSessionFeedMessage(FeedMessage):
    """News of the sessions."""

    upserts: list[OutsideSession] = plain("Rows to put or replace, by `id`.")


@strawberry.type(description="News of the terminals.")
class TerminalFeedMessage(FeedMessage):
    """News of the terminals."""

    upserts: list[Terminal] = plain("Rows to put or replace, by `id`.")


@strawberry.type(description="News of one conversation.")
class TranscriptFeedMessage(FeedMessage):
    """News of one conversation."""

    upserts: list[TranscriptEntry] = textual("Entries to put or replace, by `id`.")


@dataclass(frozen=True, slots=True)
class Message(Generic[Value]):
    """One message of a feed, whatever its rows are."""

    cursor: str
    kind: FeedKind
    upserts: tuple[Value, ...]
    removed_ids: tuple[str, ...]
    more: bool
    at: datetime


class FeedStream(AsyncIterator[Message[Any]]):
    """One subscription's messages; `view` and `bound_to` serve those who share them."""

    def __init__(self, view: View[Any], bound_to: str, after: str | None) -> None:
        self.view = view
        self.bound_to = bound_to
        self.after = after
        self._messages = self._run()

    def message(
        self,
        kind: FeedKind,
        rows: Rows[Any],
        *,
        more: bool = False,
        unfinished: bool = False,
    ) -> Message[Any]:
        """Return the message that tells *rows*."""
        cursor = write_cursor(self.bound_to, rows.position, unfinished=unfinished)
        at = rows.position.at
        return Message(cursor, kind, rows.upserts, rows.removed_ids, more, at)

    async def start(
        self, after: str | None
    ) -> tuple[tuple[Message[Any], ...], Position]:
        """Return what a reader with the cursor *after* needs first, and where it is.

        Raises `BadUserInput` for a cursor that was never ours.
        """
        position = read_cursor(after, self.bound_to) if after else None
        missed = await self.view.changes(position) if position else None
        if missed is not None:
            kind = FeedKind.HEARTBEAT if missed.is_empty else FeedKind.DELTA
            return (self.message(kind, missed),), missed.position
        return await self.restart(reset=after is not None)

    async def restart(
        self, *, reset: bool
    ) -> tuple[tuple[Message[Any], ...], Position]:
        """Return a whole snapshot in chunks, after a RESET if *reset*."""
        rows = await self.view.snapshot()
        chunks = self._chunks(rows)
        if not reset:
            return chunks, rows.position
        nothing: Rows[Any] = Rows(rows.position, ())
        begin = self.message(FeedKind.RESET, nothing, more=True, unfinished=True)
        return (begin, *chunks), rows.position

    def _chunks(self, rows: Rows[Any]) -> tuple[Message[Any], ...]:
        starts = range(0, len(rows.upserts), CHUNK_LIMIT_ROWS) or (0,)
        last = starts[-1]
        return tuple(
            self.message(
                FeedKind.SNAPSHOT,
                Rows(rows.position, rows.upserts[start : start + CHUNK_LIMIT_ROWS]),
                more=start != last,
                unfinished=start != last,
            )
            for start in starts
        )

    async def _run(self) -> AsyncGenerator[Message[Any]]:
        try:
            messages, position = await self.start(self.after)
            for message in messages:
                yield message
            async for message in self._live(position):
                yield message
        finally:
            await self.view.close()

    async def _live(self, position: Position) -> AsyncGenerator[Message[Any]]:
        while True:
            try:
                await self.view.wait(position)
            except EndOfFeed:
                return
            rows = await self.view.changes(position)
            if rows is None:
                messages, position = await self.restart(reset=True)
                for message in messages:
                    yield message
                continue
            position = rows.position
            if not rows.is_empty:
                yield self.message(FeedKind.DELTA, rows)

    def __aiter__(self) -> "FeedStream":
        return self

    async def __anext__(self) -> Message[Any]:
        return await self._messages.__anext__()

    async def aclose(self) -> None:
        """Stop, and let the view go."""
        await self._messages.aclose()
        await self.view.close()


def scope_key(context: Context) -> str:
    """Return what of the caller decides which rows and fields it sees."""
    principal = context.principal
    return " ".join((*sorted(principal.scopes), principal.content))


After = Annotated[
    FeedCursor | None,
    strawberry.argument(
        description=(
            "The newest cursor you hold. If the server remembers that far back, you "
            "get what you missed; otherwise RESET and a fresh snapshot."
        )
    ),
]


def _follows_of_sessions(context: Context, wish: SessionFilter) -> tuple[Follows, ...]:
    """Return the other feeds that decide which session rows are sent, and how."""
    feed = context.parts.sessions.feed

    def in_project(id_: str) -> list[str]:
        return [row.id for row in feed.values() if row.project_id == id_]

    def in_terminal(id_: str) -> list[str]:
        return [row.id for row in feed.values() if row.terminal_id == id_]

    def with_offer(id_: str) -> list[str]:
        offer = context.parts.handovers.feed.get(id_)
        return [] if offer is None else [offer.session_id]

    reached = context.reached
    follows: list[Follows] = []
    shows_project = {"OutsideSession.project", "OutsideSession.resume"} & reached
    if shows_project or wish.resumable is not None:
        follows.append(Follows(context.parts.projects.feed, in_project))
    if "OutsideSession.handoverOffer" in reached:
        follows.append(Follows(context.parts.handovers.feed, with_offer))
    if "OutsideSession.terminal" in reached:
        follows.append(Follows(context.parts.terminals.feed, in_terminal))
    if {"OutsideSession.requests", "OutsideSession.waitingFor"} & reached:
        requests = context.parts.requests.feed
        follows.append(Follows(requests, lambda id_: asked_by(requests.get(id_))))
    return tuple(follows)


def asked_by(request: AgentRequest | None) -> tuple[str, ...]:
    """Return the session whose row shows *request*; none once it is forgotten."""
    return () if request is None else (request.session_id,)


async def follow_sessions(
    info: Info,
    filter: FilterArgument = strawberry.UNSET,  # noqa: A002 -- the schema's name
    after: After = strawberry.UNSET,
) -> AsyncGenerator[OutsideSessionFeedMessage]:
    """Open the feed of the sessions that match."""
    context = info.context
    wish = to_filter(context, given(filter))
    view = FeedView[sessions.Session](
        name="outsideSessionFeed",
        feed=context.parts.sessions.feed,
        key=lambda session: session.id,
        matches=wish.with_resumable(lambda session: is_resumable(context, session)),
        may_have_matched=lambda session, at: may_have_matched(wish, session, at),
        leaves_at=wish.leaves_at if wish.active_within_seconds else None,
        follows=_follows_of_sessions(context, wish),
        clock=context.parts.clock,
    )
    stream: AsyncGenerator[OutsideSessionFeedMessage] = open_stream(
        context, view, wish.key, given(after)
    )
    return stream


async def follow_terminals(
    info: Info, after: After = strawberry.UNSET
) -> AsyncGenerator[TerminalFeedMessage]:
    """Open the feed of the terminals."""
    context = info.context
    view = FeedView[terminals.Terminal](
        name="terminalFeed",
        feed=context.parts.terminals.feed,
        key=lambda terminal: terminal.id,
        clock=context.parts.clock,
    )
    stream: AsyncGenerator[TerminalFeedMessage] = open_stream(
        context, view, "", given(after)
    )
    return stream


async def follow_transcript(
    info: Info,
    session_id: Annotated[
        strawberry.ID, strawberry.argument(description="The session.")
    ],
    after: After = strawberry.UNSET,
) -> AsyncGenerator[TranscriptFeedMessage]:
    """Open the feed of one conversation."""
    context = info.context
    id_ = SessionId(check_id(session_id, "outside"))
    view = TranscriptView(context.parts.transcripts, id_, clock=context.parts.clock)
    await view.open()
    stream: AsyncGenerator[TranscriptFeedMessage] = open_stream(
        context, view, id_, given(after)
    )
    return stream


def may_have_matched(
    wish: SessionFilter, session: sessions.Session, at: datetime
) -> bool:
    """Tell whether *session* may have matched *at*, when its project may have differed.

    What was resumable then is not kept; only what has ended can have been.
    """
    has_ended = session.state is sessions.SessionState.ENDED
    return wish.matches(session, at) and (has_ended or not wish.resumable)


def open_stream(context: Context, view: View[Any], wish: str, after: str | None) -> Any:  # noqa: ANN401 -- strawberry reads the resolver's own annotation
    """Return the stream of *view* for one caller; *wish* names its arguments."""
    follows = ",".join(sorted(context.reached))
    bound_to = binding(view.name, wish, scope_key(context), follows)
    return FeedStream(view, bound_to, after)
