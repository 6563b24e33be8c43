"""What an operation costs: its fields, times the rows they are asked of."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLNamedType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    get_named_type,
    get_nullable_type,
    is_list_type,
)

from resolvers.paging import PAGE_DEFAULT, PAGE_LIMIT

LIST_ROWS: Final = 10
"""What a list without a page size is taken to hold: templates, branches, counts."""
INTROSPECTION: Final = 2000
"""The whole schema, which takes as long as a page of rows with every field."""
KNOWN_COSTS: Final = 64
"""Page sizes for which an operation's cost is remembered."""
SIZE_ARGUMENTS: Final = ("first", "last", "ids")


class CostPlan:
    """The cost of one operation, by the values of the variables that decide it."""

    def __init__(
        self,
        schema: GraphQLSchema,
        operation: OperationDefinitionNode,
        fragments: Mapping[str, FragmentDefinitionNode],
    ) -> None:
        self._schema = schema
        self._operation = operation
        self._fragments = fragments
        self._variables = frozenset(_size_variables(operation, fragments))
        self._known: OrderedDict[tuple[object, ...], int] = OrderedDict()

    def of(self, variables: Mapping[str, Any]) -> int:
        """Return what the operation costs with these *variables*."""
        sizes = {name: _size(variables.get(name)) for name in self._variables}
        key = tuple(sizes.values())
        if key not in self._known:
            root = self._schema.get_root_type(self._operation.operation)
            assert root is not None, "validation knows every root"
            count = _Count(self._schema, self._fragments, sizes)
            self._known[key] = count.of(root, self._operation.selection_set)
            if len(self._known) > KNOWN_COSTS:
                self._known.popitem(last=False)
        return self._known[key]


def _size(value: object) -> int:
    """Return how many rows a page size or a list of ids asks for.

    What is no valid size costs as if it were the largest: it fails soon anyway.
    """
    if value is None:
        return PAGE_DEFAULT
    if isinstance(value, list):
        return len(value)
    if isinstance(value, int):
        return min(max(value, 1), PAGE_LIMIT)
    return PAGE_LIMIT


def _size_variables(
    operation: OperationDefinitionNode,
    fragments: Mapping[str, FragmentDefinitionNode],
) -> list[str]:
    names: list[str] = []
    stack = [operation.selection_set]
    stack.extend(fragment.selection_set for fragment in fragments.values())
    while stack:
        for node in stack.pop().selections:
            if isinstance(node, FieldNode):
                names.extend(
                    argument.value.name.value
                    for argument in node.arguments or ()
                    if argument.name.value in SIZE_ARGUMENTS
                    and isinstance(argument.value, VariableNode)
                )
            inner = getattr(node, "selection_set", None)
            if inner is not None:
                stack.append(inner)
    return names


class _Count:
    def __init__(
        self,
        schema: GraphQLSchema,
        fragments: Mapping[str, FragmentDefinitionNode],
        sizes: Mapping[str, int],
    ) -> None:
        self._schema = schema
        self._fragments = fragments
        self._sizes = sizes
        # A fragment spread twice in a fragment spread twice … is counted once each.
        self._of_fragments: dict[str, int] = {}

    def of(self, parent: GraphQLNamedType, selections: SelectionSetNode) -> int:
        total = 0
        for node in selections.selections:
            if isinstance(node, FieldNode):
                total += self._of_field(parent, node)
            elif isinstance(node, InlineFragmentNode):
                on = node.type_condition
                inner = self._schema.type_map[on.name.value] if on else parent
                total += self.of(inner, node.selection_set)
            elif isinstance(node, FragmentSpreadNode):
                total += self._of_fragment(node.name.value)
        return total

    def _of_fragment(self, name: str) -> int:
        if name not in self._of_fragments:
            fragment = self._fragments[name]
            on = self._schema.type_map[fragment.type_condition.name.value]
            self._of_fragments[name] = self.of(on, fragment.selection_set)
        return self._of_fragments[name]

    def _of_field(self, parent: GraphQLNamedType, node: FieldNode) -> int:
        name = node.name.value
        if name == "__schema":
            return INTROSPECTION
        if node.selection_set is None or name.startswith("__"):
            return 1
        definition: Any = parent
        type_ = definition.fields[name].type
        inner = self.of(get_named_type(type_), node.selection_set)
        return 1 + self._rows(parent, node, type_) * inner

    def _rows(self, parent: GraphQLNamedType, node: FieldNode, type_: Any) -> int:  # noqa: ANN401 -- any output type
        for argument in node.arguments or ():
            if argument.name.value in SIZE_ARGUMENTS:
                return self._asked(argument.value)
        if get_named_type(type_).name.endswith("Connection"):
            return PAGE_DEFAULT
        # A connection's own lists were counted with the connection.
        is_page = parent.name.endswith("Connection") and node.name.value != "branches"
        return (
            LIST_ROWS if is_list_type(get_nullable_type(type_)) and not is_page else 1
        )

    def _asked(self, value: object) -> int:
        if isinstance(value, VariableNode):
            return self._sizes[value.name.value]
        if isinstance(value, IntValueNode):
            return _size(int(value.value))
        if isinstance(value, ListValueNode):
            return max(1, len(value.values))
        return PAGE_DEFAULT
