"""Mutations of push endpoints."""

from typing import Annotated, TypeAlias

import strawberry

from resolvers import user_errors as errors
from resolvers.content import plain
from resolvers.context import Info
from resolvers.devices import PushEndpoint
from resolvers.inputs import checked_id, checked_text
from resolvers.scalars import Base64
from sidestage.devices import push
from sidestage.devices.push import NewEndpoint, PushKind
from sidestage.devices.push_rules import URL_LIMIT_CHARACTERS


@strawberry.input(
    description=(
        "Where the calling device is to be told. What a message holds, and how a "
        "webhook's signature is checked, stands in docs/push.md."
    )
)
class RegisterPushEndpointInput:
    """Where the calling device is to be told."""

    kind: PushKind = strawberry.field(description="How the endpoint is spoken to.")
    endpoint: str = strawberry.field(
        description="Its https address, at a push service or a host the owner allows."
    )
    p256dh: str | None = strawberry.field(
        default=None,
        description="`WEB_PUSH`: the subscription's `keys.p256dh`, in base64url.",
    )
    auth: str | None = strawberry.field(
        default=None,
        description="`WEB_PUSH`: the subscription's `keys.auth`, in base64url.",
    )
    secret: Base64 | None = strawberry.field(
        default=None,
        description="`WEBHOOK`: 16 to 64 random bytes; messages are signed with them.",
    )


@strawberry.input(description="A push endpoint to forget.")
class RemovePushEndpointInput:
    """A push endpoint to forget."""

    endpoint_id: strawberry.ID = strawberry.field(description="The endpoint.")


@strawberry.type(description="The device will be told there.")
class RegisterPushEndpointPayload:
    """The device will be told there."""

    endpoint: push.PushEndpoint = plain("The endpoint.", graphql_type=PushEndpoint)


@strawberry.type(description="The endpoint is forgotten.")
class RemovePushEndpointPayload:
    """The endpoint is forgotten."""

    endpoint: push.PushEndpoint = plain(
        "The endpoint as it was.", graphql_type=PushEndpoint
    )


RegisterPushEndpointResult: TypeAlias = Annotated[
    RegisterPushEndpointPayload
    | errors.InvalidInput
    | errors.DeviceKeyRequired
    | errors.PushEndpointRefused
    | errors.PushEndpointLimitReached
    | errors.StorageUnavailable,
    strawberry.union(
        name="RegisterPushEndpointResult",
        description="The payload, or why the device will not be told there.",
    ),
]
RemovePushEndpointResult: TypeAlias = Annotated[
    RemovePushEndpointPayload
    | errors.InvalidInput
    | errors.PushEndpointNotFound
    | errors.StorageUnavailable,
    strawberry.union(
        name="RemovePushEndpointResult",
        description="The payload, or why nothing was forgotten.",
    ),
]

RegisterInput = Annotated[
    RegisterPushEndpointInput, strawberry.argument(description="The endpoint.")
]
RemoveInput = Annotated[
    RemovePushEndpointInput, strawberry.argument(description="The endpoint.")
]


async def register_push_endpoint(
    info: Info,
    input: RegisterInput,  # noqa: A002 -- the schema's name
) -> RegisterPushEndpointPayload:
    """Take an endpoint of the calling device in."""
    new = NewEndpoint(
        kind=input.kind,
        url=checked_text("endpoint", input.endpoint, URL_LIMIT_CHARACTERS),
        p256dh=input.p256dh,
        auth=input.auth,
        secret=input.secret,
    )
    endpoint = await info.context.parts.push.register(new, actor=info.context.principal)
    return RegisterPushEndpointPayload(endpoint=endpoint)


async def remove_push_endpoint(
    info: Info,
    input: RemoveInput,  # noqa: A002 -- the schema's name
) -> RemovePushEndpointPayload:
    """Forget an endpoint."""
    endpoint = await info.context.parts.push.remove(
        checked_id("endpointId", input.endpoint_id), actor=info.context.principal
    )
    return RemovePushEndpointPayload(endpoint=endpoint)
