import re
from dataclasses import replace
from typing import Final

import pytest

from resolvers.parts import Health
from sidestage.sessions.model import SessionState
from tests.fakes.parts import World, make_world
from tests.fakes.socket_client import connect, running
from tests.fakes.tokens import ADMIN, OPERATOR, READER, VIEWER
from tests.fakes.values import SECRET_CONVERSATION, a_session

FEED: Final = """subscription($after: FeedCursor) {
  outsideSessionFeed(after: $after) { cursor kind upserts { id state } } }"""
LINE: Final = re.compile(
    r"# (HELP|TYPE) sidestage_[a-z0-9_]+ .+"
    r'|sidestage_[a-z0-9_]+(\{[a-z]+="[\w.+-]*"\})? -?[0-9.e+]+'
)


async def read(world: World, token: str | None = VIEWER) -> str:
    async with world.client(token) as client:
        answer = await client.http.get("/metrics")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        return answer.text


def value(text: str, name: str) -> float:
    [found] = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(found.rpartition(" ")[2])


@pytest.mark.parametrize(("token", "status"), [(None, 403), ("wrong", 401)])
async def test_metrics_need_a_token(token: str | None, status: int) -> None:
    """To a reverse proxy on the same machine, everybody comes from loopback."""
    async with make_world().client(token) as client:
        answer = await client.http.get("/metrics")
    assert answer.status_code == status
    assert "sidestage_" not in answer.text


@pytest.mark.parametrize("token", [VIEWER, READER, OPERATOR, ADMIN])
async def test_a_token_that_may_view_reads_metrics(token: str) -> None:
    assert "sidestage_sessions" in await read(make_world(), token)


async def test_sessions_and_terminals_are_counted_by_state() -> None:
    text = await read(make_world())
    assert value(text, 'sidestage_sessions{state="IDLE"}') == 2
    assert value(text, 'sidestage_sessions{state="ENDED"}') == 1
    assert value(text, 'sidestage_sessions{state="ASKING"}') == 0
    assert value(text, 'sidestage_terminals{state="RUNNING"}') == 1


async def test_every_line_is_as_prometheus_reads_it() -> None:
    text = await read(make_world())
    assert text.endswith("\n")
    for line in text.splitlines():
        assert LINE.fullmatch(line), line
    kinds = re.findall(r"# TYPE (\S+) ", text)
    assert len(kinds) == len(set(kinds))


async def test_what_the_parts_count_is_shown_and_hooks_have_their_latency() -> None:
    counters = {
        "unknown_records": 7,
        "hook_events_taken": 4,
        "hook_handling_us": 2_500_000,
        "no name for a metric": 1,
    }
    world = make_world(health=lambda: Health(ok=False, counters=counters, ready=False))
    text = await read(world)
    assert value(text, "sidestage_unknown_records") == 7
    assert value(text, "sidestage_hook_handling_seconds_sum") == 2.5
    assert value(text, "sidestage_hook_handling_seconds_count") == 4
    assert value(text, "sidestage_ready") == 0
    assert value(text, "sidestage_healthy") == 0
    assert "no name" not in text


async def test_feeds_and_their_subscribers_are_counted() -> None:
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", FEED)
        await client.next_feed("1", "outsideSessionFeed")
        world.sessions.feed.upsert(a_session(1, state=SessionState.RUNNING))
        await client.next_feed("1", "outsideSessionFeed")
        text = await read(world)
    assert value(text, "sidestage_connections") == 1
    assert value(text, "sidestage_feed_groups") == 1
    assert value(text, "sidestage_feed_members") == 1
    assert value(text, "sidestage_feed_messages_total") == 1
    assert value(text, "sidestage_feed_resets_total") == 0


async def test_a_connection_that_the_server_ended_is_counted() -> None:
    world = make_world()
    async with running(world.app), connect(world.app) as client:
        world.tokens.revoke(ADMIN)
        assert await client.closed() == 4401
        text = await read(world, VIEWER)
    assert value(text, 'sidestage_connections_dropped_total{reason="revoked"}') == 1


async def test_metrics_hold_no_words_ids_or_paths_of_anybody() -> None:
    canary = "Canary in a name"
    row = replace(a_session(1, name=canary), directory="/home/canary/project")
    text = await read(make_world(sessions=(row,)), ADMIN)
    for secret in (canary, "canary", "/home", row.id, SECRET_CONVERSATION, ADMIN):
        assert secret not in text
