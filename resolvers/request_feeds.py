"""The feed of what waits for a person."""

from collections.abc import AsyncGenerator

import strawberry

from resolvers.agent_requests import AgentRequest
from resolvers.content import plain
from resolvers.context import Context, Info, given
from resolvers.feeds import After, FeedMessage, open_stream
from sidestage.feeds import FeedView, Follows
from sidestage.requests import model


@strawberry.type(description="News of what waits for a person.")
class AgentRequestFeedMessage(FeedMessage):
    """News of what waits for a person."""

    upserts: list[AgentRequest] = plain("Rows to put or replace, by `id`.")


async def follow_requests(
    info: Info, after: After = strawberry.UNSET
) -> AsyncGenerator[AgentRequestFeedMessage]:
    """Open the feed of the open requests; a settled one is a removed row."""
    context = info.context
    view = FeedView[model.AgentRequest](
        name="requestFeed",
        feed=context.parts.requests.feed,
        key=lambda request: request.id,
        matches=lambda request, _: request.state.is_open,
        follows=_follows(context),
        clock=context.parts.clock,
    )
    stream: AsyncGenerator[AgentRequestFeedMessage] = open_stream(
        context, view, "", given(after)
    )
    return stream


def _follows(context: Context) -> tuple[Follows, ...]:
    """Return the other feeds that show in the rows which are sent."""
    feed = context.parts.requests.feed

    def of_session(id_: str) -> list[str]:
        return [row.id for row in feed.values() if row.session_id == id_]

    def of_terminal(id_: str) -> list[str]:
        return [row.id for row in feed.values() if row.terminal_id == id_]

    follows: list[Follows] = []
    if "AgentRequest.session" in context.reached:
        follows.append(Follows(context.parts.sessions.feed, of_session))
    if "AgentRequest.terminal" in context.reached:
        follows.append(Follows(context.parts.terminals.feed, of_terminal))
    return tuple(follows)
