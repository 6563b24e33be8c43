"""Which subscriptions are the same: the key of a group, and what is a member's own."""

from collections.abc import Hashable
from dataclasses import replace

import orjson
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    StringValueNode,
    ValueNode,
    VariableNode,
)

from api.documents import Operation
from api.errors import shown_error
from api.operations import Admitted, Request, refusal
from resolvers.scalars import parse_feed_cursor
from sidestage.errors import BadUserInput


def split(admitted: Admitted) -> tuple[Hashable, str | None, Admitted]:
    """Return the group's key, the member's own cursor, and what the group runs.

    Raises `Refused` for a cursor that no feed can have written.
    """
    operation, request = admitted.operation, admitted.request
    node = _after_argument(operation)
    variables = {
        definition.variable.name.value: request.variables[
            definition.variable.name.value
        ]
        for definition in operation.node.variable_definitions or ()
        if definition.variable.name.value in request.variables
    }
    after: object = None
    if isinstance(node, VariableNode) and node.name.value in variables:
        after = variables[node.name.value]
        # An empty cursor is none, and also fits a variable that must not be null.
        variables[node.name.value] = ""
    elif isinstance(node, StringValueNode):
        after = node.value
    cursor = None if after is None else _checked(after)
    principal = admitted.principal
    if not operation.is_device_dependent:
        principal = replace(principal, actor="feed", device_id=None, token_id=None)
    key = (
        request.query,
        operation.name,
        orjson.dumps(variables, option=orjson.OPT_SORT_KEYS),
        principal.scopes,
        principal.content,
        principal.device_id,
    )
    shared = Request(request.query, variables, request.operation_name)
    return key, cursor, Admitted(operation, shared, principal)


def _checked(after: object) -> str | None:
    try:
        return parse_feed_cursor(after) or None
    except BadUserInput as error:
        raise refusal([shown_error(error)]) from error


def _after_argument(operation: Operation) -> ValueNode | None:
    """Return the node given as `after` to the feed's one root field."""
    fragments = {
        node.name.value: node
        for node in operation.document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    stack = list(operation.node.selection_set.selections)
    while stack:
        node = stack.pop(0)
        if isinstance(node, FieldNode):
            values = (a.value for a in node.arguments or () if a.name.value == "after")
            return next(values, None)
        if isinstance(node, InlineFragmentNode):
            stack = [*node.selection_set.selections, *stack]
        elif isinstance(node, FragmentSpreadNode):
            fragment = fragments[node.name.value]
            stack = [*fragment.selection_set.selections, *stack]
    return None
