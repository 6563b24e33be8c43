"""Runs operations: the one door to the schema for every transport.

`admit` says whether this caller may run this operation now; `execute` runs a query or
mutation; `begin` opens a subscription, which `api/broadcast.py` shares among clients.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from graphql import ExecutionResult, OperationType
from graphql.execution import (
    Executor,
    create_source_event_stream,
    execute_root_selection_set,
    execute_subscription_event,
)
from strawberry.execution import optimized_is_awaitable

from api.documents import ANONYMOUS_NAMES, Document, Documents, Operation
from api.errors import masked, shown_error, shown_errors
from api.limits import Limits
from api.projection import ProjectingExecutor
from api.rates import RateLimiter
from resolvers.context import Context
from resolvers.feeds import FeedStream, Message
from resolvers.parts import Parts
from resolvers.schema import core_schema, sealed_schema
from sidestage.devices.model import ContentMode, Principal, PrincipalKind
from sidestage.errors import (
    BadUserInput,
    ErrorCode,
    OperationTooLarge,
    PermissionDenied,
    SidestageError,
    Unauthenticated,
)

log = logging.getLogger(__name__)

EXECUTOR: Final[type[Executor[Context]]] = ProjectingExecutor


@dataclass(frozen=True, slots=True)
class Request:
    """A GraphQL request, as every transport carries it."""

    query: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    operation_name: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: `data` and `errors`, or the errors of a request that never ran."""

    body: dict[str, Any]
    code: str | None = None
    """The code of the first error of a request that was not executed; else None."""

    @property
    def was_executed(self) -> bool:
        """Whether the operation ran, even if it had errors."""
        return self.code is None

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The errors as the response shows them."""
        errors: list[dict[str, Any]] = self.body.get("errors", [])
        return errors


class Refused(Exception):
    """A request that does not run; *answer* says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.code)
        self.answer = answer


def refusal(errors: list[dict[str, Any]]) -> Refused:
    """Return the refusal that shows *errors*."""
    return Refused(Answer({"errors": errors}, errors[0]["extensions"]["code"]))


@dataclass(frozen=True, slots=True)
class Admitted:
    """An operation that this caller may run now."""

    operation: Operation
    request: Request
    principal: Principal


class Operations:
    """The schema with its limits, ready to run what comes in."""

    def __init__(
        self,
        parts: Parts,
        limits: Limits,
        *,
        rates: RateLimiter,
        anonymous_rates: RateLimiter,
    ) -> None:
        self.parts = parts
        self.limits = limits
        self._schema = core_schema()
        self._documents = Documents(self._schema, limits)
        self._rates = rates
        self._anonymous_rates = anonymous_rates

    def admit(self, request: Request, principal: Principal) -> Admitted:
        """Return the operation to run; raise `Refused` if it may not run."""
        try:
            return self._admit(request, principal)
        except SidestageError as error:
            raise refusal([shown_error(error)]) from error

    def _admit(self, request: Request, principal: Principal) -> Admitted:
        is_stranger = principal.kind is PrincipalKind.ANONYMOUS
        if is_stranger:
            self._anonymous_rates.spend(principal.address or "", 1)
        elif not self._documents.is_known(request.query):
            self._spend(principal, self.limits.new_document_points)
        document = self._documents.read(request.query, remember=not is_stranger)
        if is_stranger:
            _check_anonymous(document)
        if document.errors:
            raise refusal(_untold(document) if is_stranger else document.errors)
        operation = _chosen(document, request.operation_name)
        _check_scopes(operation, principal)
        cost = operation.cost.of(request.variables)
        if cost > self.limits.cost:
            raise OperationTooLarge(
                f"The operation costs {cost} of {self.limits.cost}: ask for fewer "
                "fields or smaller pages."
            )
        if not is_stranger:
            self._spend(principal, cost)
        return Admitted(operation, request, principal)

    def _spend(self, principal: Principal, points: float) -> None:
        self._rates.spend(principal.token_id or principal.actor, points)

    async def execute(self, admitted: Admitted) -> Answer:
        """Run a query or mutation and return its response."""
        executor = self.executor_for(admitted, admitted.principal)
        if isinstance(executor, Refused):
            return executor.answer
        try:
            async with asyncio.timeout(self.limits.execution_seconds):
                result = execute_root_selection_set(executor)
                if not isinstance(result, ExecutionResult):
                    result = await result
        except TimeoutError as error:
            return Answer({"data": None, "errors": [masked(error)]})
        return Answer(_body(result))

    def executor_for(
        self, admitted: Admitted, principal: Principal
    ) -> Executor[Context] | Refused:
        """Return what runs the operation; a refusal if its variables do not fit."""
        operation = admitted.operation
        context = Context(principal, self.parts, operation.reached)
        is_sealed = principal.content is ContentMode.SEALED
        executor = EXECUTOR.build(
            sealed_schema() if is_sealed else self._schema,
            operation.document,
            context_value=context,
            raw_variable_values=dict(admitted.request.variables),
            operation_name=operation.name,
            is_awaitable=cast("Any", optimized_is_awaitable),
        )
        if isinstance(executor, list):
            return refusal(shown_errors(executor, code=ErrorCode.BAD_USER_INPUT))
        return executor

    async def begin(
        self, admitted: Admitted, principal: Principal
    ) -> tuple[Executor[Context], FeedStream]:
        """Open a subscription; raise `Refused` if it does not open."""
        executor = self.executor_for(admitted, principal)
        if isinstance(executor, Refused):
            raise executor
        stream: Any = create_source_event_stream(executor)
        if optimized_is_awaitable(stream):
            stream = await stream
        if isinstance(stream, ExecutionResult):
            raise refusal(shown_errors(stream.errors or ()))
        assert isinstance(stream, FeedStream), "every subscription is a feed"
        return executor, stream


async def run_event(
    executor: Executor[Context], message: Message[Any]
) -> dict[str, Any]:
    """Return what the subscription's selection shows of *message*."""
    result = execute_subscription_event(executor.build_per_event_executor(message))
    if not isinstance(result, ExecutionResult):
        result = await result
    return _body(result)


def _body(result: ExecutionResult) -> dict[str, Any]:
    if not result.errors:
        return {"data": result.data}
    return {"data": result.data, "errors": shown_errors(result.errors)}


def _chosen(document: Document, name: str | None) -> Operation:
    operation = document.find_operation(name)
    if operation is not None:
        return operation
    if name is None:
        raise BadUserInput("Give operationName: the document has several operations.")
    raise BadUserInput("The document has no operation of that name.")


def _check_anonymous(document: Document) -> None:
    """Refuse before validation, whose messages would tell the schema to a stranger."""
    if not document.names <= ANONYMOUS_NAMES:
        raise Unauthenticated("A token is needed for this.")


def _untold(document: Document) -> list[dict[str, Any]]:
    """Return the errors without their sentences, which would tell the schema."""
    code = document.errors[0]["extensions"]["code"]
    return [{"message": "The document is not valid.", "extensions": {"code": code}}]


def _check_scopes(operation: Operation, principal: Principal) -> None:
    if principal.kind is PrincipalKind.ANONYMOUS:
        if not operation.is_anonymous:
            raise Unauthenticated("A token is needed for this.")
        return
    missing = sorted(operation.scopes - principal.scopes)
    if missing:
        raise PermissionDenied(
            f"This needs the scope {', '.join(missing)}, which the token lacks."
        )


def is_subscription(admitted: Admitted) -> bool:
    """Tell whether the operation streams."""
    return admitted.operation.type is OperationType.SUBSCRIPTION


def is_mutation(admitted: Admitted) -> bool:
    """Tell whether the operation changes something."""
    return admitted.operation.type is OperationType.MUTATION
