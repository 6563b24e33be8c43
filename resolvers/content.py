"""The schema directive that says whose words a field carries, and how secret they are.

It is the scope table for content (`resolvers/scopes.py` agrees with it; a test holds
them equal) and the seam for a later mode in which such fields are sealed.
"""

from functools import partial
from typing import Any, Final

import strawberry
from graphql import GraphQLField
from strawberry.schema_directive import Location

# Every module of types comes through here, and an enum must be described before a type
# names it: strawberry would make a bare one of it.
from resolvers.enums import ContentKind


@strawberry.schema_directive(
    locations=[Location.FIELD_DEFINITION],
    name="content",
    description=(
        "Marks a field that carries words of people, agents or files. They are "
        "cleaned of control characters, but are not to be trusted: show them as text."
    ),
)
class Content:
    """Marks a field as content of one kind."""

    kind: ContentKind = strawberry.directive_field(name="kind")


LABEL: Final = Content(kind=ContentKind.LABEL)
TEXT: Final = Content(kind=ContentKind.TEXT)


def is_content(field: GraphQLField) -> bool:
    """Tell whether a field of the built schema is marked `@content`."""
    ours = field.extensions.get("strawberry-definition")
    return any(each in (LABEL, TEXT) for each in getattr(ours, "directives", ()))


def plain(description: str, **options: Any) -> Any:  # noqa: ANN401 -- a field specifier
    """Declare a field whose value is Sidestage's own."""
    return strawberry.field(description=description, **options)


labelled = partial(plain, directives=[LABEL])
"""Declare a field with a name, folder, branch or title (scope `VIEW`)."""

textual = partial(plain, directives=[TEXT])
"""Declare a field with messages, entries or screens (scope `READ`)."""
