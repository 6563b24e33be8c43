"""A subscription iterated alone, as any GraphQL server would run it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from graphql import parse, subscribe

from resolvers.context import Context
from resolvers.feeds import FeedStream
from resolvers.schema import core_schema
from sidestage.feeds import FeedView, binding
from tests.fakes.parts import World, make_world
from tests.fakes.tokens import ADMIN
from tests.fakes.values import a_session, an_entry, session_id

FEED = "subscription { outsideSessionFeed { kind removedIds upserts { id } } }"
TRANSCRIPT = f"""subscription {{ transcriptFeed(sessionId: "{session_id(1)}") {{
    kind upserts {{ id }} }} }}"""


async def follow(world: World, query: str) -> AsyncGenerator[dict[str, Any]]:
    context = Context(world.tokens.principals[ADMIN], world.parts)
    results: Any = subscribe(core_schema(), parse(query), context_value=context)
    async for result in await results:
        assert not result.errors, result.errors
        (message,) = result.data.values()
        yield message


async def test_alone_a_feed_tells_the_same() -> None:
    world = make_world(ring_limit=5)
    messages = follow(world, FEED)
    assert (await anext(messages))["kind"] == "SNAPSHOT"
    news = asyncio.ensure_future(anext(messages))
    await asyncio.wait({news}, timeout=0)
    world.sessions.feed.remove(session_id(1))
    assert (await news)["removedIds"] == [session_id(1)]
    for number in range(9):
        world.sessions.feed.upsert(a_session(2, name=str(number)))
    assert (await anext(messages))["kind"] == "RESET"
    assert (await anext(messages))["kind"] == "SNAPSHOT"
    await messages.aclose()


async def test_alone_a_feed_ends_with_its_subject_and_lets_it_go() -> None:
    world = make_world()
    messages = follow(world, TRANSCRIPT)
    await anext(messages)
    world.transcripts.put(session_id(1), an_entry(9))
    world.transcripts.forget(session_id(1))
    assert [message["kind"] async for message in messages] == ["DELTA"]
    assert world.transcripts.followers == 0


async def test_changes_that_do_not_matter_are_not_told() -> None:
    world = make_world()
    view = FeedView(
        "sessions",
        world.sessions.feed,
        lambda session: session.id,
        lambda session, _: session.name == "wanted",
    )
    stream = FeedStream(view, binding("sessions"), None)
    assert (await anext(stream)).upserts == ()
    news = asyncio.ensure_future(anext(stream))
    for name in ("other", "another", "wanted"):
        world.sessions.feed.upsert(a_session(2, name=name))
        await asyncio.wait({news}, timeout=0.01)
    assert [row.name for row in (await news).upserts] == ["wanted"]
    await stream.aclose()
