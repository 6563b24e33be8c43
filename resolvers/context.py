"""What every resolver sees: who calls, and the parts of the product."""

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import strawberry

from resolvers.parts import Parts
from sidestage.devices.model import Principal

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Context:
    """The caller of one operation, or of a group of equal subscriptions."""

    principal: Principal
    parts: Parts
    reached: frozenset[str] = frozenset()
    """Each `Type.field` the operation selects: decides what a feed has to follow."""


Info: TypeAlias = strawberry.Info[Context, None]


def given(value: Given | None) -> Given | None:
    """Return the argument, or None when the caller left it out."""
    return None if value is strawberry.UNSET else value
