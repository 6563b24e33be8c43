"""The projecting executor answers exactly what graphql-core's own one answers."""

import asyncio
import re
from dataclasses import replace
from typing import Any, Final

import orjson
import pytest
from graphql.execution import Executor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_graphql import nodes, queries

from api import operations, projection
from api.limits import Limits
from api.operations import Operations, Refused, Request
from api.projection import ProjectingExecutor
from api.rates import RateLimiter
from resolvers import paging, sessions
from resolvers.schema import print_sdl
from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from tests.fakes.parts import World, make_world
from tests.fakes.values import a_session, a_terminal

CASES: Final = 40
ROW: Final = """id __typename agent name directory currentDirectory state stateSince
  startedAt endedAt model usage { inputTokens __typename cacheReadTokens }
  stateEvidence { source observedAt } project { id name readOnly } resume { available }
"""
LIST: Final = f"{{ outsideSessions {{ nodes {{ {ROW} }} edges {{ cursor }} }} }}"
FLAT: Final = """{ outsideSessions { nodes {
  id __typename agent name directory state stateSince startedAt model } } }"""
OWNER: Final = Principal(PrincipalKind.ADMIN, ADMIN_SCOPES, "admin", token_id="t")
SCALARS: Final = {
    "DateTime": st.just("2026-11-30T12:00:00Z").map(nodes.String),
    "BigInt": st.just("7").map(nodes.String),
    "Base64": st.just("QQ==").map(nodes.String),
    "FeedCursor": st.just("e:1").map(nodes.String),
}


def ask(world: World, query: str, executor: type[Executor[Any]]) -> dict[str, Any]:
    """Run *query* with *executor* and return its response."""
    rates = [RateLimiter(1e9, 1e9, lambda: 0.0) for _ in range(2)]
    door = Operations(world.parts, Limits(), rates=rates[0], anonymous_rates=rates[1])
    stock = operations.EXECUTOR
    operations.EXECUTOR = executor  # type: ignore[misc]  # final, but for this test
    try:
        admitted = door.admit(Request(query), OWNER)
        return without_references(asyncio.run(door.execute(admitted)).body)
    except Refused as refused:
        return refused.answer.body
    finally:
        operations.EXECUTOR = stock  # type: ignore[misc]  # as above


def without_references(body: dict[str, Any]) -> dict[str, Any]:
    """Return the response without the random reference of each masked error."""
    text = re.sub(rb"\b[0-9a-f]{12}\b", b"", orjson.dumps(body))
    result: dict[str, Any] = orjson.loads(text)
    return result


def check_equal(world: World, query: str) -> dict[str, Any]:
    """Ask twice by each executor (the second time rows are remembered); all agree."""
    expected = ask(world, query, Executor)
    for _ in range(2):
        answer = ask(world, query, ProjectingExecutor)
        assert answer == expected
        assert list_keys(answer) == list_keys(expected)
    return expected


def list_keys(value: object) -> list[object]:
    """Return every key in the order in which the response holds it."""
    if isinstance(value, dict):
        return [x for key, item in value.items() for x in (key, *list_keys(item))]
    if isinstance(value, list):
        return [x for item in value for x in list_keys(item)]
    return []


def test_a_list_of_rows_is_the_same_and_is_projected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = make_world()
    answer = check_equal(world, LIST)
    assert len(answer["data"]["outsideSessions"]["nodes"]) == 3
    monkeypatch.setattr(projection, "_rows", {})
    ask(world, LIST, ProjectingExecutor)
    kept = [shape.type_name for shape, _, _ in projection._rows.values()]
    assert kept.count("OutsideSession") == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"name": None},
        {"name": 7},
        {"model": 7},
        {"model": Ellipsis},
        {"state": "IDLE"},
        {"state": None},
        {"state_since": None},
        {"started_at": "yesterday"},
        {"usage": 7},
        {"directory": 7},
    ],
    ids=str,
)
def test_a_row_that_is_not_what_the_schema_says_fails_the_same_way(
    changes: dict[str, Any],
) -> None:
    rows = (a_session(1), a_session(2, **changes), a_session(3))
    for query in (LIST, FLAT):
        check_equal(make_world(sessions=rows), query)


def test_a_list_of_nothing_but_leaves_is_read_without_a_step_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, steps = make_world(), []
    check_equal(world, FLAT)
    stock = ProjectingExecutor.complete_list_item_value

    def count(executor: Any, *arguments: Any) -> bool:
        steps.append(arguments[0])
        return stock(executor, *arguments)

    monkeypatch.setattr(ProjectingExecutor, "complete_list_item_value", count)
    ask(world, FLAT, ProjectingExecutor)
    assert steps == []
    ask(world, LIST, ProjectingExecutor)
    assert steps


@pytest.mark.parametrize("intruder", [None, 7, ValueError("bad"), Ellipsis], ids=str)
def test_a_list_with_something_else_in_it_fails_the_same_way(
    monkeypatch: pytest.MonkeyPatch, intruder: object
) -> None:
    page = paging.page_of

    def page_with_an_intruder(*arguments: Any) -> Any:
        found = page(*arguments)
        return replace(found, nodes=(*found.nodes[:1], intruder, *found.nodes[1:]))

    monkeypatch.setattr(sessions, "page_of", page_with_an_intruder)
    assert check_equal(make_world(), FLAT)["errors"]


@pytest.mark.parametrize("cols", [2**31, -(2**31) - 1, True, 80.0, 80.5, "80"], ids=str)
def test_a_number_that_is_no_int_fails_the_same_way(cols: Any) -> None:
    world = make_world(terminals=(replace(a_terminal(), cols=cols),))
    check_equal(world, "{ terminals { nodes { id cols rows name attachedClients } } }")


def test_aliases_fragments_and_directives_are_the_same() -> None:
    check_equal(
        make_world(),
        """query { one: outsideSessions(first: 1) { nodes { a: id b: id ...F } }
          two: outsideSessions(first: 2) { nodes { ...F @skip(if: true) id name } } }
        fragment F on OutsideSession { name name state @include(if: false) host { id }
          ... on Node { id __typename } }""",
    )


def test_one_row_in_two_selections_is_two_objects() -> None:
    """The leaves are shared, so what stands beside them must not be."""
    answer = check_equal(
        make_world(sessions=(a_session(1),)),
        """{ one: outsideSessions { nodes { id name project { id } } }
             two: outsideSessions { nodes { id name project { name } } } }""",
    )
    [one], [two] = (answer["data"][key]["nodes"] for key in ("one", "two"))
    assert one["project"].keys() != two["project"].keys()


def test_a_row_that_changes_is_read_anew() -> None:
    """Rows are remembered by identity: a new value must not show an old one."""
    world = make_world()
    check_equal(world, LIST)
    for number in range(50):
        world.sessions.feed.upsert(a_session(1, name=f"Renamed {number}"))
        answer = check_equal(world, LIST)
        names = {row["name"] for row in answer["data"]["outsideSessions"]["nodes"]}
        assert f"Renamed {number}" in names


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "ROWS_LIMIT", 5)
    monkeypatch.setattr(projection, "SHAPES_LIMIT", 3)
    monkeypatch.setattr(projection, "_rows", {})
    monkeypatch.setattr(projection, "_shapes", {})
    world = make_world(sessions=tuple(a_session(number) for number in range(1, 20)))
    for field in ("name", "state", "model", "agent", "stateSince"):
        check_equal(world, f"{{ outsideSessions {{ nodes {{ id {field} }} }} }}")
        assert len(projection._rows) <= 5
        assert len(projection._shapes) <= 3


@settings(
    max_examples=CASES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(query=queries(print_sdl(), custom_scalars=SCALARS))
def test_generated_queries_are_the_same(query: str) -> None:
    check_equal(WORLD, query)


WORLD: Final = make_world()
