"""GraphQL over HTTP (api.md, lines 4, 6, 10 and 11)."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from api.guard import LOCAL_PRINCIPAL
from api.http import _parse_query_string
from api.limits import Limits
from resolvers.parts import Health
from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from sidestage.errors import InvalidInput
from tests.fakes.parts import BASE, World, make_world
from tests.fakes.tokens import ADMIN

GRAPHQL_JSON = "application/graphql-response+json"
VERSION = "{ server { version } }"


async def post(
    world: World, body: Any = None, /, token: str | None = ADMIN, **headers: str
) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named.setdefault("content-type", "application/json")
    async with world.client(token) as client:
        return await client.http.post("/graphql", content=content, headers=named)


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("application/json", "application/json"),
        (GRAPHQL_JSON, GRAPHQL_JSON),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("", "application/json"),
        (
            f"text/html, {GRAPHQL_JSON};q=0.5, application/json;q=0.9",
            "application/json",
        ),
        (f"{GRAPHQL_JSON}; charset=utf-8, application/json;q=0.9", GRAPHQL_JSON),
        (f"application/json;q=x, {GRAPHQL_JSON};q=0.1", GRAPHQL_JSON),
        ("multipart/mixed;subscriptionSpec=1.0, application/json", "application/json"),
    ],
)
async def test_the_answer_has_the_media_type_the_client_likes_best(
    accept: str, media: str
) -> None:
    answer = await post(make_world(), {"query": VERSION}, accept=accept)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == f"{media}; charset=utf-8"
    assert answer.json() == {"data": {"server": {"version": "0.1.0"}}}


@pytest.mark.parametrize("accept", ["text/html", "image/png", "application/xml"])
async def test_an_answer_nobody_takes_is_not_sent(accept: str) -> None:
    answer = await post(make_world(), {"query": VERSION}, accept=accept)
    assert answer.status_code == 406


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"query": "{"}, "GRAPHQL_PARSE_FAILED"),
        ({"query": "{ nothing }"}, "GRAPHQL_VALIDATION_FAILED"),
        ({"query": "query A { __typename } query B { __typename }"}, "BAD_USER_INPUT"),
        ({"query": VERSION, "operationName": "X"}, "BAD_USER_INPUT"),
        ({"query": "fragment F on Query { __typename }"}, "GRAPHQL_VALIDATION_FAILED"),
        ({"query": ""}, "INVALID_REQUEST"),
        ({"query": None}, "INVALID_REQUEST"),
        ({"query": 5}, "INVALID_REQUEST"),
        ({}, "INVALID_REQUEST"),
        ([{"query": VERSION}], "INVALID_REQUEST"),
        ("x", "INVALID_REQUEST"),
        (None, "INVALID_REQUEST"),
        ({"query": VERSION, "variables": []}, "INVALID_REQUEST"),
        ({"query": VERSION, "variables": "{}"}, "INVALID_REQUEST"),
        ({"query": VERSION, "operationName": 5}, "INVALID_REQUEST"),
        ({"query": VERSION, "extensions": 5}, "INVALID_REQUEST"),
        (b"", "INVALID_REQUEST"),
        (b"{", "INVALID_REQUEST"),
        (b"\xff\xfe", "INVALID_REQUEST"),
        (b'{"query": "{ __typename }", "variables": {"a": NaN}}', "INVALID_REQUEST"),
        (b'{"query": "\\ud800"}', "INVALID_REQUEST"),
        (
            b'{"query": "{ __typename }", "variables": {"a": "\\udfff"}}',
            "INVALID_REQUEST",
        ),
        (b"[" * 100_000, "INVALID_REQUEST"),
    ],
)
async def test_a_request_that_makes_no_sense_is_400(body: Any, code: str) -> None:
    """api.md, line 10. What is a request at all gets 200 in the older media type."""
    world = make_world()
    answer = await post(world, body, accept=GRAPHQL_JSON)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["extensions"]["code"] == code
    assert "data" not in answer.json()
    older = await post(world, body, accept="application/json")
    assert older.status_code == (400 if code == "INVALID_REQUEST" else 200)
    assert older.json()["errors"][0]["extensions"]["code"] == code


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/graphql",
        "application/json; charset=latin-1",
        "",
    ],
)
async def test_only_json_is_taken(content_type: str) -> None:
    """A form or text/plain is what a foreign page may send without being asked."""
    answer = await post(make_world(), {"query": VERSION}, content_type=content_type)
    assert answer.status_code == 415


async def test_json_may_name_its_charset() -> None:
    kind = 'application/json; charset="UTF-8"'
    answer = await post(make_world(), {"query": VERSION}, content_type=kind)
    assert answer.status_code == 200


async def test_a_body_beyond_the_limit_is_413() -> None:
    """api.md, lines 10 and 11."""
    world = make_world(limits=Limits(body_bytes=1000))
    answer = await post(world, {"query": VERSION + " " * 1000})
    assert answer.status_code == 413
    assert answer.json()["errors"][0]["extensions"]["code"] == "OPERATION_TOO_LARGE"


async def test_a_long_body_without_a_length_is_413_too() -> None:
    world = make_world(limits=Limits(body_bytes=1000))

    async def pieces() -> Any:
        for _ in range(20):
            yield b" " * 100

    async with world.client() as client:
        headers = {"content-type": "application/json"}
        answer = await client.http.post("/graphql", content=pieces(), headers=headers)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"authorization": f"Basic {ADMIN}"}, 401),
        ({"authorization": ADMIN}, 401),
        ({"authorization": "Bearer " + "x" * 300}, 401),
        ({}, 401),
        ({"authorization": f"bearer {ADMIN}"}, 200),
    ],
)
@pytest.mark.parametrize("accept", ["application/json", GRAPHQL_JSON])
async def test_exactly_one_good_bearer_token_is_needed(
    headers: dict[str, str], status: int, accept: str
) -> None:
    query = {"query": "{ projects { nodes { id } } }"}
    answer = await post(make_world(), query, None, accept=accept, **headers)
    assert answer.status_code == status
    if status == 401:
        assert answer.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_two_tokens_are_none() -> None:
    transport = httpx.ASGITransport(app=make_world().app)
    headers = [("authorization", f"Bearer {ADMIN}")] * 2
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        answer = await client.post("/graphql", json={"query": VERSION}, headers=headers)
    assert answer.status_code == 401


async def test_too_many_wrong_tokens_are_429() -> None:
    world = make_world()
    world.tokens.is_flooded = True
    answer = await post(world, {"query": VERSION}, "wrong")
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "60"
    assert answer.json()["errors"][0]["extensions"]["retryAfterMs"] == 60_000


@pytest.mark.parametrize(
    ("client", "status"),
    [
        ("app/0.0.9", 400),
        ("app/0", 400),
        ("app/0.1", 200),
        ("app/0.1.0", 200),
        ("other/2", 200),
        ("no version", 200),
        ("app/x", 200),
        ("app/99999999999", 200),
    ],
)
async def test_an_old_client_is_told_so(client: str, status: int) -> None:
    """api.md, line 4."""
    body = {"query": VERSION}
    answer = await post(
        make_world(), body, accept=GRAPHQL_JSON, sidestage_client=client
    )
    assert answer.status_code == status
    if status == 400:
        assert answer.json()["errors"][0]["extensions"]["code"] == "CLIENT_TOO_OLD"


SUBSCRIPTION = {"query": "subscription { terminalFeed { kind } }"}


@pytest.mark.parametrize("accept", ["application/json", GRAPHQL_JSON, "*/*"])
async def test_a_subscription_by_plain_post_gets_a_clear_answer(accept: str) -> None:
    """api.md, line 6. Elsewhere it got 200 and "Cannot return null"."""
    answer = await post(make_world(), SUBSCRIPTION, accept=accept)
    assert answer.status_code == 400
    code = answer.json()["errors"][0]["extensions"]["code"]
    assert code == "USE_STREAMING_TRANSPORT"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
async def test_only_post_is_served(method: str) -> None:
    async with make_world().client() as client:
        answer = await client.http.request(
            method, "/graphql", params={"query": VERSION}
        )
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


async def test_queries_by_get_are_served_where_they_are_allowed() -> None:
    async with make_world(allows_get=True).client() as client:
        answer = await client.http.get(
            "/graphql",
            params={
                "query": "query A($n: Int) { projects(first: $n) { nodes { id } } }",
                "variables": '{"n": 1}',
                "operationName": "A",
            },
        )
        assert len(answer.json()["data"]["projects"]["nodes"]) == 1
        for params in ({"query": VERSION, "variables": "["}, {}):
            answer = await client.http.get("/graphql", params=params)
            assert answer.json()["errors"][0]["extensions"]["code"] == "INVALID_REQUEST"


async def test_a_mutation_never_comes_by_get() -> None:
    query = (
        'mutation { closeTerminal(input: {terminalId: "terminal:1"}) { __typename } }'
    )
    world = make_world(allows_get=True)
    async with world.client() as client:
        answer = await client.http.get("/graphql", params={"query": query})
    assert answer.status_code == 405
    assert world.terminals.feed.get("terminal:1")


async def test_an_error_of_a_field_is_200_with_data() -> None:
    query = {"query": "{ server { version } terminals { nodes { screen(lines: 0) } } }"}
    answer = await post(make_world(), query, accept=GRAPHQL_JSON)
    assert answer.status_code == 200
    assert answer.json()["data"]["server"] == {"version": "0.1.0"}


async def test_health_needs_no_token_and_readiness_says_when() -> None:
    async with make_world().client(None) as client:
        assert (await client.http.get("/healthz")).text == "ok\n"
        assert (await client.http.get("/readyz")).text == "ready\n"


async def test_the_control_socket_is_its_own_token() -> None:
    app = make_world().app
    local = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "local:1")

    async def over_the_control_socket(scope: Any, receive: Any, send: Any) -> None:
        scope = {**scope, "extensions": {LOCAL_PRINCIPAL: local}}
        await app(scope, receive, send)

    transport = httpx.ASGITransport(app=over_the_control_socket)
    async with httpx.AsyncClient(transport=transport, base_url="http://any") as client:
        body = {"query": "{ auditLog(first: 1) { nodes { seq } } }"}
        answer = await client.post("/graphql", json=body)
    assert answer.json() == {"data": {"auditLog": {"nodes": [{"seq": "5"}]}}}


async def test_a_client_that_goes_away_in_its_body_does_no_harm() -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:7433"), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/graphql",
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "extensions": {},
    }
    await make_world().app(scope, receive, send)
    assert sent[0]["status"] == 400


async def test_readiness_waits_for_the_first_list() -> None:
    world = make_world(health=lambda: Health(ok=True, ready=False))
    async with world.client(None) as client:
        answer = await client.http.get("/readyz")
    assert (answer.status_code, answer.text) == (503, "not yet\n")


def test_a_query_string_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput):
        _parse_query_string(b"query=\xff")


async def test_an_operation_that_never_ends_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = make_world(limits=Limits(execution_seconds=0.01))

    async def never(*_: object, **__: object) -> str:
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(world.terminals, "screen_text", never)
    answer = await post(world, {"query": "{ terminals { nodes { screen } } }"})
    assert answer.json()["errors"][0]["extensions"]["code"] == "INTERNAL"
