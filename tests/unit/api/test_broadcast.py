"""One execution for all who ask the same: sharing, lagging, and letting go."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from api import group as module
from api import operations
from api.group import Entry, Group, Rider
from api.limits import Limits
from api.operations import Operations, Request
from api.rates import RateLimiter
from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from sidestage.ids import DeviceId
from tests.fakes import socket_client
from tests.fakes.parts import World, make_world
from tests.fakes.socket_client import SocketClient, connect, running
from tests.fakes.tokens import OPERATOR, VIEWER
from tests.fakes.values import a_session, an_entry, session_id
from tests.unit.api.test_feeds import FIELD, SESSIONS, TRANSCRIPT, expect_reset

OWNER = Principal(PrincipalKind.ADMIN, ADMIN_SCOPES, "admin", token_id="t")
NAMES = "subscription { outsideSessionFeed { kind upserts { id name } } }"


@pytest.fixture(params=[False, True], ids=["sent", "framed"], autouse=True)
def frames(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run each test on servers that do not offer to write frames, and that do."""
    monkeypatch.setattr(socket_client, "offers_frames", request.param)
    return bool(request.param)


@pytest.fixture
def executions(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows by one with each executed message."""
    seen: list[object] = []
    run = operations.run_event

    async def counted(executor: Any, message: Any) -> dict[str, Any]:
        seen.append(message)
        return await run(executor, message)

    monkeypatch.setattr(module, "run_event", counted)
    return seen


async def subscribed(client: SocketClient, query: str = NAMES) -> None:
    client.subscribe("1", query)
    assert (await client.next_feed("1", FIELD))["kind"] == "SNAPSHOT"


async def test_equal_subscriptions_are_executed_once(executions: list[object]) -> None:
    world = make_world()
    async with (
        connect(world.app) as a,
        connect(world.app) as b,
        connect(world.app) as c,
    ):
        for client in (a, b, c):
            await subscribed(client)
        assert len(executions) == 2  # the RESET and the SNAPSHOT that all three share
        world.sessions.feed.upsert(a_session(2, name="New"))
        deltas = [await client.next_feed("1", FIELD) for client in (a, b, c)]
    assert deltas[0] == deltas[1] == deltas[2]
    assert len(executions) == 3


async def test_who_differs_in_scope_filter_or_document_is_executed_apart(
    executions: list[object],
) -> None:
    world = make_world()
    async with connect(world.app, VIEWER) as a, connect(world.app, OPERATOR) as b:
        await subscribed(a)
        await subscribed(b)
        b.subscribe("2", SESSIONS, filter={"states": ["IDLE"]})
        await b.next_feed("2", FIELD)
    assert len(executions) == 6


async def test_the_order_of_variables_and_unknown_ones_make_no_difference(
    executions: list[object],
) -> None:
    async with connect(make_world().app) as client:
        for id_, more in (("1", {}), ("2", {"unknown": id(client)})):
            client.subscribe(id_, SESSIONS, filter={}, **more)
            await client.next_feed(id_, FIELD)
    assert len(executions) == 2


async def test_a_burst_is_told_as_one_message(executions: list[object]) -> None:
    world = make_world()
    async with connect(world.app) as client:
        await subscribed(client)
        for n in range(50):
            world.sessions.feed.upsert(a_session(2, name=str(n)))
        delta = await client.next_feed("1", FIELD)
        assert delta["upserts"] == [{"id": session_id(2), "name": "49"}]
    assert len(executions) == 3


async def test_a_slow_member_gets_the_changes_merged_and_slows_nobody() -> None:
    """api.md, line 13: nothing of one client's trouble reaches another."""
    limits = Limits(history_entries=4, coalesce_seconds=0)
    world = make_world(limits=limits)
    async with connect(world.app) as slow, connect(world.app) as quick:
        await subscribed(slow)
        await subscribed(quick)
        slow.reads.clear()
        for n in range(30):
            world.sessions.feed.upsert(a_session(2, name=str(n)))
            delta = await quick.next_feed("1", FIELD)
            assert delta["upserts"][0]["name"] == str(n)
        slow.reads.set()
        names: list[str] = []
        while not names or names[-1] != "29":
            delta = await slow.next_feed("1", FIELD)
            assert delta["kind"] == "DELTA"
            names.append(delta["upserts"][0]["name"])
        assert len(names) < 10


async def test_a_member_that_fell_behind_the_ring_starts_anew() -> None:
    limits = Limits(history_entries=2, coalesce_seconds=0)
    world = make_world(limits=limits, ring_limit=3)
    async with connect(world.app) as slow, connect(world.app) as quick:
        await subscribed(slow)
        await subscribed(quick)
        slow.reads.clear()
        for n in range(20):
            world.sessions.feed.upsert(a_session(2, name=str(n)))
            await quick.next_feed("1", FIELD)
        slow.reads.set()
        kinds: list[str] = []
        while "RESET" not in kinds:
            kinds.append((await slow.next_feed("1", FIELD))["kind"])
        snapshot = await slow.next_feed("1", FIELD)
        assert snapshot["kind"] == "SNAPSHOT"
        assert {row["name"] for row in snapshot["upserts"]} >= {"19"}


async def test_a_group_that_fell_behind_the_ring_starts_everyone_anew() -> None:
    world = make_world(ring_limit=3)
    async with connect(world.app) as a, connect(world.app) as b:
        await subscribed(a)
        await subscribed(b)
        for n in range(10):
            world.sessions.feed.upsert(a_session(2, name=str(n)))
        await expect_reset(a, "1")
        await expect_reset(b, "1")


async def test_a_late_member_misses_nothing_while_changes_go_on() -> None:
    world = make_world(limits=Limits(coalesce_seconds=0, history_entries=8))
    async with connect(world.app) as early:
        await subscribed(early)
        for n in range(40):
            world.sessions.feed.upsert(a_session(2, name=str(n)))
            async with connect(world.app) as late:
                late.subscribe("1", NAMES)
                held: dict[str, str] = {}
                while held.get(session_id(2)) != str(n):
                    message = await late.next_feed("1", FIELD)
                    held |= {row["id"]: row["name"] for row in message["upserts"]}


async def test_a_stale_snapshot_whose_continuation_is_gone_is_not_given() -> None:
    world = make_world(limits=Limits(coalesce_seconds=0, history_entries=1))
    async with connect(world.app) as early:
        await subscribed(early)
        for n in range(5):
            world.sessions.feed.upsert(a_session(2, name=str(n)))
            await early.next_feed("1", FIELD)
        async with connect(world.app) as late:
            late.subscribe("1", NAMES)
            snapshot = await late.next_feed("1", FIELD)
    assert {"id": session_id(2), "name": "4"} in snapshot["upserts"]


async def let_go(world: World) -> None:
    """Wait until no conversation is followed any more."""
    async with asyncio.timeout(5):
        await world.transcripts.let_go.wait()


async def test_a_transcript_is_read_once_for_all_and_let_go_with_the_last() -> None:
    """api.md, line 14: after any kind of close nothing of a connection remains."""
    world = make_world()
    async with connect(world.app) as a:
        a.subscribe("1", TRANSCRIPT, id=session_id(1))
        await a.next_feed("1", "transcriptFeed")
        async with connect(world.app) as b:
            b.subscribe("1", TRANSCRIPT, id=session_id(1))
            await b.next_feed("1", "transcriptFeed")
            assert world.transcripts.followers == 1
        assert world.transcripts.followers == 1
        a.send({"id": "1", "type": "complete"})
        await let_go(world)
    assert world.transcripts.follows == 1


async def test_a_subscription_that_fails_later_tells_its_members() -> None:
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(1))
        await client.next_feed("1", "transcriptFeed")
        for queue in world.transcripts._queues[session_id(1)]:
            queue.put_nowait("not an update")  # type: ignore[arg-type]  # a bug
        error = (await client.next_payload("1"))["errors"][0]
        assert error["extensions"]["code"] == "INTERNAL"
        assert (await client.receive())["type"] == "complete"
        # The group is over; who asks again gets a new one.
        client.subscribe("2", TRANSCRIPT, id=session_id(1))
        assert (await client.next_feed("2", "transcriptFeed"))["kind"] == "SNAPSHOT"


async def test_a_subscription_that_does_not_open_can_be_tried_again() -> None:
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(9))
        assert (await client.receive())["type"] == "error"
        world.transcripts.put(session_id(9), an_entry(9))
        client.subscribe("1", TRANSCRIPT, id=session_id(9))
        assert (await client.next_feed("1", "transcriptFeed"))["kind"] == "SNAPSHOT"


async def test_too_many_different_subscriptions_are_told_when_to_come_back() -> None:
    async with connect(make_world(limits=Limits(groups=1)).app) as client:
        await subscribed(client)
        client.subscribe("2", SESSIONS)
        error = (await client.receive())["payload"][0]
    assert error["extensions"]["code"] == "RATE_LIMITED"
    assert error["extensions"]["retryAfterMs"] > 0


async def test_two_devices_never_share_what_depends_on_the_device(
    monkeypatch: pytest.MonkeyPatch, executions: list[object]
) -> None:
    """Else the second device gets the first one's envelope."""
    monkeypatch.setattr(
        "api.documents.DEVICE_DEPENDENT_FIELDS", {"OutsideSession.name"}
    )
    world = make_world()
    first = world.tokens.principals[VIEWER]
    second = replace(first, device_id=DeviceId("device:2"), token_id="token:2")
    world.tokens.principals["second"] = second
    async with connect(world.app, VIEWER) as a, connect(world.app, "second") as b:
        await subscribed(a)
        await subscribed(b)
    assert len(executions) == 4


async def test_the_application_ends_every_group_when_it_stops() -> None:
    world = make_world()
    async with running(world.app):
        client = connect(world.app)
        socket = await client.__aenter__()
        socket.subscribe("1", TRANSCRIPT, id=session_id(1))
        await socket.next_feed("1", "transcriptFeed")
    assert world.transcripts.followers == 0
    assert await socket.closed() == 1012
    await client.__aexit__(None, None, None)


async def test_changes_that_come_close_together_are_one_message() -> None:
    world = make_world(limits=Limits(coalesce_seconds=0.1))
    async with connect(world.app) as client, connect(world.app) as other:
        await subscribed(client)
        for n in range(5):
            world.sessions.feed.upsert(a_session(2, name=str(n)))
            other.send({"type": "ping"})
            await other.receive()  # so the loop turns between the changes
        delta = await client.next_feed("1", FIELD)
    assert delta["upserts"] == [{"id": session_id(2), "name": "4"}]


async def test_who_leaves_before_it_is_open_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A subscription completed at once left its group running without a member."""
    world = make_world()
    opening, release = asyncio.Event(), asyncio.Event()
    opened = world.app.broadcast._open

    async def slowly(admitted: Any) -> Any:
        opening.set()
        await release.wait()
        return await opened(admitted)

    monkeypatch.setattr(world.app.broadcast, "_open", slowly)
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT, id=session_id(1))
        await opening.wait()
        client.send({"id": "1", "type": "complete"})
        client.send({"type": "ping"})
        await client.receive()
        release.set()
        await let_go(world)
        assert len(world.app.broadcast) == 0
        client.subscribe("2", TRANSCRIPT, id=session_id(1))
        assert (await client.next_feed("2", "transcriptFeed"))["kind"] == "SNAPSHOT"


async def test_who_is_up_to_date_is_written_to_without_waking_its_task(
    frames: bool,
) -> None:
    world = make_world()
    async with connect(world.app) as client:
        await subscribed(client)
        before = client.framed
        for number in range(3):
            world.sessions.feed.upsert(a_session(1, name=f"Name {number}"))
            await client.next_feed("1", FIELD)
        assert client.framed - before == (3 if frames else 0)


async def test_who_stops_reading_and_reads_again_rides_along_again(
    frames: bool,
) -> None:
    world = make_world()
    async with connect(world.app) as client:
        await subscribed(client)
        client.reads.clear()
        world.sessions.feed.upsert(a_session(1, name="While it did not read"))
        async with connect(world.app) as other:
            await subscribed(other)
            client.reads.set()
            first = await client.next_feed("1", FIELD)
            world.sessions.feed.upsert(a_session(2, name="Later"))
            second = await client.next_feed("1", FIELD)
        names = [row["name"] for row in first["upserts"] + second["upserts"]]
        assert names == ["While it did not read", "Later"]
        before = client.framed
        world.sessions.feed.upsert(a_session(3, name="Last"))
        await client.next_feed("1", FIELD)
        assert client.framed - before == (1 if frames else 0)


async def test_who_refused_a_message_gets_no_later_one_before_it() -> None:
    """A buffer that drained between two messages took the second without the first."""
    world = make_world()
    rates = RateLimiter(1e9, 1e9, lambda: 0.0)
    door = Operations(world.parts, Limits(), rates=rates, anonymous_rates=rates)
    admitted = door.admit(Request(NAMES), OWNER)
    executor, stream = await door.begin(admitted, OWNER)
    group = Group(executor, stream, Limits(), Counter())
    written: list[bytes] = []
    takes = False

    def write(payload: bytes) -> bool:
        if takes:
            written.append(payload)
        return takes

    rider = Rider(write, stream.view.position(), group.next_index)
    carried = asyncio.create_task(group.carry(rider))
    async with asyncio.timeout(5):
        while rider not in group._riders:
            await asyncio.to_thread(lambda: None)
    for number in range(2):
        group._append(Entry(b"%d" % number, rider.position, is_heartbeat=True))
        takes = True
    await carried
    assert written == []
    assert rider.index == group.next_index - 2
    await group.close()
