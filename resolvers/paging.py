"""Relay connections over lists in memory: pages, and cursors that name a place.

A cursor is the order key and id of its row (keyset), so rows that come and go move no
page. It names its list and order; another list's cursor is refused.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar

import strawberry

from resolvers.content import plain
from resolvers.context import given
from sidestage.errors import BadUserInput

PAGE_DEFAULT: Final = 50
PAGE_LIMIT: Final = 100
"""More rows in one answer would hold the loop for longer than a frame."""
CURSOR_LIMIT_CHARACTERS: Final = 2048
"""Ours hold one name at most; a longer one was made up."""

Node = TypeVar("Node")
Key: TypeAlias = tuple[str, str]
"""An order key that sorts as text, and the id that makes it unique."""

First: TypeAlias = Annotated[
    int | None,
    strawberry.argument(
        description="How many, from the start of the list or `after`; 1 to 100."
    ),
]
After: TypeAlias = Annotated[
    str | None, strawberry.argument(description="Only what follows this cursor.")
]
Last: TypeAlias = Annotated[
    int | None,
    strawberry.argument(
        description="How many, from the end of the list or `before`; not with `first`."
    ),
]
Before: TypeAlias = Annotated[
    str | None, strawberry.argument(description="Only what precedes this cursor.")
]


@strawberry.type(description="Where a page lies in its list.")
class PageInfo:
    """Where a page lies in its list."""

    has_next_page: bool = plain("Whether more follows this page.")
    has_previous_page: bool = plain("Whether something precedes this page.")
    start_cursor: str | None = plain("The cursor of the first row, if there is one.")
    end_cursor: str | None = plain("The cursor of the last row, if there is one.")


@strawberry.type(description="A row and its place in the list.")
class Edge(Generic[Node]):
    """A row and its place in the list."""

    cursor: str = plain("The row's place: give it to `after` or `before`.")
    node: Node = plain("The row.")


@strawberry.type(description="A page of a list.")
class Connection(Generic[Node]):
    """A page of a list."""

    edges: list[Edge[Node]] = plain("The rows with their cursors.")
    nodes: list[Node] = plain("The rows alone.")
    page_info: PageInfo = plain("Where the page lies in the list.")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A checked wish for one page."""

    size: int
    backwards: bool
    after: str | None
    before: str | None

    @classmethod
    def of(
        cls, first: int | None, after: str | None, last: int | None, before: str | None
    ) -> "PageRequest":
        """Check the four arguments; raise `BadUserInput` for what makes no sense."""
        first, last, after, before = (
            given(first),
            given(last),
            given(after),
            given(before),
        )
        if first is not None and last is not None:
            raise BadUserInput("Give first or last, not both.")
        size = first if first is not None else last
        if size is not None and not 1 <= size <= PAGE_LIMIT:
            raise BadUserInput(f"first and last must be from 1 to {PAGE_LIMIT}.")
        for cursor in (after, before):
            if cursor is not None and len(cursor) > CURSOR_LIMIT_CHARACTERS:
                raise BadUserInput("That is not a cursor of this list.")
        return cls(size or PAGE_DEFAULT, last is not None, after, before)


@dataclass(frozen=True, slots=True)
class Row(Generic[Node]):
    """An edge: *cursor* and *node*."""

    cursor: str
    node: Node


@dataclass(frozen=True, slots=True)
class Page(Generic[Node]):
    """The rows of a page, with what the schema's connection shows of them."""

    nodes: tuple[Node, ...]
    cursor_of: Callable[[Node], str]
    has_next_page: bool
    has_previous_page: bool

    @property
    def edges(self) -> list[Row[Node]]:
        """The rows with their cursors, made only when they are asked for."""
        return [Row(self.cursor_of(node), node) for node in self.nodes]

    @property
    def page_info(self) -> "Page[Node]":
        """The page itself knows where it lies."""
        return self

    @property
    def start_cursor(self) -> str | None:
        """The cursor of the first row."""
        return self.cursor_of(self.nodes[0]) if self.nodes else None

    @property
    def end_cursor(self) -> str | None:
        """The cursor of the last row."""
        return self.cursor_of(self.nodes[-1]) if self.nodes else None


@dataclass(frozen=True, slots=True)
class Order(Generic[Node]):
    """How a list is ordered, and the name its cursors carry."""

    name: str
    key: Callable[[Node], Key]
    descending: bool = False

    def write_cursor(self, node: Node) -> str:
        """Return the cursor of *node* in this order."""
        text = json.dumps([self.name, *self.key(node)], separators=(",", ":"))
        return urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def read_cursor(self, cursor: str) -> Key:
        """Return the key that *cursor* names; raise `BadUserInput` if foreign."""
        try:
            raw = urlsafe_b64decode((cursor + "=" * (-len(cursor) % 4)).encode("ascii"))
            name, key, id_ = json.loads(raw)
        except (ValueError, TypeError, RecursionError) as error:
            raise BadUserInput("That is not a cursor of this list.") from error
        if name != self.name or not isinstance(key, str) or not isinstance(id_, str):
            raise BadUserInput("That is not a cursor of this list.")
        return key, id_


def page_of(
    values: Sequence[Node], order: Order[Node], request: PageRequest
) -> Page[Node]:
    """Return the page of *values* that *request* names."""
    rows = sorted(values, key=order.key, reverse=order.descending)
    start = 0 if request.after is None else _place(rows, order, request.after, 1)
    end = len(rows) if request.before is None else _place(rows, order, request.before)
    end = max(start, end)
    if request.backwards:
        chosen = rows[max(start, end - request.size) : end]
        start = max(start, end - request.size)
    else:
        chosen = rows[start : min(end, start + request.size)]
    return Page(
        tuple(chosen),
        order.write_cursor,
        has_next_page=start + len(chosen) < len(rows),
        has_previous_page=start > 0,
    )


def _place(rows: Sequence[Any], order: Order[Any], cursor: str, behind: int = 0) -> int:
    """Return where the cursor's row stands or would stand; *behind*: after it."""
    key = order.read_cursor(cursor)
    keys: Any = _Backwards(rows) if order.descending else rows
    find = bisect_right if bool(behind) != order.descending else bisect_left
    place = find(keys, key, key=order.key)
    return len(rows) - place if order.descending else place


class _Backwards(Sequence[Any]):
    """A descending list read from its end, so that bisection sees it ascending."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 -- as Sequence has it
        return self._rows[len(self._rows) - 1 - index]
