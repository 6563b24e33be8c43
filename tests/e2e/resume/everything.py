"""Documents that select every field of a type, from the schema itself.

select_everything(schema, "OutsideSession", depth=2)  ->  "id name project { id }"
"""

from collections.abc import Iterator
from typing import Final

from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    is_leaf_type,
    is_required_argument,
)

PAGE: Final = "(first: 5)"
_LEFT_OUT: Final = frozenset({"edges", "screen", "styledScreen", "search"})
"""Edges show the nodes again; a screen is the agent's own text."""


def select_everything(
    schema: GraphQLSchema, name: str, *, depth: int, pages: bool = True
) -> str:
    """Return a selection of all fields of the type *name*, *depth* objects deep.

    Without *pages* no connection is in it, as feeds want it.
    """
    kind = schema.type_map[name]
    words = ["__typename"]
    if isinstance(kind, GraphQLObjectType | GraphQLInterfaceType):
        words += _select_fields(schema, kind, depth, pages=pages)
    if isinstance(kind, GraphQLInterfaceType | GraphQLUnionType):
        for member in schema.get_possible_types(kind):
            inner = select_everything(schema, member.name, depth=depth, pages=pages)
            words.append(f"... on {member.name} {{ {inner} }}")
    return " ".join(words)


def select_each(schema: GraphQLSchema, name: str, *, depth: int) -> Iterator[str]:
    """Yield every field of the type *name* alone, *depth* objects deep.

    All in one document would be over the server's limits.
    """
    kind = schema.type_map[name]
    assert isinstance(kind, GraphQLObjectType)
    yield from _select_fields(schema, kind, depth, pages=True)


def _select_fields(
    schema: GraphQLSchema,
    kind: GraphQLObjectType | GraphQLInterfaceType,
    depth: int,
    *,
    pages: bool,
) -> Iterator[str]:
    for name, field in kind.fields.items():
        needs_argument = any(map(is_required_argument, field.args.values()))
        if needs_argument or name in _LEFT_OUT:
            continue
        inner = get_named_type(field.type)
        if is_leaf_type(inner):
            yield name
        elif depth > 0 and (pages or not inner.name.endswith("Connection")):
            deeper = depth if name == "nodes" else depth - 1
            words = select_everything(schema, inner.name, depth=deeper, pages=pages)
            yield f"{name}{_page(field)} {{ {words} }}"


def _page(field: GraphQLField) -> str:
    return PAGE if "first" in field.args else ""
