"""What is too much, and how it is told (api.md, line 11)."""

from typing import Any

import pytest
from graphql import get_introspection_query

from api.documents import DOCUMENTS_LIMIT, Documents
from api.limits import Limits
from api.rates import BUCKETS_LIMIT, RateLimiter
from resolvers.schema import core_schema
from sidestage.errors import RateLimited
from tests.fakes.parts import make_world

NODES = "nodes { id name state }"


def chain(levels: int) -> str:
    """Return a query that is *levels* deep."""
    inner = "id"
    for _ in range(levels - 2):
        inner = f"continuedFrom {{ {inner} }}"
    return f'{{ node(id: "x") {{ ... on OutsideSession {{ {inner} }} }} }}'


CYCLE = "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }"
BOMB = (
    "{ ...F0 } "
    + " ".join(
        f"fragment F{n} on Query {{ ...F{n + 1} ...F{n + 1} }}" for n in range(30)
    )
    + " fragment F30 on Query { __typename }"
)


@pytest.mark.parametrize(
    "query",
    [
        chain(13),
        "{ ...F } fragment F on Query " + chain(13),
        "{ " + " ".join(f"a{n}: __typename" for n in range(31)) + " }",
        "{ " + "__typename " * 2000 + " }",
        """{ outsideSessions(first: 100) { nodes { transcript(first: 100) {
            nodes { id body { text } } } } } }""",
        """query($n: Int = 100) { outsideSessions(first: 100) { nodes {
            continuations(first: $n) { nodes { id name } } } } }""",
        """query($n: Int) { a: outsideSessions(first: 100) { nodes {
            transcript(first: $n) { nodes { id order at body { text } } } } } }""",
        "{ " + " ".join(f"a{n}: __schema {{ __typename }}" for n in range(11)) + " }",
        BOMB,
        "{ " + "server { version } " * 490 + " }",
        "{ " + "... { server { version } } " * 300 + " }",
    ],
)
async def test_an_operation_over_a_limit_is_refused_with_a_code(query: str) -> None:
    async with make_world().client() as client:
        code = await client.code(query, {"n": 100})
    assert code == "OPERATION_TOO_LARGE"


@pytest.mark.parametrize(
    "query",
    [
        chain(12),
        "{ " + " ".join(f"a{n}: __typename" for n in range(30)) + " }",
        f"{{ outsideSessions(first: 100) {{ {NODES} }} }}",
        """query($n: Int) { a: outsideSessions(first: 100) { nodes {
            transcript(first: $n) { nodes { id } } } } }""",
    ],
)
async def test_an_operation_within_the_limits_is_served(query: str) -> None:
    async with make_world(sessions=()).client() as client:
        await client.data(query, {"n": 10})


async def test_fragments_that_spread_themselves_are_no_trap() -> None:
    async with make_world().client() as client:
        assert await client.code(CYCLE) == "GRAPHQL_VALIDATION_FAILED"


async def test_what_any_introspection_asks_is_served() -> None:
    query = get_introspection_query(
        specified_by_url=True,
        input_value_deprecation=True,
        directive_is_repeatable=True,
    )
    async with make_world().client() as client:
        data = await client.data(query)
    assert len(data["__schema"]["types"]) > 100


@pytest.mark.parametrize("size", [-5, 0, 101, 2**31 - 1])
async def test_a_page_size_out_of_bounds_is_bad_input_not_too_large(size: int) -> None:
    query = "query($n: Int) { outsideSessions(first: $n) { nodes { id } } }"
    async with make_world().client() as client:
        assert await client.code(query, {"n": size}) == "BAD_USER_INPUT"


async def test_who_asks_too_much_at_once_is_told_when_to_come_back() -> None:
    now = 0.0
    limits = Limits(points_burst=300, points_per_second=100, new_document_points=0)
    world = make_world(limits=limits, monotonic=lambda: now)
    query = f"{{ outsideSessions {{ {NODES} }} }}"  # 1 + 50 * (1 + 3) = 201
    async with world.client() as client:
        await client.data(query)
        error = (await client.ask(query))["errors"][0]
        assert error["extensions"] == {"code": "RATE_LIMITED", "retryAfterMs": 1020}
        now += 1.03
        await client.data(query)


async def test_one_caller_does_not_spend_anothers_points() -> None:
    limits = Limits(points_burst=3, points_per_second=0.1, new_document_points=0)
    world = make_world(limits=limits)
    async with world.client() as client, world.client("viewer-token") as other:
        for _ in range(3):
            await client.data("{ __typename }")
        assert await client.code("{ __typename }") == "RATE_LIMITED"
        await other.data("{ __typename }")


async def test_documents_that_nobody_sent_before_are_dear() -> None:
    """Working one out holds the loop; the ones that apps send are remembered."""
    limits = Limits(points_burst=10, points_per_second=0.1, new_document_points=5)
    async with make_world(limits=limits).client() as client:
        for _ in range(4):
            await client.data("{ __typename }")
        assert await client.code("{ other: __typename }") == "RATE_LIMITED"
        await client.data("{ __typename }")


async def test_strangers_are_limited_by_address() -> None:
    world = make_world(limits=Limits(anonymous_burst=2, anonymous_per_second=0.1))
    async with world.client(None) as client, world.client() as known:
        for _ in range(2):
            await client.data("{ __typename }")
        assert await client.code("{ __typename }") == "RATE_LIMITED"
        await known.data("{ __typename }")


def test_a_bucket_fills_up_again_but_not_over_its_size() -> None:
    now = 0.0
    rates = RateLimiter(10, 1, lambda: now)
    rates.spend("a", 10)
    with pytest.raises(RateLimited) as refused:
        rates.spend("a", 5)
    assert refused.value.retry_after_ms == 5000
    now = 100
    rates.spend("a", 10)
    with pytest.raises(RateLimited):
        rates.spend("a", 1)


def test_what_costs_more_than_a_bucket_passes_when_it_is_full() -> None:
    rates = RateLimiter(10, 1, lambda: 0.0)
    rates.spend("a", 1000)
    with pytest.raises(RateLimited):
        rates.spend("a", 1)


def test_callers_are_not_remembered_without_end() -> None:
    rates = RateLimiter(1, 1, lambda: 0.0)
    for number in range(BUCKETS_LIMIT + 1):
        rates.spend(str(number), 1)
    rates.spend("0", 1)  # forgotten, thus full


def test_a_document_is_worked_out_once() -> None:
    """Limiters made anew for each request kept validation caches from hitting."""
    documents = Documents(core_schema(), Limits())
    first = documents.read("{ __typename }")
    assert documents.read("{ __typename }") is first
    assert documents.read("{ nothing }") is documents.read("{ nothing }")
    assert documents.read("{") is documents.read("{")
    for number in range(DOCUMENTS_LIMIT + 1):
        documents.read(f"{{ a{number}: __typename }}")
    assert documents.read("{ __typename }") is not first
    long = "{ __typename } #" + "x" * 40_000
    assert documents.read(long) is not documents.read(long)


def test_the_cost_is_counted_from_page_sizes_and_fragments() -> None:
    documents = Documents(core_schema(), Limits())

    def cost(query: str, **variables: Any) -> int:
        operation = documents.read(query).find_operation(None)
        assert operation is not None, documents.read(query).errors
        return operation.cost.of(variables)

    assert cost("{ __typename }") == 1
    assert cost("{ server { version } }") == 2
    assert cost("{ outsideSessions(first: 10) { nodes { id } } }") == 21
    assert cost("{ outsideSessions { nodes { id } } }") == 101
    query = "query($n: Int) { outsideSessions(first: $n) { nodes { id } } }"
    assert cost(query, n=10) == cost(query, n=10) == 21
    assert cost(query, n="x") == 201
    for size in range(70):
        cost(query, n=size)
    assert cost('{ nodes(ids: ["a", "b"]) { id } }') == 3
    assert cost("query($i: [ID!]!) { nodes(ids: $i) { id } }", i=["a"] * 7) == 8
    assert cost("{ templates { id } }") == 11
    fragment = "fragment F on Query { server { version } }"
    assert (
        cost("{ ...F ...F ... on Query { ...F } ... { __typename } } " + fragment) == 7
    )
