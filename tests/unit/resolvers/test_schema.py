"""The schema as a stranger and its next release meet it (api.md, lines 5 and 9)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLUnionType,
    build_schema,
    find_breaking_changes,
    find_dangerous_changes,
    is_specified_scalar_type,
)

from resolvers.content import LABEL, TEXT
from resolvers.print_schema import main
from resolvers.schema import core_schema, print_sdl
from resolvers.scopes import ANONYMOUS_FIELDS, SCOPES
from resolvers.user_errors import TABLE
from sidestage.devices.model import Scope
from sidestage.errors import ErrorCode

ROOT = Path(__file__).parents[3]
SCHEMA = core_schema()
OURS = {
    name: type_
    for name, type_ in SCHEMA.type_map.items()
    if not name.startswith("__") and not is_specified_scalar_type(type_)
}


def output_fields() -> Iterator[tuple[str, Any]]:
    for name, type_ in OURS.items():
        if isinstance(type_, GraphQLObjectType | GraphQLInterfaceType):
            for field, definition in type_.fields.items():
                yield f"{name}.{field}", definition


def content_of(definition: Any) -> object:
    field = definition.extensions["strawberry-definition"]
    return next(iter(field.directives), None)


def test_the_committed_schema_is_what_the_code_says() -> None:
    assert (ROOT / "schema.graphql").read_text(encoding="utf-8") == print_sdl()


def test_a_schema_that_is_out_of_date_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schema.graphql"
    assert main([str(path), "--check"]) == 1
    assert "run scripts/schema" in capsys.readouterr().err
    assert main([str(path)]) == 0
    assert main([str(path), "--check"]) == 0


def test_the_printed_schema_can_be_read_again() -> None:
    assert build_schema(print_sdl()).query_type is not None


def released_schemas() -> list[Path]:
    return sorted((ROOT / "docs" / "releases").glob("schema-*.graphql"))


def test_nothing_of_the_last_released_schema_is_broken() -> None:
    """Until there is a release, the last one is an empty schema (api.md, line 5)."""
    released = released_schemas()
    old = (
        released[-1].read_text(encoding="utf-8") if released else "type Query { _: ID }"
    )
    changes = find_breaking_changes(build_schema(old), build_schema(print_sdl()))
    lost = [change.description for change in changes]
    assert lost == ([] if released else ["Field Query._ was removed."])


def test_a_breaking_change_would_be_found() -> None:
    without = print_sdl().replace("  gitBranch: String @content", "  x: ID @content")
    changes = find_breaking_changes(build_schema(print_sdl()), build_schema(without))
    assert [each.description for each in changes] == [
        "Field OutsideSession.gitBranch was removed."
    ]


def test_every_type_field_argument_and_value_is_described() -> None:
    bare: list[str] = []
    for name, type_ in OURS.items():
        if not type_.description:
            bare.append(name)
        if isinstance(type_, GraphQLEnumType):
            bare += [
                f"{name}.{v}" for v, d in type_.values.items() if not d.description
            ]
            assert "open" in (type_.description or "")
        if isinstance(type_, GraphQLInputObjectType):
            bare += [
                f"{name}.{f}" for f, d in type_.fields.items() if not d.description
            ]
    for name, definition in output_fields():
        if not definition.description:
            bare.append(name)
        bare += [
            f"{name}({a})" for a, d in definition.args.items() if not d.description
        ]
    assert bare == []


def test_custom_scalars_say_where_they_are_specified() -> None:
    scalars = {"DateTime", "BigInt", "Base64", "FeedCursor"}
    assert {n for n in OURS if getattr(OURS[n], "specified_by_url", None)} == scalars


def test_every_field_has_a_row_in_the_scope_table_and_every_row_a_field() -> None:
    assert {name for name, _ in output_fields()} == set(SCOPES)
    assert set(SCOPES) >= ANONYMOUS_FIELDS


def test_content_needs_the_scope_of_its_kind() -> None:
    """The directive is the scope table for content."""
    for name, definition in output_fields():
        content = content_of(definition)
        if content is TEXT:
            assert SCOPES[name] is Scope.READ, name
        if content is LABEL:
            assert SCOPES[name] in (Scope.VIEW, Scope.ADMIN), name


def test_an_interface_needs_what_its_types_need() -> None:
    """Selecting by the interface must not be a way around a type's scope."""
    for name, type_ in OURS.items():
        if isinstance(type_, GraphQLInterfaceType) and name != "Node":
            for implementation in SCHEMA.get_possible_types(type_):
                for field in type_.fields:
                    needed = SCOPES[f"{implementation.name}.{field}"]
                    assert needed in (SCOPES[f"{name}.{field}"], Scope.VIEW) or (
                        name == "FeedMessage"
                    ), f"{implementation.name}.{field}"


def test_no_field_or_argument_names_a_conversation() -> None:
    """The conversation id never leaves the server."""
    assert "conversationId" not in print_sdl()
    assert "transcriptPath" not in print_sdl()


def test_every_mutation_takes_one_input_and_answers_a_union_of_errors() -> None:
    mutations = SCHEMA.mutation_type
    assert mutations is not None
    for name, field in mutations.fields.items():
        assert list(field.args) == ["input"], name
        union: Any = field.type
        result = union.of_type
        assert isinstance(result, GraphQLUnionType), name
        payloads = [t.name for t in result.types if t.name.endswith("Payload")]
        assert len(payloads) == 1, name
        for type_ in result.types:
            is_error = "UserError" in {i.name for i in type_.interfaces}
            assert is_error or type_.name in payloads, name
        assert "InvalidInput" in {t.name for t in result.types}, name


def test_each_typed_error_is_named_as_what_is_raised() -> None:
    for raised, shown in TABLE.items():
        assert raised.__name__ == shown.__name__
        assert raised.code is not ErrorCode.INTERNAL


def test_a_dangerous_change_has_a_line_in_the_changelog() -> None:
    """api.md, line 5: a new enum value or union member surprises careless clients."""
    released = released_schemas()
    old = released[-1].read_text(encoding="utf-8") if released else print_sdl()
    changes = find_dangerous_changes(build_schema(old), build_schema(print_sdl()))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    untold = [each.description for each in changes if each.description not in changelog]
    assert untold == []


def test_a_dangerous_change_would_be_found() -> None:
    union = "union RemoveProjectResult = "
    without = print_sdl().replace(f"{union}InvalidInput | ", union)
    changes = find_dangerous_changes(build_schema(without), build_schema(print_sdl()))
    assert [each.description for each in changes] == [
        "InvalidInput was added to union type RemoveProjectResult."
    ]
