"""Requests over the application: who sees what, live, and how an answer is sent."""

from dataclasses import replace
from typing import Any

import pytest

from sidestage.devices.model import Scope
from sidestage.envelopes.envelope import Purpose
from sidestage.errors import RequestSettled
from sidestage.requests.model import (
    Question,
    QuestionOption,
    RequestEnd,
    RequestKind,
    RequestState,
    Suggestion,
)
from sidestage.sessions.model import SessionState, WaitingFor, WaitingKind
from tests.fakes.agent_requests import a_request
from tests.fakes.devices import a_device
from tests.fakes.parts import World, make_world
from tests.fakes.seals import seal_by_device
from tests.fakes.socket_client import connect
from tests.fakes.tokens import ADMIN, READER, VIEWER, device_principal
from tests.fakes.values import START, a_session, session_id

WAITING = WaitingFor(WaitingKind.UNKNOWN, "permission prompt", None, START)
REQUEST = a_request(
    suggestions=(Suggestion('{"a":1}', "session", is_forbidden=False),),
)
QUESTION = a_request(
    2,
    kind=RequestKind.QUESTION,
    tool_name="AskUserQuestion",
    questions=(
        Question("Which?", "Pick", (QuestionOption("A", "one"),), multi_select=True),
    ),
)
OVER = a_request(3, state=RequestState.WITHDRAWN, settled_by=RequestEnd.KEYBOARD)
FEED = "subscription { requestFeed { kind upserts { id state } removedIds } }"
ANSWER = """mutation($input: AnswerRequestInput!) { answerRequest(input: $input) {
  __typename
  ... on AnswerRequestPayload { request { id state } }
  ... on UserError { code message } } }"""


@pytest.fixture
def world() -> World:
    asking = a_session(1, state=SessionState.ASKING, waiting_for=WAITING)
    world = make_world(sessions=(asking, a_session(2)))
    for request in (REQUEST, QUESTION, OVER):
        world.requests.feed.upsert(request)
    for number in (1, 2):
        world.tokens.principals[f"device-{number}"] = device_principal(
            str(number), Scope.VIEW, Scope.ANSWER
        )
    return world


async def test_what_waits_is_listed_with_all_it_asks(world: World) -> None:
    query = """{ requests { nodes { id kind state createdAt expiresAtMs settledBy
      sessionId session { name } terminal { id } hasTimedOut verdict
      content { toolName inputJson digest plan
        suggestions { json destination needsAdmin isForbidden }
        questions { text header multiSelect options { label description } } } } } }"""
    async with world.client(READER) as client:
        question, permission = (await client.data(query))["requests"]["nodes"]
    assert permission["id"] == REQUEST.id
    assert permission["state"] == "PENDING"
    assert permission["expiresAtMs"] == str(REQUEST.subject.expires_at_ms)
    assert permission["session"] == {"name": "Session 1"}
    assert permission["content"]["digest"] == REQUEST.digest
    assert permission["content"]["inputJson"] == REQUEST.input_json
    assert permission["content"]["suggestions"] == [
        {
            "json": '{"a":1}',
            "destination": "session",
            "needsAdmin": False,
            "isForbidden": False,
        }
    ]
    assert question["content"]["questions"] == [
        {
            "text": "Which?",
            "header": "Pick",
            "multiSelect": True,
            "options": [{"label": "A", "description": "one"}],
        }
    ]


async def test_settled_ones_are_listed_when_they_are_asked_for(world: World) -> None:
    query = "query($s: ID, $of: [RequestState!]) { requests(sessionId: $s, states: $of)"
    query += " { nodes { id settledBy } } }"
    async with world.client(VIEWER) as client:
        over = await client.data(query, {"of": ["WITHDRAWN"]})
        assert over["requests"]["nodes"] == [{"id": OVER.id, "settledBy": "KEYBOARD"}]
        elsewhere = await client.data(query, {"s": session_id(2)})
        assert elsewhere["requests"]["nodes"] == []
        assert await client.code(query, {"s": "project:1"}) == "BAD_USER_INPUT"


async def test_a_session_shows_its_requests_and_what_it_waits_for(
    world: World,
) -> None:
    query = """{ outsideSessions { nodes { id requests { id }
      waitingFor { kind toolName label } } } node(id: "%s") { id __typename } }"""
    async with world.client(VIEWER) as client:
        data = await client.data(query % REQUEST.id)
    assert data["node"] == {"id": REQUEST.id, "__typename": "AgentRequest"}
    quiet, asking = data["outsideSessions"]["nodes"]
    assert quiet["requests"] == []
    assert quiet["waitingFor"] is None
    assert [row["id"] for row in asking["requests"]] == [REQUEST.id, QUESTION.id]
    assert asking["waitingFor"] == {
        "kind": "PERMISSION",
        "toolName": "Bash",
        "label": "permission prompt",
    }


async def test_another_dialog_is_not_taken_for_the_request(world: World) -> None:
    dialog = replace(WAITING, kind=WaitingKind.DIALOG)
    world.sessions.feed.upsert(
        a_session(1, state=SessionState.ASKING, waiting_for=dialog)
    )
    query = "{ outsideSessions { nodes { waitingFor { kind } } } }"
    async with world.client(VIEWER) as client:
        nodes = (await client.data(query))["outsideSessions"]["nodes"]
    assert nodes[1]["waitingFor"] == {"kind": "DIALOG"}


async def test_a_settled_request_leaves_the_feed_of_every_device(
    world: World,
) -> None:
    async with (
        connect(world.app, "device-1") as first,
        connect(world.app, "device-2") as second,
    ):
        for client in (first, second):
            client.subscribe("1", FEED)
            rows = (await client.next_feed("1", "requestFeed"))["upserts"]
            assert [row["id"] for row in rows] == [REQUEST.id, QUESTION.id]
        world.requests.feed.upsert(replace(REQUEST, state=RequestState.ANSWERED))
        for client in (first, second):
            message = await client.next_feed("1", "requestFeed")
            assert message["removedIds"] == [REQUEST.id]
            assert message["upserts"] == []


async def test_a_sessions_row_is_told_anew_when_it_asks(world: World) -> None:
    follow = """subscription { outsideSessionFeed {
      upserts { id requests { id state } } } }"""
    async with connect(world.app, "device-1") as client:
        client.subscribe("1", follow)
        await client.next_feed("1", "outsideSessionFeed")
        added = a_request(4, session_id=session_id(2))
        world.requests.feed.upsert(added)
        (row,) = (await client.next_feed("1", "outsideSessionFeed"))["upserts"]
    assert row["id"] == session_id(2)
    assert row["requests"] == [{"id": added.id, "state": "PENDING"}]


async def test_a_requests_row_is_told_anew_when_its_session_changes(
    world: World,
) -> None:
    follow = "subscription { requestFeed { upserts { id session { name } } } }"
    async with connect(world.app, "device-1") as client:
        client.subscribe("1", follow)
        await client.next_feed("1", "requestFeed")
        world.sessions.feed.upsert(a_session(1, name="Renamed"))
        rows = (await client.next_feed("1", "requestFeed"))["upserts"]
    assert {row["session"]["name"] for row in rows} == {"Renamed"}
    assert [row["id"] for row in rows] == [REQUEST.id, QUESTION.id]


async def test_each_device_gets_the_request_sealed_for_itself(world: World) -> None:
    follow = (
        "subscription { requestFeed { upserts { envelope { deviceId purpose } } } }"
    )
    async with (
        connect(world.app, "device-1") as first,
        connect(world.app, "device-2") as second,
    ):
        for number, client in ((1, first), (2, second)):
            client.subscribe("1", follow)
            rows = (await client.next_feed("1", "requestFeed"))["upserts"]
            assert [row["envelope"] for row in rows] == [
                {"deviceId": f"device:{number}", "purpose": "request"}
            ] * 2


async def test_what_is_asked_takes_the_scope_to_read(world: World) -> None:
    query = "{ requests { nodes { content { toolName } } } }"
    async with world.client(VIEWER) as client:
        assert await client.code(query) == "PERMISSION_DENIED"


def an_answer(number: int = 1) -> dict[str, Any]:
    content = {"decision": "allow", "note": "", "selections": [], "shown": ""}
    envelope = seal_by_device(
        a_device(number),
        number,
        purpose=Purpose.REQUEST_ANSWER,
        subject=REQUEST.subject,
        content={**content, "shown": REQUEST.digest},
    )
    return {"input": {"requestId": REQUEST.id, "envelope": envelope.to_fields()}}


async def answer(world: World, token: str, variables: dict[str, Any]) -> dict[str, Any]:
    async with world.client(token) as client:
        result: dict[str, Any] = (await client.data(ANSWER, variables))["answerRequest"]
    return result


async def test_a_sealed_answer_reaches_the_desk_as_it_was_sent(world: World) -> None:
    variables = an_answer()
    result = await answer(world, "device-1", variables)
    assert result == {
        "__typename": "AnswerRequestPayload",
        "request": {"id": REQUEST.id, "state": "PENDING"},
    }
    ((request_id, envelope, actor),) = world.requests.answered
    assert request_id == REQUEST.id
    assert envelope.to_fields() == variables["input"]["envelope"]
    assert actor.device_id == "device:1"


async def test_a_refusal_is_a_typed_error(world: World) -> None:
    world.requests.error = RequestSettled("It is over.")
    result = await answer(world, "device-1", an_answer())
    assert result == {
        "__typename": "RequestSettled",
        "code": "REQUEST_SETTLED",
        "message": "It is over.",
    }


async def test_a_malformed_envelope_is_refused_and_audited(world: World) -> None:
    variables = an_answer()
    variables["input"]["envelope"]["messageId"] = "short"
    before = len(world.audit.entries)
    result = await answer(world, "device-1", variables)
    assert result["code"] == "ENVELOPE_INVALID"
    assert world.requests.answered == []
    assert len(world.audit.entries) == before + 1


async def test_a_device_without_the_scope_to_answer_may_not(world: World) -> None:
    world.tokens.principals["viewer-1"] = device_principal("1", Scope.VIEW)
    async with world.client("viewer-1") as client:
        assert await client.code(ANSWER, an_answer()) == "PERMISSION_DENIED"
    assert world.requests.answered == []


async def test_who_has_no_device_key_gets_as_far_as_being_told_so(
    world: World,
) -> None:
    """The desk refuses; the scope table must not hide why."""
    await answer(world, ADMIN, an_answer())
    assert world.requests.answered[0][2].device_id is None
