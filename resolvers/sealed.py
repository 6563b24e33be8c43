"""The schema as callers with sealed content meet it: content fields hold nothing.

One mechanism for all of them: whatever is marked `@content` has its resolver replaced,
so that no value can reach a frame, however the field is selected. Null where that is
allowed, a placeholder where it is not.
"""

from collections.abc import Callable
from typing import Any, Final

from graphql import (
    GraphQLField,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
)

from resolvers.content import is_content

PLACEHOLDER: Final = "(sealed)"
"""For texts that must not be null."""


def seal_content(schema: GraphQLSchema) -> GraphQLSchema:
    """Take the content out of *schema*, which nobody else may use; return it."""
    for type_ in schema.type_map.values():
        if isinstance(type_, GraphQLObjectType) and not type_.name.startswith("__"):
            for field in type_.fields.values():
                if is_content(field):
                    field.resolve = _constant(field)
                    # Nobody may read the attribute past the resolver, either.
                    field.extensions = {}
    return schema


def _constant(field: GraphQLField) -> Callable[..., Any]:
    value = _withheld(field)

    def withhold(_source: object, _info: object, **_arguments: object) -> Any:  # noqa: ANN401 -- what the field's type takes
        return value

    return withhold


def _withheld(field: GraphQLField) -> object:
    if not isinstance(field.type, GraphQLNonNull):
        return None
    if isinstance(field.type.of_type, GraphQLList):
        return []
    return PLACEHOLDER
