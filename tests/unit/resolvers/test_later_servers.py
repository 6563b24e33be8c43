"""What the documents tell clients to send survives a later server (api.md, line 9)."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
    extend_schema,
    graphql_sync,
    parse,
    validate,
)

ROOT: Final = Path(__file__).parents[3]
LATER: Final = "NOT_KNOWN_YET"
LATER_MEMBER: Final = "InventedLater"


def documented(name: str) -> list[str]:
    """Return the operations in the blocks of code of a document."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    return re.findall(r"^```graphql\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


MUTATIONS: Final = documented("api.md")
OPERATIONS: Final = [*MUTATIONS, *documented("feeds.md")]


def later_schema() -> GraphQLSchema:
    """Return the schema with one more error in each union, one more value in enums."""
    now = build_schema((ROOT / "schema.graphql").read_text(encoding="utf-8"))
    fields = "{ code: ErrorCode! message: String! later: Int }"
    extensions = [f"type {LATER_MEMBER} implements UserError {fields}"]
    for name, type_ in now.type_map.items():
        if isinstance(type_, GraphQLUnionType):
            extensions.append(f"extend union {name} = {LATER_MEMBER}")
        elif isinstance(type_, GraphQLEnumType) and not name.startswith("__"):
            extensions.append(f"extend enum {name} {{ {LATER} }}")
    return extend_schema(now, parse("\n".join(extensions)))


SCHEMA: Final = later_schema()


def test_both_documents_show_operations() -> None:
    assert any("... on UserError" in text for text in MUTATIONS)
    assert any(text.startswith("subscription") for text in OPERATIONS)


@pytest.mark.parametrize("text", OPERATIONS)
def test_a_documented_operation_is_valid_now_and_later(text: str) -> None:
    now = build_schema((ROOT / "schema.graphql").read_text(encoding="utf-8"))
    assert validate(now, parse(text)) == []
    assert validate(SCHEMA, parse(text)) == []


@pytest.mark.parametrize("text", MUTATIONS)
def test_a_documented_mutation_shows_an_error_it_never_heard_of(text: str) -> None:
    answer: dict[str, Any] = {
        "__typename": LATER_MEMBER,
        "code": LATER,
        "message": "Something new went wrong.",
        "later": 1,
    }
    field = re.findall(r"^  (\w+)\(", text, re.MULTILINE)[0]
    result = graphql_sync(
        SCHEMA,
        text,
        {field: answer},
        variable_values={"input": {"sessionId": "x", "cols": 80, "rows": 24}},
    )
    assert result.errors is None
    assert result.data == {
        field: {name: answer[name] for name in ("__typename", "code", "message")}
    }


def test_a_value_that_comes_later_arrives_as_its_name() -> None:
    text = "{ outsideSessions { nodes { state } } }"
    rows = {"outsideSessions": {"nodes": [{"state": LATER}]}}
    result = graphql_sync(SCHEMA, text, rows)
    assert (result.errors, result.data) == (None, rows)
