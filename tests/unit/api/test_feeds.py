"""The feeds as an app meets them, over WebSocket (api.md, lines 1, 7, 12 and 13)."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api.limits import Limits
from sidestage.sessions.model import SessionState
from tests.fakes.parts import make_world
from tests.fakes.socket_client import connect, running
from tests.fakes.tokens import OPERATOR, READER, VIEWER
from tests.fakes.values import (
    START,
    a_project,
    a_session,
    a_terminal,
    an_entry,
    session_id,
)

FIELD = "outsideSessionFeed"
SESSIONS = """subscription($filter: OutsideSessionFilter, $after: FeedCursor) {
    outsideSessionFeed(filter: $filter, after: $after) {
        cursor kind removedIds more at upserts { id name } } }"""
TRANSCRIPT = """subscription($id: ID!, $after: FeedCursor) {
    transcriptFeed(sessionId: $id, after: $after) {
        cursor kind more upserts { __typename id order } } }"""
QUICK = Limits(heartbeat_seconds=0.02)


def ids(message: dict[str, Any]) -> list[int]:
    return [int(row["id"][8:], 16) for row in message["upserts"]]


async def test_a_feed_begins_with_a_snapshot_and_goes_on_with_changes() -> None:
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS)
        snapshot = await client.next_feed("1", FIELD)
        assert snapshot["kind"] == "SNAPSHOT"
        assert not snapshot["more"]
        assert ids(snapshot) == [1, 2, 3]
        world.sessions.feed.upsert(a_session(2, name="New"))
        world.sessions.feed.remove(session_id(1))
        delta = await client.next_feed("1", FIELD)
        assert delta["kind"] == "DELTA"
        assert delta["upserts"] == [{"id": session_id(2), "name": "New"}]
        assert delta["removedIds"] == [session_id(1)]


async def test_a_snapshot_comes_in_chunks_of_two_hundred_rows() -> None:
    world = make_world(sessions=tuple(a_session(n) for n in range(450)))
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS)
        chunks = [await client.next_feed("1", FIELD) for _ in range(3)]
    assert [len(chunk["upserts"]) for chunk in chunks] == [200, 200, 50]
    assert [chunk["more"] for chunk in chunks] == [True, True, False]
    assert sorted(n for chunk in chunks for n in ids(chunk)) == list(range(450))


async def test_an_app_that_comes_back_gets_only_what_it_missed() -> None:
    """api.md, line 1."""
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS)
        cursor = (await client.next_feed("1", FIELD))["cursor"]
    for name in ("a", "b", "c"):
        world.sessions.feed.upsert(a_session(2, name=name))
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS, after=cursor)
        delta = await client.next_feed("1", FIELD)
        assert delta["kind"] == "DELTA"
        assert delta["upserts"] == [{"id": session_id(2), "name": "c"}]
        world.sessions.feed.upsert(a_session(3, name="d"))
        delta = await client.next_feed("1", FIELD)
        assert delta["upserts"] == [{"id": session_id(3), "name": "d"}]


async def test_an_app_that_missed_nothing_is_told_so_at_once() -> None:
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS)
        cursor = (await client.next_feed("1", FIELD))["cursor"]
        client.subscribe("2", SESSIONS, after=cursor)
        message = (await client.next_payload("2"))["data"][FIELD]
    assert message["kind"] == "HEARTBEAT"
    assert message["upserts"] == []


async def test_an_app_that_was_away_for_too_long_starts_anew() -> None:
    """api.md, line 1: RESET, then SNAPSHOT."""
    world = make_world(ring_limit=5)
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS)
        cursor = (await client.next_feed("1", FIELD))["cursor"]
        for n in range(9):
            world.sessions.feed.upsert(a_session(2, name=str(n)))
        client.subscribe("2", SESSIONS, after=cursor)
        await expect_reset(client, "2")


async def expect_reset(client: Any, id_: str) -> None:
    kinds: list[str] = []
    while not kinds or kinds[-1] != "SNAPSHOT":
        message = await client.receive()
        if message["id"] == id_:
            kinds.append(message["payload"]["data"][FIELD]["kind"])
    assert kinds == ["RESET", "SNAPSHOT"]


async def test_a_cursor_of_another_server_run_starts_anew() -> None:
    async with connect(make_world().app) as client:
        client.subscribe("1", SESSIONS)
        cursor = (await client.next_feed("1", FIELD))["cursor"]
    async with connect(make_world().app) as client:
        client.subscribe("1", SESSIONS, after=cursor)
        await expect_reset(client, "1")


async def test_a_changed_filter_starts_anew() -> None:
    """api.md, line 7: no stale row when the filter changes in the middle of a feed."""
    async with connect(make_world().app) as client:
        client.subscribe("1", SESSIONS)
        cursor = (await client.next_feed("1", FIELD))["cursor"]
        client.subscribe("2", SESSIONS, after=cursor, filter={"states": ["IDLE"]})
        await expect_reset(client, "2")


async def test_other_selected_fields_start_anew() -> None:
    """A cursor that went on would leave the new field empty in unchanged rows."""
    async with connect(make_world().app) as client:
        client.subscribe("1", SESSIONS)
        cursor = (await client.next_feed("1", FIELD))["cursor"]
        client.subscribe("2", SESSIONS.replace("name", "model"), after=cursor)
        await expect_reset(client, "2")


async def test_a_snapshot_cut_between_chunks_starts_anew() -> None:
    """api.md, line 7."""
    world = make_world(sessions=tuple(a_session(n) for n in range(250)))
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS)
        cursor = (await client.next_feed("1", FIELD))["cursor"]
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS, after=cursor)
        assert (await client.next_feed("1", FIELD))["kind"] == "RESET"
        assert len((await client.next_feed("1", FIELD))["upserts"]) == 200
        assert len((await client.next_feed("1", FIELD))["upserts"]) == 50


@pytest.mark.parametrize("cursor", ["made up", "x" * 2000, 5, {"a": 1}])
async def test_a_cursor_that_was_never_ours_is_bad_input(cursor: Any) -> None:
    async with connect(make_world().app) as client:
        client.subscribe("1", SESSIONS, after=cursor)
        error = await client.receive()
    assert error["type"] == "error"
    assert error["payload"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_a_cursor_written_into_the_document_works_too() -> None:
    world = make_world()
    async with connect(world.app) as client:
        query = "subscription { outsideSessionFeed { cursor kind upserts { id } } }"
        client.subscribe("1", query)
        cursor = (await client.next_feed("1", FIELD))["cursor"]
        world.sessions.feed.upsert(a_session(1, name="x"))
        await client.next_feed("1", FIELD)
        with_cursor = query.replace("Feed {", f'Feed(after: "{cursor}") {{', 1)
        client.subscribe(
            "2",
            f"subscription {{ ...F }} fragment F on Subscription {with_cursor[13:]}",
        )
        assert (await client.next_feed("2", FIELD))["kind"] == "DELTA"


async def test_a_required_cursor_works_for_many_members() -> None:
    query = SESSIONS.replace("$after: FeedCursor)", "$after: FeedCursor!)")
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("0", SESSIONS)
        cursor = (await client.next_feed("0", FIELD))["cursor"]
        for id_ in ("1", "2"):
            client.subscribe(id_, query, after=cursor)
            assert (await client.next_payload(id_))["data"][FIELD][
                "kind"
            ] == "HEARTBEAT"


async def test_an_idle_feed_is_heard_of_with_a_cursor_to_keep() -> None:
    """api.md, line 13: a heartbeat carries a cursor."""
    world = make_world(limits=QUICK)
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS)
        await client.next_feed("1", FIELD)
        beat = (await client.next_payload("1"))["data"][FIELD]
        assert beat["kind"] == "HEARTBEAT"
        client.subscribe("2", SESSIONS, after=beat["cursor"])
        while (message := await client.receive())["id"] != "2":
            pass
        assert message["payload"]["data"][FIELD]["kind"] == "HEARTBEAT"


async def test_rows_leave_a_time_window_by_themselves() -> None:
    now = START + timedelta(hours=1)
    world = make_world(
        sessions=(a_session(1, last_activity_at=now - timedelta(seconds=10.98)),),
        clock=lambda: now,
    )
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS, filter={"activeWithinSeconds": 11})
        assert ids(await client.next_feed("1", FIELD)) == [1]
        now += timedelta(seconds=1)
        # The feed's timer was set by the clock of before: 20 ms at most.
        assert (await client.next_feed("1", FIELD))["removedIds"] == [session_id(1)]


async def test_a_project_that_changes_is_told_with_its_sessions() -> None:
    query = """subscription { outsideSessionFeed { kind upserts { id
        project { name } } } }"""
    world = make_world(sessions=(a_session(1), a_session(2, project_id=None)))
    async with connect(world.app) as client:
        client.subscribe("1", query)
        await client.next_feed("1", FIELD)
        world.projects.feed.upsert(a_project(1, name="Renamed"))
        delta = await client.next_feed("1", FIELD)
    assert delta["upserts"] == [{"id": session_id(1), "project": {"name": "Renamed"}}]


async def test_a_terminal_that_changes_is_told_with_its_session() -> None:
    query = "subscription { outsideSessionFeed { upserts { id terminal { name } } } }"
    world = make_world(sessions=(a_session(1, terminal_id="terminal:1"),))
    async with connect(world.app) as client:
        client.subscribe("1", query)
        await client.next_feed("1", FIELD)
        world.terminals.feed.upsert(a_terminal(1, name="Renamed"))
        delta = await client.next_feed("1", FIELD)
    assert delta["upserts"][0]["terminal"] == {"name": "Renamed"}


async def test_a_session_stops_being_resumable_with_its_project() -> None:
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", SESSIONS, filter={"resumable": True})
        assert ids(await client.next_feed("1", FIELD)) == [3]
        world.projects.feed.remove("project:1")
        assert (await client.next_feed("1", FIELD))["removedIds"] == [session_id(3)]


async def test_a_text_filter_of_a_feed_is_no_oracle_either() -> None:
    async with connect(make_world().app, VIEWER) as client:
        client.subscribe("1", SESSIONS, filter={"text": "a"})
        error = await client.receive()
    assert error["payload"][0]["extensions"]["code"] == "PERMISSION_DENIED"


@pytest.mark.parametrize(
    "selection",
    [
        "transcript { totalCount }",
        "continuations { nodes { id } }",
        "terminal { screen }",
        "terminal { styledScreen { runs { text } } }",
        'terminal { search(text: "a") { more } }',
    ],
)
async def test_lists_and_screens_cannot_be_selected_under_a_feed(
    selection: str,
) -> None:
    query = f"subscription {{ outsideSessionFeed {{ upserts {{ {selection} }} }} }}"
    async with connect(make_world().app) as client:
        client.subscribe("1", query)
        error = await client.receive()
    extensions = error["payload"][0]["extensions"]
    assert extensions["code"] == "GRAPHQL_VALIDATION_FAILED"


async def test_terminals_are_told_live() -> None:
    query = "subscription { terminalFeed { kind removedIds upserts { id state } } }"
    world = make_world()
    async with connect(world.app, OPERATOR) as client:
        client.subscribe("1", query)
        snapshot = await client.next_feed("1", "terminalFeed")
        assert snapshot["upserts"] == [{"id": "terminal:1", "state": "RUNNING"}]
        world.terminals.feed.remove("terminal:1")
        delta = await client.next_feed("1", "terminalFeed")
        assert delta["removedIds"] == ["terminal:1"]


def orders(message: dict[str, Any]) -> list[int]:
    return [int(entry["order"]) for entry in message["upserts"]]


async def test_a_transcript_begins_with_its_last_fifty_entries() -> None:
    world = make_world()
    world.transcripts.entries[session_id(1)] = [an_entry(n) for n in range(120)]
    async with connect(world.app, READER) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(1))
        snapshot = await client.next_feed("1", "transcriptFeed")
        assert orders(snapshot) == list(range(70, 120))
        world.transcripts.put(session_id(1), an_entry(120), an_entry(121))
        delta = await client.next_feed("1", "transcriptFeed")
        assert (delta["kind"], orders(delta)) == ("DELTA", [120, 121])


async def test_a_reader_that_comes_back_gets_the_entries_it_missed() -> None:
    """Also when nobody followed meanwhile, so that the view was closed."""
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(1))
        cursor = (await client.next_feed("1", "transcriptFeed"))["cursor"]
    world.transcripts.put(session_id(1), *(an_entry(n) for n in range(3, 140)))
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(1), after=cursor)
        delta = await client.next_feed("1", "transcriptFeed")
    assert delta["kind"] == "DELTA"
    assert orders(delta) == list(range(3, 140))


@pytest.mark.parametrize("missed", [600, 0])
async def test_a_reader_that_missed_too_much_or_another_branch_starts_anew(
    missed: int,
) -> None:
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(1))
        cursor = (await client.next_feed("1", "transcriptFeed"))["cursor"]
    if missed:
        new = [an_entry(n) for n in range(3, 3 + missed)]
        world.transcripts.put(session_id(1), *new)
    else:
        world.transcripts.switch(session_id(1), an_entry(7))
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(1), after=cursor)
        assert (await client.next_feed("1", "transcriptFeed"))["kind"] == "RESET"
        assert (await client.next_feed("1", "transcriptFeed"))["kind"] == "SNAPSHOT"


async def test_a_branch_switch_is_a_reset() -> None:
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(1))
        await client.next_feed("1", "transcriptFeed")
        world.transcripts.switch(session_id(1), an_entry(0), an_entry(9))
        assert (await client.next_feed("1", "transcriptFeed"))["kind"] == "RESET"
        snapshot = await client.next_feed("1", "transcriptFeed")
        assert (snapshot["kind"], orders(snapshot)) == ("SNAPSHOT", [0, 9])


async def test_a_transcript_that_ends_completes_the_subscription() -> None:
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(1))
        await client.next_feed("1", "transcriptFeed")
        world.transcripts.forget(session_id(1))
        assert await client.receive() == {"id": "1", "type": "complete"}


@pytest.mark.parametrize(
    ("id_", "code"),
    [
        (session_id(99), "OUTSIDE_SESSION_NOT_FOUND"),
        ("terminal:1", "BAD_USER_INPUT"),
        ("", "BAD_USER_INPUT"),
    ],
)
async def test_a_transcript_that_is_not_there_is_a_typed_error(
    id_: str, code: str
) -> None:
    async with connect(make_world().app) as client:
        client.subscribe("1", TRANSCRIPT, id=id_)
        error = await client.receive()
    assert error["type"] == "error"
    assert error["payload"][0]["extensions"]["code"] == code


async def test_a_transcript_needs_the_scope_read() -> None:
    async with connect(make_world().app, VIEWER) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(1))
        error = await client.receive()
    assert error["payload"][0]["extensions"]["code"] == "PERMISSION_DENIED"


async def test_a_session_that_ends_is_told_to_who_looks_for_the_living() -> None:
    world = make_world()
    async with running(world.app), connect(world.app) as client:
        client.subscribe("1", SESSIONS, filter={"states": ["IDLE"]})
        assert ids(await client.next_feed("1", FIELD)) == [1, 2]
        row = world.sessions.feed.get(session_id(1))
        assert row is not None
        world.sessions.feed.upsert(replace(row, state=SessionState.ENDED))
        assert (await client.next_feed("1", FIELD))["removedIds"] == [session_id(1)]


async def test_a_feed_whose_changes_all_fail_the_filter_is_heard_of_too() -> None:
    """Heartbeats once waited for the whole list to be quiet."""
    world = make_world(limits=Limits(heartbeat_seconds=0.05, coalesce_seconds=0))
    async with connect(world.app) as client, connect(world.app) as other:
        client.subscribe("1", SESSIONS, filter={"states": ["ENDED"]})
        await client.next_feed("1", FIELD)
        beat = asyncio.ensure_future(client.next_payload("1"))
        async with asyncio.timeout(5):
            while not beat.done():
                world.sessions.feed.upsert(a_session(1, name=str(id(object()))))
                world.sessions.feed.upsert(a_session(1, name="steady"))
                other.send({"type": "ping"})
                await other.receive()
        assert (await beat)["data"][FIELD]["kind"] == "HEARTBEAT"
