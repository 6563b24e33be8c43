"""What every resolver sees: who calls, and the parts of the product."""

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import strawberry

from resolvers.parts import Parts
from sidestage.devices.model import ContentMode, Principal
from sidestage.errors import PermissionDenied

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Context:
    """The caller of one operation, or of a group of equal subscriptions."""

    principal: Principal
    parts: Parts
    reached: frozenset[str] = frozenset()
    """Each `Type.field` the operation selects: decides what a feed has to follow."""


Info: TypeAlias = strawberry.Info[Context, None]


def check_clear(context: Context) -> None:
    """Refuse an order or filter by content to a caller whose content is sealed.

    It would tell, one page or guess at a time, what is withheld.
    """
    if context.principal.content is ContentMode.SEALED:
        raise PermissionDenied("This would tell names that are sealed for this device.")


def given(value: Given | None) -> Given | None:
    """Return the argument, or None when the caller left it out."""
    return None if value is strawberry.UNSET else value
