"""What a GraphQL document asks for, found out once and remembered.

A document is parsed, held to the limits, validated, and walked: which fields it
reaches (and thus which scopes it needs), and what it costs.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLNamedType,
    GraphQLSchema,
    GraphQLSyntaxError,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    get_named_type,
    parse,
    validate,
)

from api.cost import CostPlan
from api.errors import shown_errors
from api.limits import Limits
from resolvers.scopes import ANONYMOUS_FIELDS, DEVICE_DEPENDENT_FIELDS, SCOPES
from sidestage.devices.model import Scope
from sidestage.errors import ErrorCode

DOCUMENTS_LIMIT: Final = 500
"""Documents remembered: every screen of several apps."""
SCREENS: Final = frozenset(
    {"Terminal.screen", "Terminal.styledScreen", "Terminal.search"}
)
"""Asked of the terminal host, for each reader anew."""
REMEMBERED_LIMIT_CHARACTERS: Final = 16_384
"""A longer document is worked out each time. Honest ones have some 4,000 at most; a
tree weighs up to fifty times its text, so 500 of them stay below 400 MB at worst."""
VALIDATION_ERRORS_LIMIT: Final = 20
ANONYMOUS_NAMES: Final = frozenset(
    {name.partition(".")[2] for name in ANONYMOUS_FIELDS} | {"__typename"}
)


@dataclass(slots=True)
class Operation:
    """One operation of a document, and what it takes to run it."""

    document: DocumentNode
    node: OperationDefinitionNode
    reached: frozenset[str]
    """Each `Type.field` it selects."""
    introspects: bool
    cost: CostPlan
    scopes: frozenset[Scope] = field(init=False)
    is_anonymous: bool = field(init=False)
    """Whether a caller without a token may run it."""
    is_device_dependent: bool = field(init=False)

    def __post_init__(self) -> None:
        """Look the reached fields up in the tables."""
        self.scopes = frozenset(SCOPES[name] for name in self.reached)
        self.is_anonymous = not self.introspects and self.reached <= ANONYMOUS_FIELDS
        self.is_device_dependent = bool(self.reached & DEVICE_DEPENDENT_FIELDS)

    @property
    def type(self) -> OperationType:
        """Query, mutation or subscription."""
        return self.node.operation

    @property
    def name(self) -> str | None:
        """The operation's name, if it has one."""
        return self.node.name.value if self.node.name else None


@dataclass(slots=True)
class Document:
    """A document's operations, or why it has none."""

    operations: tuple[Operation, ...] = ()
    errors: list[dict[str, Any]] = field(default_factory=list)
    """As the response shows them; then nothing runs."""
    names: frozenset[str] = frozenset()
    """Every field name in the document: what a caller without a token may not hide."""

    def find_operation(self, name: str | None) -> Operation | None:
        """Return the operation to run; None if the name does not tell."""
        if name is None:
            return self.operations[0] if len(self.operations) == 1 else None
        return next((each for each in self.operations if each.name == name), None)


class Documents:
    """Works documents out, and remembers the latest ones."""

    def __init__(self, schema: GraphQLSchema, limits: Limits) -> None:
        self._schema = schema
        self._limits = limits
        self._known: OrderedDict[str, Document] = OrderedDict()

    def read(self, query: str, *, remember: bool = True) -> Document:
        """Return what *query* asks for; errors are in the result, never raised.

        What a stranger sends is not to be remembered: it would push out the others'.
        """
        known = self._known.get(query)
        if known is not None:
            self._known.move_to_end(query)
            return known
        document = self._work_out(query)
        if remember and len(query) <= REMEMBERED_LIMIT_CHARACTERS:
            self._known[query] = document
            if len(self._known) > DOCUMENTS_LIMIT:
                self._known.popitem(last=False)
        return document

    def is_known(self, query: str) -> bool:
        """Tell whether *query* was worked out already."""
        return query in self._known

    def _work_out(self, query: str) -> Document:
        try:
            tree = parse(query, max_tokens=self._limits.tokens)
        except GraphQLSyntaxError as error:
            too_long = "Parsing aborted" in error.message
            code = (
                ErrorCode.OPERATION_TOO_LARGE
                if too_long
                else ErrorCode.GRAPHQL_PARSE_FAILED
            )
            return Document(errors=shown_errors([error], code=code))
        names = frozenset(_field_names(tree))
        # Before validation, whose time grows faster than the document.
        over = list(_over_the_limits(tree, self._limits))
        if over:
            errors = shown_errors(over, code=ErrorCode.OPERATION_TOO_LARGE)
            return Document(errors=errors, names=names)
        invalid = validate(self._schema, tree, max_errors=VALIDATION_ERRORS_LIMIT)
        if not invalid:
            operations = tuple(self._operations(tree))
            invalid = [
                error for each in operations for error in _misplaced_in_feed(each)
            ]
        if invalid:
            errors = shown_errors(invalid, code=ErrorCode.GRAPHQL_VALIDATION_FAILED)
            return Document(errors=errors, names=names)
        return Document(operations, names=names)

    def _operations(self, tree: DocumentNode) -> Iterator[Operation]:
        fragments = _fragments(tree)
        for node in tree.definitions:
            if isinstance(node, OperationDefinitionNode):
                root = self._schema.get_root_type(node.operation)
                assert root is not None, "validation knows every root"
                walk = _Walk(self._schema, fragments)
                walk.visit(root, node.selection_set)
                cost = CostPlan(self._schema, node, fragments)
                reached = frozenset(walk.reached)
                yield Operation(tree, node, reached, walk.introspects, cost)


def _fragments(tree: DocumentNode) -> dict[str, FragmentDefinitionNode]:
    return {
        node.name.value: node
        for node in tree.definitions
        if isinstance(node, FragmentDefinitionNode)
    }


class _Walk:
    """Collects each `Type.field` an operation reaches, through fragments too."""

    def __init__(
        self, schema: GraphQLSchema, fragments: Mapping[str, FragmentDefinitionNode]
    ) -> None:
        self._schema = schema
        self._fragments = fragments
        self._seen: set[str] = set()
        self.reached: set[str] = set()
        self.introspects = False

    def visit(self, parent: GraphQLNamedType, selections: SelectionSetNode) -> None:
        """Walk the selections made on *parent*."""
        for node in selections.selections:
            if isinstance(node, FieldNode):
                self._visit_field(parent, node)
            elif isinstance(node, InlineFragmentNode):
                on = node.type_condition
                inner = self._schema.type_map[on.name.value] if on else parent
                self.visit(inner, node.selection_set)
            elif isinstance(node, FragmentSpreadNode):
                self._visit_spread(node.name.value)

    def _visit_spread(self, name: str) -> None:
        if name in self._seen:
            return
        self._seen.add(name)
        fragment = self._fragments[name]
        on = self._schema.type_map[fragment.type_condition.name.value]
        self.visit(on, fragment.selection_set)

    def _visit_field(self, parent: GraphQLNamedType, node: FieldNode) -> None:
        name = node.name.value
        if name.startswith("__"):
            self.introspects = self.introspects or name != "__typename"
            return
        self.reached.add(f"{parent.name}.{name}")
        if node.selection_set:
            definition: Any = parent
            type_ = get_named_type(definition.fields[name].type)
            self.visit(type_, node.selection_set)


def _field_names(tree: DocumentNode) -> Iterator[str]:
    for selections, _depth in _selection_sets(tree):
        for node in selections.selections:
            if isinstance(node, FieldNode):
                yield node.name.value


def _selection_sets(tree: DocumentNode) -> Iterator[tuple[SelectionSetNode, int]]:
    """Yield each selection set with its depth in its own definition."""
    stack: list[tuple[SelectionSetNode, int]] = [
        (node.selection_set, 1)
        for node in tree.definitions
        if isinstance(node, OperationDefinitionNode | FragmentDefinitionNode)
    ]
    while stack:
        selections, depth = stack.pop()
        yield selections, depth
        for node in selections.selections:
            if isinstance(node, FieldNode) and node.selection_set:
                stack.append((node.selection_set, depth + 1))
            elif isinstance(node, InlineFragmentNode):
                stack.append((node.selection_set, depth))


def _over_the_limits(tree: DocumentNode, limits: Limits) -> Iterator[GraphQLError]:
    aliases = sum(
        isinstance(node, FieldNode) and node.alias is not None
        for selections, _depth in _selection_sets(tree)
        for node in selections.selections
    )
    if aliases > limits.aliases:
        yield GraphQLError(f"More than {limits.aliases} aliases.")
    if _like_named_pairs(tree) > limits.like_named_pairs:
        yield GraphQLError("Too many fields of the same name.")
    fragments = _fragments(tree)
    for node in tree.definitions:
        if isinstance(node, OperationDefinitionNode):
            depth = _depth(node.selection_set, fragments, {})
            most = (
                limits.introspection_depth if _is_introspection(node) else limits.depth
            )
            if depth > most:
                yield GraphQLError(f"Nested deeper than {most} levels.", node)


def _like_named_pairs(tree: DocumentNode) -> int:
    """Return how many pairs of fields validation may have to compare."""
    names = Counter(
        node.alias.value if node.alias else node.name.value
        for selections, _depth in _selection_sets(tree)
        for node in selections.selections
        if isinstance(node, FieldNode)
    )
    return sum(count * (count - 1) // 2 for count in names.values())


def _is_introspection(node: OperationDefinitionNode) -> bool:
    return all(
        isinstance(each, FieldNode) and each.name.value.startswith("__")
        for each in node.selection_set.selections
    )


def _depth(
    selections: SelectionSetNode,
    fragments: Mapping[str, FragmentDefinitionNode],
    known: dict[str, int],
) -> int:
    """Return the levels of fields below *selections*; a cycle counts nothing."""
    deepest = 1
    for node in selections.selections:
        if isinstance(node, FragmentSpreadNode):
            deepest = max(deepest, _fragment_depth(node.name.value, fragments, known))
        elif isinstance(node, InlineFragmentNode):
            deepest = max(deepest, _depth(node.selection_set, fragments, known))
        elif isinstance(node, FieldNode) and node.selection_set:
            deepest = max(deepest, 1 + _depth(node.selection_set, fragments, known))
    return deepest


def _fragment_depth(
    name: str,
    fragments: Mapping[str, FragmentDefinitionNode],
    known: dict[str, int],
) -> int:
    if name not in known:
        known[name] = 0  # a spread of itself ends here; validation reports it
        fragment = fragments.get(name)
        known[name] = (
            _depth(fragment.selection_set, fragments, known) if fragment else 0
        )
    return known[name]


def _misplaced_in_feed(operation: Operation) -> Iterator[GraphQLError]:
    """Yield an error for each list or screen selected under a feed."""
    if operation.type is not OperationType.SUBSCRIPTION:
        return
    for name in sorted(operation.reached):
        type_name = name.partition(".")[0]
        if type_name.endswith("Connection") or name in SCREENS:
            yield GraphQLError(
                f"{name} cannot be selected under a feed: query it, and let the feed "
                "tell you when.",
                operation.node,
            )
