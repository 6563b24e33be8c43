"""An executor that reads flat rows without the per-field machinery.

graphql-core spends some 3.5 µs on every field of every row: resolve info, arguments,
completion. For a leaf that is just an attribute of its source none of it is needed. So
each selection is compiled once: its plain leaves are read together and checked by type,
and everything else goes the stock way. Whatever is not exactly as expected (a null in a
non-null place, another type, a serializer that raises) is run again by the stock
executor, which then reports the error as the specification says
(https://spec.graphql.org/October2021/#sec-Executing-Selection-Sets).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, cast

from graphql import (
    GraphQLField,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLResolveInfo,
    get_nullable_type,
    is_leaf_type,
)
from graphql.execution import Executor
from graphql.pyutils import Path, Undefined
from strawberry.types.field import StrawberryField

from resolvers.context import Context

FAST_LEAVES_AT_LEAST: Final = 2
"""With fewer the stock executor is as fast."""
SHAPES_LIMIT: Final = 1_024
"""Selections remembered; all are forgotten beyond it. Honest apps have some dozens."""
SELECTIONS_LIMIT: Final = 64
"""Of one running operation: a subscription collects its root anew with each event."""
ROWS_LIMIT: Final = 4_096
"""Rows whose leaves are remembered, some 1 KB each; all are forgotten beyond it."""
REMEMBERED_TYPES: Final = frozenset({"OutsideSession", "Terminal", "Project"})
"""Rows of live lists: frozen values that stay until they change, asked for again and
again. Others come and go with their operation, and would only be kept from going."""
_PLAIN: Final[Mapping[str, type]] = {"String": str, "ID": str, "Boolean": bool}
"""Scalars whose value of that very type is written as it is."""

_Read = Callable[[Any], Any]
_Details = Any
"""graphql-core's list of one response key's field nodes."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field whose value is an attribute of its source, or a function of it alone."""

    key: str
    read: _Read
    plain: type | None
    """Its values are written as they are if they have this very type."""
    nullable: bool
    write: _Read


@dataclass(frozen=True, slots=True)
class Shape:
    """A selection, compiled: keys in their order, and who takes care of each."""

    type_name: str
    keys: tuple[str, ...]
    leaves: tuple[Leaf, ...]
    others: tuple[str, ...]


class _Unexpected(Exception):
    """A value that only the stock executor can judge."""


class ProjectingExecutor(Executor[Context]):
    """graphql-core's executor, with flat fields read ahead. Results are equal.

    Sources are values: an attribute that must be awaited is a field with a resolver.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 -- passed on
        super().__init__(*arguments, **named)
        self._known: dict[int, tuple[dict[str, _Details], Shape | None]] = {}

    def execute_fields(
        self,
        parent_type: GraphQLObjectType,
        source_value: Any,  # noqa: ANN401 -- as graphql-core has it
        path: Path | None,
        grouped_field_set: dict[str, _Details],
        position_context: Any,  # noqa: ANN401 -- as graphql-core has it
    ) -> Any:  # noqa: ANN401 -- as graphql-core has it
        """Execute a selection: its plain leaves at once, the rest as ever."""
        stock = super().execute_fields
        shape = self._shape(parent_type, grouped_field_set)
        try:
            values = None if shape is None else _read(shape, source_value)
        except Exception:  # noqa: BLE001 -- the stock executor raises it properly
            values = None
        if shape is None or values is None:
            return stock(
                parent_type, source_value, path, grouped_field_set, position_context
            )
        if not shape.others:
            return values
        rest = {key: grouped_field_set[key] for key in shape.others}
        told = stock(parent_type, source_value, path, rest, position_context)
        if self.is_awaitable(told):
            return _merge_later(shape, values, told)
        return _merge(shape, values, cast("dict[str, Any]", told))

    def complete_iterable_value(
        self,
        item_type: GraphQLOutputType,
        field_details_list: _Details,
        info: GraphQLResolveInfo[Context],
        path: Path,
        items: Iterable[Any],
        position_context: Any,  # noqa: ANN401 -- as graphql-core has it
    ) -> Any:  # noqa: ANN401 -- as graphql-core has it
        """Complete a list: rows that are all plain leaves at once, others as ever."""
        rows = self._rows_at_once(item_type, field_details_list, info, path, items)
        if rows is not None:
            return rows
        return super().complete_iterable_value(
            item_type, field_details_list, info, path, items, position_context
        )

    def _rows_at_once(
        self,
        item_type: GraphQLOutputType,
        details: _Details,
        info: GraphQLResolveInfo[Context],
        path: Path,
        items: Iterable[Any],
    ) -> list[dict[str, Any]] | None:
        row_type = get_nullable_type(item_type)
        # An iterator could not be read again by the stock executor.
        if not isinstance(items, list | tuple) or self.get_stream_usage(details, path):
            return None
        if not isinstance(row_type, GraphQLObjectType) or not row_type.is_type_of:
            return None
        fields, deferred, _ = self.collect_subfields(row_type, details)
        shape = None if deferred else self._shape(row_type, fields)
        if shape is None or shape.others:
            return None
        is_row = row_type.is_type_of
        try:
            # Also sees to it that none is null, an error, or to be awaited.
            if not all(is_row(item, info) is True for item in items):
                return None
            return [_read(shape, item) for item in items]
        except Exception:  # noqa: BLE001 -- the stock executor raises it properly
            return None

    def _shape(
        self, parent_type: GraphQLObjectType, fields: dict[str, _Details]
    ) -> Shape | None:
        # One selection of a list is the same object for all its rows.
        found = self._known.get(id(fields))
        if found is None or found[0] is not fields:
            shape = None if self.middleware_manager else _compile(parent_type, fields)
            if len(self._known) >= SELECTIONS_LIMIT:
                self._known.clear()
            self._known[id(fields)] = found = (fields, shape)
        return found[1]


_shapes: dict[tuple[Any, ...], Shape | None] = {}


def _compile(
    parent_type: GraphQLObjectType, fields: Mapping[str, _Details]
) -> Shape | None:
    names = tuple((key, details[0].node.name.value) for key, details in fields.items())
    signature = (parent_type, names)
    if signature not in _shapes:
        if len(_shapes) >= SHAPES_LIMIT:
            _shapes.clear()
        _shapes[signature] = _make_shape(parent_type, names)
    return _shapes[signature]


def _make_shape(
    parent_type: GraphQLObjectType, names: tuple[tuple[str, str], ...]
) -> Shape | None:
    found = {key: _find_leaf(parent_type, key, name) for key, name in names}
    leaves = tuple(leaf for leaf in found.values() if leaf is not None)
    if len(leaves) < FAST_LEAVES_AT_LEAST:
        return None
    others = tuple(key for key, leaf in found.items() if leaf is None)
    return Shape(parent_type.name, tuple(found), leaves, others)


def _find_leaf(parent_type: GraphQLObjectType, key: str, name: str) -> Leaf | None:
    if name == "__typename":
        return Leaf(key, lambda _: parent_type.name, str, nullable=False, write=str)
    field = parent_type.fields.get(name)
    if field is None:
        return None
    is_required = isinstance(field.type, GraphQLNonNull)
    leaf_type: Any = field.type.of_type if is_required else field.type
    read = _find_reader(field)
    if read is None or not is_leaf_type(leaf_type):
        return None
    plain = _PLAIN.get(leaf_type.name)
    return Leaf(key, read, plain, not is_required, _writer(leaf_type))


def _writer(leaf_type: Any) -> _Read:  # noqa: ANN401 -- either kind of leaf
    write: _Read = leaf_type.coerce_output_value
    return write


def _find_reader(field: GraphQLField) -> _Read | None:
    """Return what reads the field from its source; None if more than that is needed."""
    ours = field.extensions.get("strawberry-definition")
    if not isinstance(ours, StrawberryField) or ours.extensions:
        return None
    if ours.permission_classes:
        return None
    resolver = ours.base_resolver
    if resolver is None:
        return attrgetter(ours.python_name)
    is_pure = (
        resolver.parent_parameter is not None
        and len(resolver.signature.parameters) == 1
        and not resolver.is_async
    )
    # Not a class method: it has a parent and nothing else.
    return cast("_Read", resolver.wrapped_func) if is_pure else None


_rows: dict[tuple[int, int], tuple[Shape, Any, dict[str, Any]]] = {}


def _read(shape: Shape, source: Any) -> dict[str, Any]:  # noqa: ANN401 -- any row
    """Return the leaves of *source*; a row that cannot change is read once."""
    place = (id(shape), id(source))
    known = _rows.get(place)
    # Both are held here, so an id that is found again is theirs.
    if known is not None:
        return known[2].copy()
    values = _project(shape, source)
    if shape.type_name in REMEMBERED_TYPES:
        if len(_rows) >= ROWS_LIMIT:
            _rows.clear()
        _rows[place] = (shape, source, values)
        return values.copy()
    return values


def _project(shape: Shape, source: Any) -> dict[str, Any]:  # noqa: ANN401 -- any row
    values: dict[str, Any] = dict.fromkeys(shape.keys)
    for leaf in shape.leaves:
        value = leaf.read(source)
        if type(value) is leaf.plain:
            values[leaf.key] = value
        elif value is not None:
            values[leaf.key] = _written(leaf, value)
        elif not leaf.nullable:
            raise _Unexpected
    return values


def _written(leaf: Leaf, value: Any) -> Any:  # noqa: ANN401 -- any leaf
    if leaf.plain is not None:
        raise _Unexpected
    written = leaf.write(value)
    if written is None or written is Undefined:
        raise _Unexpected
    return written


def _merge(
    shape: Shape, values: dict[str, Any], told: Mapping[str, Any]
) -> dict[str, Any]:
    for key in shape.others:
        if key in told:
            values[key] = told[key]
        else:
            del values[key]
    return values


async def _merge_later(
    shape: Shape,
    values: dict[str, Any],
    told: Any,  # noqa: ANN401 -- an awaitable
) -> dict[str, Any]:
    return _merge(shape, values, await told)
