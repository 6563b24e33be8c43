"""SSE and multipart, beside WebSocket (api.md, line 6)."""

import asyncio
import json
from typing import Any

import pytest

from api.limits import Limits
from tests.fakes.parts import World, make_world
from tests.fakes.socket_client import StreamClient, connect, open_stream, running
from tests.fakes.tokens import ADMIN, VIEWER
from tests.fakes.values import a_session, session_id

SSE = "text/event-stream"
MULTIPART = 'multipart/mixed;boundary="graphql";subscriptionSpec=1.0, application/json'
NAMES = "subscription { outsideSessionFeed { kind upserts { id name } } }"
TRANSCRIPT = f"""subscription {{ transcriptFeed(sessionId: "{session_id(1)}") {{
    kind upserts {{ id }} }} }}"""


async def sse_event(stream: StreamClient) -> tuple[str, Any]:
    while True:
        event = (await stream.until(b"\n\n")).decode()
        if event != ":\n\n":
            break
    name, _, data = event.strip().partition("\n")
    return name.removeprefix("event: "), json.loads(
        data.removeprefix("data:") or "null"
    )


async def part(stream: StreamClient) -> Any:
    while True:
        text = (await stream.until(b"\r\n---")).decode()
        body = text.partition("\r\n\r\n")[2].removesuffix("\r\n---")
        if body and body != "{}":
            return json.loads(body)


async def socket_payloads(world: World) -> list[Any]:
    async with connect(world.app) as client:
        client.subscribe("1", NAMES)
        first = await client.next_payload("1")
        world.sessions.feed.upsert(a_session(2, name="New"))
        return [first, await client.next_payload("1")]


async def sse_payloads(world: World) -> list[Any]:
    async with open_stream(world.app, NAMES, accept=SSE) as stream:
        head = dict((await stream.head())["headers"])
        assert head[b"content-type"] == b"text/event-stream; charset=utf-8"
        first = await sse_event(stream)
        world.sessions.feed.upsert(a_session(2, name="New"))
        second = await sse_event(stream)
    assert first[0] == second[0] == "next"
    return [first[1], second[1]]


async def multipart_payloads(world: World) -> list[Any]:
    async with open_stream(world.app, NAMES, accept=MULTIPART) as stream:
        head = dict((await stream.head())["headers"])
        assert b"subscriptionSpec=1.0" in head[b"content-type"]
        first = asyncio.ensure_future(part(stream))
        await asyncio.wait({first}, timeout=0.05)
        world.sessions.feed.upsert(a_session(2, name="New"))
        parts = [(await first)["payload"]]
        world.sessions.feed.upsert(a_session(3, name="Newer"))
        return [*parts, (await part(stream))["payload"]]


async def test_every_transport_gives_equal_results() -> None:
    expected = await socket_payloads(make_world())
    assert expected[0]["data"]["outsideSessionFeed"]["kind"] == "SNAPSHOT"
    assert await sse_payloads(make_world()) == expected
    assert await multipart_payloads(make_world()) == expected


async def test_a_query_comes_by_sse_too() -> None:
    async with open_stream(
        make_world().app, "{ server { version } }", accept=SSE
    ) as stream:
        await stream.head()
        assert await sse_event(stream) == (
            "next",
            {"data": {"server": {"version": "0.1.0"}}},
        )
        assert await sse_event(stream) == ("complete", None)
        await stream.until(b"nothing more")
        assert stream.is_over


async def test_a_query_is_plain_json_for_who_takes_both() -> None:
    async with make_world().client() as client:
        answer = await client.http.post(
            "/graphql",
            json={"query": "{ __typename }"},
            headers={"accept": f"{SSE}, application/json"},
        )
    assert answer.headers["content-type"].startswith("application/json")


@pytest.mark.parametrize("accept", [SSE, MULTIPART])
async def test_what_does_not_open_is_an_ordinary_answer(accept: str) -> None:
    world = make_world()
    query = 'subscription { transcriptFeed(sessionId: "outside:0") { kind } }'
    async with world.client() as client:
        answer = await client.http.post(
            "/graphql", json={"query": query}, headers={"accept": accept}
        )
    assert "json" in answer.headers["content-type"]
    code = answer.json()["errors"][0]["extensions"]["code"]
    assert code == "OUTSIDE_SESSION_NOT_FOUND"


@pytest.mark.parametrize("accept", [SSE, MULTIPART])
async def test_a_feed_that_ends_completes_the_stream(accept: str) -> None:
    world = make_world()
    async with open_stream(world.app, TRANSCRIPT, accept=accept) as stream:
        await stream.head()
        await stream.until(b"SNAPSHOT")
        world.transcripts.forget(session_id(1))
        rest = await stream.until(b"nothing more")
    assert stream.is_over
    assert b"event: complete" in rest or rest.endswith(b"\r\n-----\r\n")


async def test_an_idle_stream_beats_for_the_proxies_on_its_way() -> None:
    limits = Limits(ping_seconds=0.01)
    for accept, beat in ((SSE, b":\n\n"), (MULTIPART, b"\r\n\r\n{}")):
        world = make_world(limits=limits)
        async with open_stream(world.app, NAMES, accept=accept) as stream:
            await stream.head()
            await stream.until(b"SNAPSHOT")
            assert await stream.until(beat)
            assert await stream.until(beat)


async def let_go(world: World) -> None:
    async with asyncio.timeout(5):
        while world.transcripts.followers or len(world.app.connections):
            await asyncio.wait(asyncio.all_tasks(), timeout=0.01)


async def test_a_client_that_hangs_up_leaves_nothing_behind() -> None:
    """api.md, line 14."""
    world = make_world()
    async with open_stream(world.app, TRANSCRIPT, accept=SSE) as stream:
        await stream.head()
        await stream.until(b"SNAPSHOT")
        assert len(world.app.connections) == 1
    await let_go(world)


async def test_a_revoked_token_ends_its_streams_within_a_second() -> None:
    world = make_world()
    async with running(world.app):
        async with open_stream(world.app, NAMES, accept=SSE, token=VIEWER) as stream:
            await stream.head()
            await sse_event(stream)
            world.tokens.revoke(VIEWER)
            async with asyncio.timeout(1):
                name, payload = await sse_event(stream)
            assert name == "next"
            assert payload["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
            assert (await sse_event(stream))[0] == "complete"
        await let_go(world)


async def test_a_restart_ends_streams_without_complete() -> None:
    """Else the client would take the feed for finished and stay away."""
    world = make_world()
    async with open_stream(world.app, NAMES, accept=SSE) as stream:
        await stream.head()
        await sse_event(stream)
        await world.app.close_connections()
        assert await stream.until(b"complete") == b""
        assert stream.is_over


async def test_a_full_server_says_when_to_come_back() -> None:
    world = make_world(limits=Limits(connections=1))
    async with connect(world.app), world.client(ADMIN) as client:
        answer = await client.http.post(
            "/graphql", json={"query": NAMES}, headers={"accept": SSE}
        )
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "5"


async def test_a_stream_that_is_not_read_is_dropped() -> None:
    world = make_world(limits=Limits(send_seconds=0.02, close_seconds=0.01))
    stuck = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def blocking(message: Any) -> None:
            if message["type"] == "http.response.body":
                await stuck.wait()
            await send(message)

        await world.app(scope, receive, blocking)

    async with open_stream(app, TRANSCRIPT, accept=SSE) as stream:
        await stream.head()
        async with asyncio.timeout(5):
            await stream.task
    await let_go(world)
