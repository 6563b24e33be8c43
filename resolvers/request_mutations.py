"""Answering what a live session asks."""

from typing import Annotated, TypeAlias

import strawberry

from resolvers import user_errors as errors
from resolvers.agent_requests import AgentRequest
from resolvers.content import plain
from resolvers.context import Info
from resolvers.envelopes import EnvelopeInput, read_envelope
from resolvers.inputs import checked_id
from sidestage.devices.model import Scope
from sidestage.envelopes.envelope import Purpose
from sidestage.errors import PermissionDenied
from sidestage.requests import model


@strawberry.input(description="A device's sealed answer to a request.")
class AnswerRequestInput:
    """A device's sealed answer to a request."""

    request_id: strawberry.ID = strawberry.field(description="The request.")
    envelope: EnvelopeInput = strawberry.field(
        description=(
            "The answer, sealed for `request-answer`. Its `messageId` is what makes a "
            "retry safe: send the same envelope again after a lost connection."
        )
    )


@strawberry.type(description="The agent got the answer.")
class AnswerRequestPayload:
    """The agent got the answer."""

    request: model.AgentRequest = plain(
        "The request as it stands now.", graphql_type=AgentRequest
    )


AnswerRequestResult: TypeAlias = Annotated[
    AnswerRequestPayload
    | errors.InvalidInput
    | errors.RequestNotFound
    | errors.RequestSettled
    | errors.RequestKeyboardOnly
    | errors.RequestTimedOut
    | errors.RequestChanged
    | errors.SuggestionNotAllowed
    | errors.DeviceKeyRequired
    | errors.EnvelopeInvalid
    | errors.EnvelopeReplayed,
    strawberry.union("AnswerRequestResult", description="What became of the answer."),
]


async def answer_request(
    info: Info,
    input: Annotated[  # noqa: A002 -- the schema's name
        AnswerRequestInput, strawberry.argument(description="The answer.")
    ],
) -> AnswerRequestPayload:
    """Hand a device's answer to the agent; raises the errors of the union.

    A caller without a device's key is told that, whatever its scopes.
    """
    context = info.context
    actor = context.principal
    if actor.device_id is not None and not actor.may(Scope.ANSWER):
        raise PermissionDenied("This needs the scope ANSWER, which the token lacks.")
    envelope = await read_envelope(context, input.envelope, Purpose.REQUEST_ANSWER)
    request_id = checked_id("requestId", input.request_id)
    return AnswerRequestPayload(
        request=await context.parts.requests.answer(request_id, envelope, actor=actor)
    )
