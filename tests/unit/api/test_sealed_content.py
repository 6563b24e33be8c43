"""Whole frames of a device whose content is sealed: nothing clear is in any of them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLUnionType,
    get_named_type,
)

from api.limits import Limits
from resolvers.content import is_content
from resolvers.parts import Health
from resolvers.schema import core_schema
from resolvers.scopes import SCOPES
from sidestage.devices.model import ContentMode, Scope
from sidestage.sessions.model import WaitingFor, WaitingKind
from tests.fakes.devices import a_device
from tests.fakes.parts import World, make_world
from tests.fakes.socket_client import connect
from tests.fakes.tokens import VIEWER, device_principal
from tests.fakes.values import START, a_project, a_session, a_terminal

CANARY = "canary"
SEALED = "sealed-device"
SCHEMA = core_schema()
DEPTH = 3
LIMITS = Limits(
    tokens=20_000, like_named_pairs=10**6, cost=10**9, depth=20, points_burst=1e12
)
ID = '"ID"'


@pytest.fixture
def world() -> World:
    folder = f"/srv/{CANARY}"
    waiting = WaitingFor(WaitingKind.PERMISSION, CANARY, CANARY, START)
    world = make_world(
        sessions=(
            a_session(
                1,
                name=CANARY,
                directory=folder,
                current_directory=folder,
                git_branch=CANARY,
                waiting_for=waiting,
            ),
        ),
        projects=(a_project(1, name=CANARY, path=folder),),
        terminals=(a_terminal(1, name=CANARY, directory=folder, title=CANARY),),
        public_urls=(f"https://{CANARY}.example",),
        limits=LIMITS,
        health=lambda: Health(ok=False, notes=(f"{folder} cannot be read.",)),
    )
    world.devices.feed.upsert(a_device(3, name=CANARY))
    principal = device_principal("1", Scope.VIEW, Scope.ANSWER)
    sealed = replace(principal, content=ContentMode.SEALED)
    world.tokens.principals[SEALED] = sealed
    return world


def selections(type_: Any, depth: int) -> str:
    """Return all that a device without `READ` may select of *type_*."""
    if isinstance(type_, GraphQLUnionType):
        return "__typename"
    assert isinstance(type_, GraphQLObjectType | GraphQLInterfaceType)
    parts = ["__typename"]
    for name, field in type_.fields.items():
        inner = get_named_type(field.type)
        is_leaf = not hasattr(inner, "fields") and not hasattr(inner, "types")
        if SCOPES[f"{type_.name}.{name}"] is not Scope.VIEW or needs_arguments(field):
            continue
        if is_leaf:
            parts.append(name)
        elif depth:
            parts.append(f"{name} {{ {selections(inner, depth - 1)} }}")
    return " ".join(parts)


def needs_arguments(field: GraphQLField) -> bool:
    return any(
        isinstance(each.type, GraphQLNonNull) and each.default_value is None
        for each in field.args.values()
    )


def queries() -> Iterator[str]:
    assert SCHEMA.query_type is not None
    for name, field in SCHEMA.query_type.fields.items():
        if SCOPES[f"Query.{name}"] is Scope.VIEW and not field.args.keys() & {
            "id",
            "ids",
            "groupBy",
            "bucket",
        }:
            inner = get_named_type(field.type)
            yield f"{{ {name} {{ {selections(inner, DEPTH)} }} }}"
    for kind, type_name in (
        ("outside", "OutsideSession"),
        ("project", "Project"),
        ("terminal", "Terminal"),
        ("device", "Device"),
        ("host", "Host"),
    ):
        inner = SCHEMA.type_map[type_name]
        asked = selections(inner, DEPTH)
        yield f"{{ node(id: {ID}) {{ ... on {type_name} {{ {asked} }} }} }}".replace(
            ID, f'"{kind}"'
        )


def ids_of(world: World) -> dict[str, str]:
    return {
        "outside": world.sessions.feed.values()[0].id,
        "project": world.projects.feed.values()[0].id,
        "terminal": world.terminals.feed.values()[0].id,
        "device": "device:3",
        "host": world.parts.server.host_id,
    }


def with_ids(query: str, world: World) -> str:
    for kind, id_ in ids_of(world).items():
        query = query.replace(f'id: "{kind}"', f'id: "{id_}"')
    return query


@pytest.mark.parametrize("query", tuple(queries()))
async def test_no_answer_holds_anything_clear(world: World, query: str) -> None:
    async with world.client(SEALED) as client:
        answer = await client.ask(with_ids(query, world))
    assert answer.get("errors") is None, answer
    assert CANARY not in orjson.dumps(answer).decode().lower()


async def test_the_same_questions_of_a_clear_device_do_hold_it(world: World) -> None:
    """Else the test above would find nothing because there is nothing."""
    found = 0
    async with world.client(VIEWER) as client:
        for query in queries():
            answer = await client.ask(with_ids(query, world))
            assert answer.get("errors") is None, answer
            found += CANARY in orjson.dumps(answer).decode()
    assert found > 6


@pytest.mark.parametrize("feed", ["outsideSessionFeed", "terminalFeed", "deviceFeed"])
async def test_no_frame_of_a_feed_holds_anything_clear(world: World, feed: str) -> None:
    assert SCHEMA.subscription_type is not None
    message = get_named_type(SCHEMA.subscription_type.fields[feed].type)
    query = f"subscription {{ {feed} {{ {selections(message, 2)} }} }}"
    async with connect(world.app, VIEWER) as clear, connect(world.app, SEALED) as dark:
        for client in (clear, dark):
            client.subscribe("1", query)
        frames = [await client.next_feed("1", feed) for client in (clear, dark)]
        world.sessions.feed.upsert(a_session(2, name=CANARY))
        world.terminals.feed.upsert(a_terminal(2, name=CANARY))
        world.devices.feed.upsert(a_device(4, name=CANARY))
        frames += [await client.next_feed("1", feed) for client in (clear, dark)]
    held = [CANARY in orjson.dumps(frame).decode() for frame in frames]
    assert held == [True, False, True, False]


async def test_names_are_placeholders_and_what_may_be_null_is(world: World) -> None:
    query = "{ terminals { nodes { name directory title cols } } server { urls } }"
    async with world.client(SEALED) as client:
        data = await client.data(query)
    [terminal] = data["terminals"]["nodes"]
    assert terminal | {"cols": 0} == {
        "name": "(sealed)",
        "directory": None,
        "title": None,
        "cols": 0,
    }
    assert terminal["cols"] > 0
    assert data["server"]["urls"] == []


@pytest.mark.parametrize(
    "query",
    [
        "{ outsideSessions(orderBy: NAME) { nodes { id } } }",
        '{ outsideSessions(filter: {text: "a"}) { nodes { id } } }',
        'subscription { outsideSessionFeed(filter: {text: "a"}) { kind } }',
        "{ auditLog { nodes { detail } } }",
        "{ terminals { nodes { screen } } }",
        '{ terminals { nodes { search(text: "a") { more } } } }',
        """mutation { issueTerminalTicket(
             input: {terminalId: "terminal:1", mode: VIEW}) { __typename } }""",
        "{ outsideSessions { nodes { lastMessage { text } } } }",
        "subscription { pairingFeed { kind } }",
    ],
)
async def test_side_doors_are_shut(world: World, query: str) -> None:
    async with world.client(SEALED) as client:
        answer = await client.http.post(
            "/graphql",
            json={"query": query},
            headers={"accept": "application/json, text/event-stream"}
            if query.startswith("sub")
            else {},
        )
    assert "PERMISSION_DENIED" in answer.text
    assert CANARY not in answer.text


async def test_the_filter_by_text_is_shut_even_with_the_scope(world: World) -> None:
    principal = world.tokens.principals[SEALED]
    scopes = principal.scopes | {Scope.READ}
    world.tokens.principals[SEALED] = replace(principal, scopes=scopes)
    async with world.client(SEALED) as client:
        query = '{ outsideSessions(filter: {text: "a"}) { nodes { id } } }'
        assert await client.code(query) == "PERMISSION_DENIED"
        session = "{ outsideSessions { nodes { lastMessage { text } name } } }"
        data = await client.data(session)
    assert CANARY not in str(data)


async def test_projects_are_not_ordered_by_their_names(world: World) -> None:
    for number, name in ((2, "zz"), (3, "aa")):
        world.projects.feed.upsert(a_project(number, name=name, path=f"/p/{name}"))
    query = "{ projects { edges { cursor node { id } } } }"
    async with world.client(SEALED) as client:
        edges = (await client.data(query))["projects"]["edges"]
    ids = [edge["node"]["id"] for edge in edges]
    assert ids == sorted(ids)


def test_every_content_field_has_something_to_withhold() -> None:
    marked = [
        f"{type_.name}.{name}"
        for type_ in SCHEMA.type_map.values()
        if isinstance(type_, GraphQLObjectType) and not type_.name.startswith("__")
        for name, field in type_.fields.items()
        if is_content(field)
    ]
    assert {"OutsideSession.name", "Project.path", "Device.name"} <= set(marked)
    assert len(marked) > 20
