"""The subprotocol `graphql-transport-ws`, message by message (api.md 2, 11, 13, 14)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from api.guard import LOCAL_PRINCIPAL
from api.limits import Limits
from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from tests.fakes.fast_clock import run_fast
from tests.fakes.parts import make_world
from tests.fakes.socket_client import SocketClient, connect, open_socket, running
from tests.fakes.tokens import ADMIN, READER, VIEWER
from tests.fakes.values import session_id

VERSION = "{ server { version } }"
NAMES = "subscription { outsideSessionFeed { kind upserts { id name } } }"
TRANSCRIPT = f"""subscription {{ transcriptFeed(sessionId: "{session_id(1)}") {{
    kind upserts {{ id }} }} }}"""


async def accepted(client: SocketClient) -> str | None:
    event = await client.next_event()
    assert event["type"] == "websocket.accept"
    subprotocol: str | None = event.get("subprotocol")
    return subprotocol


async def test_queries_and_mutations_run_on_the_socket_too() -> None:
    async with connect(make_world().app) as client:
        client.subscribe("q", VERSION)
        assert await client.next_payload("q") == {
            "data": {"server": {"version": "0.1.0"}}
        }
        assert await client.receive() == {"id": "q", "type": "complete"}
        client.subscribe(
            "q", 'mutation { closeTerminal(input: {terminalId: "x"}) { __typename } }'
        )
        payload = await client.next_payload("q")
        assert payload["data"]["closeTerminal"]["__typename"] == "TerminalNotFound"


@pytest.mark.parametrize(
    "offered", [(), ("graphql-ws",), ("graphql-ws", "sidestage.terminal.v1")]
)
async def test_another_subprotocol_is_not_acceptable(offered: tuple[str, ...]) -> None:
    """The legacy protocol `graphql-ws` had an authentication hole elsewhere."""
    async with open_socket(make_world().app, subprotocols=offered) as client:
        assert await accepted(client) is None
        assert await client.closed() == 4406


async def test_our_subprotocol_is_chosen_among_others() -> None:
    offered = ("graphql-ws", "graphql-transport-ws")
    async with open_socket(make_world().app, subprotocols=offered) as client:
        assert await accepted(client) == "graphql-transport-ws"


@pytest.mark.parametrize("token", ["wrong", "", None, 5, "x" * 300, "ä"])
async def test_a_token_that_is_not_good_closes_4401(token: object) -> None:
    """api.md, line 2: never 4403, which clients retry."""
    async with open_socket(make_world().app) as client:
        await accepted(client)
        client.send({"type": "connection_init", "payload": {"token": token}})
        assert await client.closed() == 4401


@pytest.mark.parametrize("payload", [None, [], "x", {}])
async def test_an_init_without_a_token_closes_4401(payload: object) -> None:
    async with open_socket(make_world().app) as client:
        await accepted(client)
        client.send({"type": "connection_init", "payload": payload})
        assert await client.closed() == 4401


async def test_an_operation_before_the_token_closes_4401() -> None:
    async with open_socket(make_world().app) as client:
        await accepted(client)
        client.subscribe("1", VERSION)
        assert await client.closed() == 4401


async def test_too_many_wrong_tokens_close_1013() -> None:
    world = make_world()
    world.tokens.is_flooded = True
    async with open_socket(world.app) as client:
        await accepted(client)
        client.send({"type": "connection_init", "payload": {"token": "wrong"}})
        assert await client.closed() == 1013


async def test_no_init_in_time_closes_4408() -> None:
    async with open_socket(make_world(limits=Limits(init_seconds=0.01)).app) as client:
        await accepted(client)
        assert await client.closed() == 4408


async def test_a_second_init_closes_4429() -> None:
    async with connect(make_world().app) as client:
        client.send({"type": "connection_init", "payload": {"token": ADMIN}})
        assert await client.closed() == 4429


async def test_an_id_in_use_closes_4409() -> None:
    async with connect(make_world().app) as client:
        client.subscribe("1", NAMES)
        await client.next_payload("1")
        client.subscribe("1", NAMES)
        assert await client.closed() == 4409


@pytest.mark.parametrize(
    "message",
    [
        "not JSON",
        "[]",
        "5",
        '"\\ud800"',
        '{"type": "unknown"}',
        "{}",
        {"type": "subscribe", "payload": {"query": VERSION}},
        {"type": "subscribe", "id": "", "payload": {"query": VERSION}},
        {"type": "subscribe", "id": 5, "payload": {"query": VERSION}},
        {"type": "subscribe", "id": "x" * 200, "payload": {"query": VERSION}},
        {"type": "subscribe", "id": "1"},
        {"type": "subscribe", "id": "1", "payload": []},
        {"type": "subscribe", "id": "1", "payload": {"query": ""}},
        {"type": "subscribe", "id": "1", "payload": {"query": 5}},
        {"type": "subscribe", "id": "1", "payload": {"query": "x", "variables": []}},
    ],
)
async def test_a_message_that_is_none_closes_4400(message: object) -> None:
    async with connect(make_world().app) as client:
        client.send(message)
        assert await client.closed() == 4400


async def test_a_binary_frame_closes_4400() -> None:
    async with connect(make_world().app) as client:
        client.send_bytes(b"{}")
        assert await client.closed() == 4400


async def test_a_message_beyond_the_limit_closes_1009() -> None:
    """api.md, line 10: strings of 1 MiB."""
    async with connect(make_world().app) as client:
        client.subscribe("1", VERSION + " #" + "x" * 1024 * 1024)
        assert await client.closed() == 1009


async def test_a_ping_is_answered_and_a_pong_is_not() -> None:
    async with connect(make_world().app) as client:
        client.send({"type": "pong"})
        client.send({"type": "ping", "payload": {"a": 1}})
        assert await client.receive() == {"type": "pong"}


async def test_an_old_client_is_told_so() -> None:
    """api.md, line 4."""
    async with open_socket(make_world().app) as client:
        await accepted(client)
        payload = {"token": ADMIN, "client": "app/0.0.9"}
        client.send({"type": "connection_init", "payload": payload})
        event = await client.next_event()
        assert (event["code"], event["reason"]) == (4400, "CLIENT_TOO_OLD")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{", "GRAPHQL_PARSE_FAILED"),
        ("{ nothing }", "GRAPHQL_VALIDATION_FAILED"),
        ("query A { __typename } query B { __typename }", "BAD_USER_INPUT"),
        ("{ auditLog { nodes { id } } }", "PERMISSION_DENIED"),
        (
            "query($n: Int!) { outsideSessions(first: $n) { nodes { id } } }",
            "BAD_USER_INPUT",
        ),
    ],
)
async def test_an_operation_that_does_not_run_gives_an_error_and_the_socket_stays(
    query: str, code: str
) -> None:
    """With strawberry's own handler a syntax error closed the socket with 4400."""
    async with connect(make_world().app, READER) as client:
        client.subscribe("1", query)
        error = await client.receive()
        assert (error["type"], error["id"]) == ("error", "1")
        assert error["payload"][0]["extensions"]["code"] == code
        client.subscribe("1", VERSION)
        await client.next_payload("1")


async def test_errors_of_fields_come_with_the_data() -> None:
    async with connect(make_world().app) as client:
        client.subscribe("1", "{ terminals { nodes { id screen(lines: 0) } } }")
        payload = await client.next_payload("1")
    assert payload["data"]["terminals"]["nodes"] == [
        {"id": "terminal:1", "screen": None}
    ]
    assert payload["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_the_twenty_first_subscription_is_refused_alone() -> None:
    """api.md, line 11."""
    async with connect(make_world().app) as client:
        for n in range(20):
            client.subscribe(str(n), NAMES)
            await client.next_payload(str(n))
        client.subscribe("20", NAMES)
        error = await client.receive()
        assert error["id"] == "20"
        assert error["payload"][0]["extensions"]["code"] == "SUBSCRIPTION_LIMIT_REACHED"
        client.send({"id": "0", "type": "complete"})
        client.subscribe("q", VERSION)
        await client.next_payload("q")
        await client.receive()
        client.subscribe("20", NAMES)
        await client.next_payload("20")


async def test_ten_thousand_short_operations_on_one_socket_work() -> None:
    """api.md, line 14; half of them sent without waiting for an answer."""
    async with connect(make_world().app) as client:
        for start in range(0, 5000, 500):
            for n in range(start, start + 500):
                client.subscribe(str(n), "{ __typename }")
            kinds = [(await client.receive())["type"] for _ in range(1000)]
            assert kinds.count("next") == kinds.count("complete") == 500
        for _ in range(5000):
            client.subscribe("same", "{ __typename }")
            assert (await client.receive())["type"] == "next"
            assert (await client.receive())["type"] == "complete"


async def test_a_completed_subscription_sends_nothing_more() -> None:
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", NAMES)
        await client.next_payload("1")
        client.send({"id": "1", "type": "complete"})
        client.send({"id": "unknown", "type": "complete"})
        client.send({"id": 5, "type": "complete"})
        client.subscribe("q", VERSION)
        await client.next_payload("q")
        await client.receive()
        world.sessions.feed.remove(session_id(1))
        client.send({"type": "ping"})
        assert await client.receive() == {"type": "pong"}
        assert client.waiting() == 0


def tasks_of_the_api() -> set[str]:
    names = {repr(task.get_coro()) for task in asyncio.all_tasks()}
    return {name for name in names if "Socket" in name or "Group" in name}


@pytest.mark.parametrize("how", ["hang up", "bad message", "revoked", "complete all"])
async def test_after_any_kind_of_close_nothing_of_a_connection_remains(
    how: str,
) -> None:
    """api.md, line 14. An abrupt close once left a generator running elsewhere."""
    world = make_world()
    async with running(world.app), connect(world.app) as client:
        client.subscribe("1", NAMES)
        await client.next_payload("1")
        client.subscribe("2", TRANSCRIPT)
        await client.next_payload("2")
        assert world.transcripts.followers == 1
        if how == "hang up":
            client.hang_up()
        elif how == "bad message":
            client.send("x")
        elif how == "revoked":
            world.tokens.revoke(ADMIN)
        else:
            for id_ in ("1", "2"):
                client.send({"id": id_, "type": "complete"})
            client.hang_up()
        async with asyncio.timeout(5):
            await client.task
            while tasks_of_the_api() or world.transcripts.followers:
                await asyncio.wait(asyncio.all_tasks(), timeout=0.01)
        assert len(world.app.connections) == 0


async def test_revoking_a_token_closes_its_sockets_within_a_second() -> None:
    """Permissions are checked once a subscription, so sockets must close."""
    world = make_world()
    async with (
        running(world.app),
        connect(world.app, VIEWER) as gone,
        connect(world.app, VIEWER) as gone_too,
        connect(world.app, READER) as stays,
    ):
        gone.subscribe("1", NAMES)
        await gone.next_payload("1")
        world.tokens.revoke(VIEWER)
        async with asyncio.timeout(1):
            assert await gone.closed() == 4401
            assert await gone_too.closed() == 4401
        stays.subscribe("q", VERSION)
        await stays.next_payload("q")


async def test_a_frame_after_the_token_went_bad_closes_4401() -> None:
    """Each inbound frame is checked too, whoever tells of revocations."""
    world = make_world()
    async with connect(world.app, VIEWER) as client:
        del world.tokens.principals[VIEWER]
        client.subscribe("1", VERSION)
        assert await client.closed() == 4401


async def test_a_token_revoked_while_it_is_shown_closes_4401(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = make_world()
    monkeypatch.setattr(world.tokens, "is_current", lambda _: False)
    async with open_socket(world.app) as client:
        await accepted(client)
        client.send({"type": "connection_init", "payload": {"token": ADMIN}})
        assert await client.closed() == 4401


async def test_a_restart_closes_1012() -> None:
    """api.md, line 2."""
    world = make_world()
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT)
        await client.next_payload("1")
        await world.app.close_connections()
        assert await client.closed() == 1012
        assert len(world.app.connections) == 0


async def test_a_full_server_closes_1013() -> None:
    """api.md, line 2: come back later."""
    world = make_world(limits=Limits(connections=1))
    async with connect(world.app), open_socket(world.app) as client:
        await accepted(client)
        assert await client.closed() == 1013


async def test_one_address_cannot_take_every_connection() -> None:
    world = make_world(limits=Limits(connections_per_address=1))
    async with connect(world.app), open_socket(world.app) as second:
        await accepted(second)
        assert await second.closed() == 1013
        async with connect(world.app, address="10.0.0.2") as other:
            other.subscribe("q", VERSION)
            await other.next_payload("q")


async def test_sockets_without_a_token_are_few() -> None:
    """A stranger can hold few of them open, and keeps nobody out by it."""
    world = make_world(limits=Limits(uninitialised=1))
    async with open_socket(world.app) as stranger:
        await accepted(stranger)
        async with connect(world.app), connect(world.app):
            assert await stranger.closed() == 1013


PINGS = Limits(ping_seconds=0.01, silence_seconds=0.05, send_seconds=0.05)


async def test_the_server_pings_and_a_silent_peer_is_dropped() -> None:
    """api.md, line 13: dead peers are found within 60 s."""
    async with connect(make_world(limits=PINGS).app) as client:
        event = await client.next_event()
        assert event["text"] == '{"type":"ping"}'
        assert await client.closed() == 1013


async def test_a_peer_that_answers_pings_stays() -> None:
    async with connect(make_world(limits=PINGS).app) as client:
        for _ in range(12):
            assert (await client.next_event())["type"] == "websocket.send"
            client.send({"type": "pong"})


@pytest.mark.parametrize("last_word_seconds", [0, 1, 9, 10, 11, 19, 20, 30.5])
def test_a_peer_is_found_within_a_minute_of_its_last_word(
    last_word_seconds: float,
) -> None:
    """api.md, line 13. Looked for at each ping only, it was found after up to 70 s."""

    async def fall_silent() -> float:
        clock = asyncio.get_running_loop().time
        async with connect(make_world().app) as client:
            with suppress(TimeoutError):
                async with asyncio.timeout(last_word_seconds):
                    await asyncio.Event().wait()
            client.send({"type": "pong"})
            spoke_at = clock()
            async with asyncio.timeout(600):
                await client.task
            assert await client.closed() == 1013
            return clock() - spoke_at

    assert Limits().ping_seconds < 30
    assert 50 <= run_fast(fall_silent()) + Limits().close_seconds < 55


def test_a_reader_that_stopped_is_found_after_its_time_whatever_it_says() -> None:
    """The ping itself may be what waits in a full buffer: then nobody looked."""

    async def stop_reading() -> float:
        clock = asyncio.get_running_loop().time
        async with connect(make_world().app) as client:
            client.reads.clear()
            async with asyncio.timeout(600):
                await client.task
            return clock()

    limits = Limits()
    found_after = limits.ping_seconds + limits.send_seconds + limits.close_seconds
    assert run_fast(stop_reading()) == pytest.approx(found_after, abs=0.1)


async def test_a_reader_that_stopped_is_dropped_with_all_it_had() -> None:
    world = make_world(limits=replace(PINGS, silence_seconds=60, close_seconds=0.01))
    async with connect(world.app) as client:
        client.subscribe("1", TRANSCRIPT)
        client.reads.clear()
        async with asyncio.timeout(5):
            await client.task
        assert len(world.app.connections) == 0
        async with asyncio.timeout(5):
            while world.transcripts.followers:
                await asyncio.wait(asyncio.all_tasks(), timeout=0.01)


async def test_what_comes_over_the_control_socket_needs_no_token_or_host() -> None:
    local = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "local:1")
    extensions: dict[str, Any] = {LOCAL_PRINCIPAL: local}
    app = make_world().app
    host = ((b"host", b"whatever"),)
    async with open_socket(app, extensions=extensions, headers=host) as client:
        await accepted(client)
        await client.initialise(None)
        client.subscribe("1", "{ auditLog { nodes { id } } }")
        assert "errors" not in await client.next_payload("1")


async def test_a_bug_in_an_operation_closes_4500(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr("api.operations.Operations.execute", fail)
    async with connect(make_world().app) as client:
        client.subscribe("1", VERSION)
        assert await client.closed() == 4500


async def test_a_bug_in_the_reader_closes_4500(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr("api.operations.Operations.admit", fail)
    async with connect(make_world().app) as client:
        client.subscribe("1", VERSION)
        assert await client.closed() == 4500


async def test_operations_beyond_the_limit_wait_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A socket cannot keep more than a hundred operations in flight."""
    world = make_world(limits=Limits(operations=2))
    arrived, release = asyncio.Queue[int](), asyncio.Event()

    async def slow(*_: object, lines: int) -> str:
        arrived.put_nowait(lines)
        await release.wait()
        return ""

    monkeypatch.setattr(world.terminals, "screen_text", slow)
    async with connect(world.app) as client:
        for n in (1, 2, 3):
            client.subscribe(
                str(n), f"{{ terminals {{ nodes {{ screen(lines: {n}) }} }} }}"
            )
        assert [await arrived.get(), await arrived.get()] == [1, 2]
        assert client.waiting() == 0
        third = asyncio.ensure_future(arrived.get())
        await asyncio.wait({third}, timeout=0.02)
        assert not third.done()
        release.set()
        assert await third == 3
        kinds = [(await client.receive())["type"] for _ in range(6)]
    assert kinds.count("complete") == 3


async def test_when_revocations_cannot_be_heard_everyone_shows_a_token_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else a revoked device kept its sockets until they closed by themselves."""
    world = make_world()
    fail = asyncio.Event()

    async def failing() -> AsyncIterator[str]:
        await fail.wait()
        yield "token:unknown"
        raise OSError("lost")

    monkeypatch.setattr(world.tokens, "watch_revocations", failing)
    async with running(world.app), connect(world.app) as client:
        fail.set()
        assert await client.closed() == 4401
        async with connect(world.app) as again:
            again.subscribe("q", VERSION)
            await again.next_payload("q")
    assert "Watching for revoked tokens failed" in caplog.text
