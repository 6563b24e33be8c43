"""Mutations of devices: pairing, renaming, revoking, new tokens."""

from typing import Annotated, TypeAlias

import strawberry

from resolvers import user_errors as errors
from resolvers.content import plain
from resolvers.context import Info
from resolvers.devices import Device, Pairing
from resolvers.enums import PairDeviceState
from resolvers.envelopes import Envelope
from resolvers.inputs import checked_id, checked_text
from resolvers.scalars import Base64
from resolvers.server import base_url
from sidestage.devices import model
from sidestage.devices import pairings as pairing_model
from sidestage.devices.model import ContentMode, Scope
from sidestage.devices.pairings import PairRequest
from sidestage.envelopes import envelope as envelopes
from sidestage.ids import DeviceId

CODE_LIMIT_CHARACTERS = 32
"""Codes have six digits."""
KEY_ID_LIMIT_CHARACTERS = 32
"""Key ids have 16."""
RETRY_AFTER_MS = 2000
"""Between two requests of a device that waits for its owner to type the code."""


@strawberry.input(description="What a device that is to be paired will be allowed.")
class CreatePairingInput:
    """What a device that is to be paired will be allowed."""

    name: str | None = strawberry.field(
        default=None, description="What to call it; what it calls itself if left out."
    )
    scopes: list[Scope] | None = strawberry.field(
        default=None,
        description=(
            "What it may do. Left out: `VIEW READ ANSWER TERMINAL`, or `VIEW ANSWER` "
            "if its content is sealed."
        ),
    )
    content: ContentMode = strawberry.field(
        default=ContentMode.CLEAR,
        description="Whether it is shown texts and names in clear.",
    )


@strawberry.input(
    description=(
        "A device that read a pairing link. Keep it and send it again, byte for byte, "
        "until its answer is DONE. The proof is told in docs/handover-protocol.md."
    )
)
class PairDeviceInput:
    """A device that read a pairing link."""

    pairing_id: str = strawberry.field(description="The link's second part.")
    device_key: Base64 = strawberry.field(
        description="The device's X25519 public key, 32 bytes, made for this pairing."
    )
    name: str = strawberry.field(description="What the device is called.")
    platform: str = strawberry.field(description="What it runs on, such as `ios`.")
    nonce: Base64 = strawberry.field(description="16 random bytes.")
    proof: Base64 = strawberry.field(description="The proof of the link's secret.")


@strawberry.input(description="The code that the device to be paired shows.")
class ConfirmPairingInput:
    """The code that the device to be paired shows."""

    pairing_id: strawberry.ID = strawberry.field(description="The pairing.")
    code: str = strawberry.field(description="Six digits, typed by the owner.")


@strawberry.input(description="A pairing to end.")
class CancelPairingInput:
    """A pairing to end."""

    pairing_id: strawberry.ID = strawberry.field(description="The pairing.")


@strawberry.input(description="A device's new name.")
class RenameDeviceInput:
    """A device's new name."""

    device_id: strawberry.ID = strawberry.field(description="The device.")
    name: str = strawberry.field(description="Its new name.")


@strawberry.input(description="A device to cut off, for good.")
class RevokeDeviceInput:
    """A device to cut off, for good."""

    device_id: strawberry.ID = strawberry.field(description="The device.")


@strawberry.input(description="The key for which a new token is to be sealed.")
class RefreshDeviceTokenInput:
    """The key for which a new token is to be sealed."""

    device_key_id: str = strawberry.field(
        description="The id of the calling device's own key."
    )


@strawberry.type(description="The pairing is open; show its link to the device.")
class CreatePairingPayload:
    """The pairing is open."""

    pairing: pairing_model.Pairing = plain("The pairing.", graphql_type=Pairing)
    link: str = plain(
        "What the QR code says. It holds the secret and is shown this once."
    )
    expires_in_seconds: int = plain("How long it is good, by the server's clock.")


@strawberry.type(description="The device was heard.")
class PairDevicePayload:
    """The device was heard."""

    state: PairDeviceState = plain("How far the pairing is.")
    envelope: envelopes.Envelope = plain(
        "Sealed for the device: the code to show (`pairing-code`) while PENDING, its "
        "token (`credentials`) once DONE.",
        graphql_type=Envelope,
    )
    retry_after_ms: int | None = plain(
        "When to send the same request again; null once DONE."
    )


@strawberry.type(description="The device is paired, once it calls with its token.")
class ConfirmPairingPayload:
    """The device is paired."""

    device: model.Device = plain("The new device.", graphql_type=Device)


@strawberry.type(description="The pairing has ended.")
class CancelPairingPayload:
    """The pairing has ended."""

    pairing: pairing_model.Pairing = plain("The pairing.", graphql_type=Pairing)


@strawberry.type(description="The device has its new name.")
class RenameDevicePayload:
    """The device has its new name."""

    device: model.Device = plain("The device as it is now.", graphql_type=Device)


@strawberry.type(description="The device is cut off.")
class RevokeDevicePayload:
    """The device is cut off."""

    device: model.Device = plain("The device as it is now.", graphql_type=Device)
    was_revoked: bool = plain("Whether it had been revoked before.")


@strawberry.type(
    description=(
        "A new token. The old one is good until the new one is first used; until then "
        "asking again gives the same envelope."
    )
)
class RefreshDeviceTokenPayload:
    """A new token."""

    envelope: envelopes.Envelope = plain(
        "The token, sealed for the device (`credentials`).", graphql_type=Envelope
    )


CreatePairingResult: TypeAlias = Annotated[
    CreatePairingPayload
    | errors.InvalidInput
    | errors.PairingLimitReached
    | errors.DeviceLimitReached,
    strawberry.union(
        name="CreatePairingResult",
        description="The payload, or why no pairing was opened.",
    ),
]
PairDeviceResult: TypeAlias = Annotated[
    PairDevicePayload
    | errors.InvalidInput
    | errors.PairingRefused
    | errors.PairingClosed,
    strawberry.union(
        name="PairDeviceResult",
        description="The payload, or why the device was not heard.",
    ),
]
ConfirmPairingResult: TypeAlias = Annotated[
    ConfirmPairingPayload
    | errors.InvalidInput
    | errors.PairingClosed
    | errors.PairingCodeWrong
    | errors.DeviceLimitReached,
    strawberry.union(
        name="ConfirmPairingResult",
        description="The payload, or why the device was not taken in.",
    ),
]
CancelPairingResult: TypeAlias = Annotated[
    CancelPairingPayload | errors.InvalidInput | errors.PairingClosed,
    strawberry.union(
        name="CancelPairingResult",
        description="The payload, or why there was nothing to end.",
    ),
]
RenameDeviceResult: TypeAlias = Annotated[
    RenameDevicePayload | errors.InvalidInput | errors.DeviceNotFound,
    strawberry.union(
        name="RenameDeviceResult",
        description="The payload, or why the device keeps its name.",
    ),
]
RevokeDeviceResult: TypeAlias = Annotated[
    RevokeDevicePayload | errors.InvalidInput | errors.DeviceNotFound,
    strawberry.union(
        name="RevokeDeviceResult",
        description="The payload, or why nothing was cut off.",
    ),
]
RefreshDeviceTokenResult: TypeAlias = Annotated[
    RefreshDeviceTokenPayload | errors.InvalidInput | errors.DeviceKeyRequired,
    strawberry.union(
        name="RefreshDeviceTokenResult",
        description="The payload, or why there is no new token.",
    ),
]

CreateInput = Annotated[
    CreatePairingInput, strawberry.argument(description="What it will be allowed.")
]
PairInput = Annotated[PairDeviceInput, strawberry.argument(description="The request.")]
ConfirmInput = Annotated[
    ConfirmPairingInput, strawberry.argument(description="The code.")
]
CancelInput = Annotated[
    CancelPairingInput, strawberry.argument(description="The pairing.")
]
RenameInput = Annotated[RenameDeviceInput, strawberry.argument(description="The name.")]
RevokeInput = Annotated[
    RevokeDeviceInput, strawberry.argument(description="The device.")
]
RefreshInput = Annotated[
    RefreshDeviceTokenInput, strawberry.argument(description="The key.")
]


async def create_pairing(info: Info, input: CreateInput) -> CreatePairingPayload:  # noqa: A002 -- the schema's name
    """Open a pairing."""
    parts = info.context.parts
    pairing, link = await parts.pairings.create(
        base_url=base_url(info.context),
        name=input.name,
        scopes=None if input.scopes is None else frozenset(input.scopes),
        content=input.content,
        actor=info.context.principal,
    )
    left = pairing.expires_at - parts.clock()
    return CreatePairingPayload(
        pairing=pairing,
        link=link.encode(),
        expires_in_seconds=max(0, round(left.total_seconds())),
    )


async def pair_device(info: Info, input: PairInput) -> PairDevicePayload:  # noqa: A002 -- the schema's name
    """Hear a device that read a pairing link."""
    request = PairRequest(
        pairing_id=input.pairing_id,
        device_key=input.device_key,
        name=input.name,
        platform=input.platform,
        nonce=input.nonce,
        proof=input.proof,
    )
    claimed = await info.context.parts.pairings.claim(
        request, actor=info.context.principal
    )
    return PairDevicePayload(
        state=PairDeviceState.DONE if claimed.is_done else PairDeviceState.PENDING,
        envelope=claimed.envelope,
        retry_after_ms=None if claimed.is_done else RETRY_AFTER_MS,
    )


async def confirm_pairing(info: Info, input: ConfirmInput) -> ConfirmPairingPayload:  # noqa: A002 -- the schema's name
    """Take the device in that shows the code."""
    device = await info.context.parts.pairings.confirm(
        checked_id("pairingId", input.pairing_id),
        checked_text("code", input.code, CODE_LIMIT_CHARACTERS),
        actor=info.context.principal,
    )
    return ConfirmPairingPayload(device=device)


async def cancel_pairing(info: Info, input: CancelInput) -> CancelPairingPayload:  # noqa: A002 -- the schema's name
    """End a pairing."""
    pairing = await info.context.parts.pairings.cancel(
        checked_id("pairingId", input.pairing_id), actor=info.context.principal
    )
    return CancelPairingPayload(pairing=pairing)


async def rename_device(info: Info, input: RenameInput) -> RenameDevicePayload:  # noqa: A002 -- the schema's name
    """Give a device another name."""
    device = await info.context.parts.devices.rename(
        DeviceId(checked_id("deviceId", input.device_id)),
        input.name,
        actor=info.context.principal,
    )
    return RenameDevicePayload(device=device)


async def revoke_device(info: Info, input: RevokeInput) -> RevokeDevicePayload:  # noqa: A002 -- the schema's name
    """Cut a device off."""
    revoked = await info.context.parts.devices.revoke(
        DeviceId(checked_id("deviceId", input.device_id)),
        actor=info.context.principal,
    )
    return RevokeDevicePayload(device=revoked.device, was_revoked=revoked.was_revoked)


async def refresh_device_token(
    info: Info,
    input: RefreshInput,  # noqa: A002 -- the schema's name
) -> RefreshDeviceTokenPayload:
    """Seal a new token for the calling device."""
    envelope = await info.context.parts.devices.refresh_token(
        checked_text("deviceKeyId", input.device_key_id, KEY_ID_LIMIT_CHARACTERS),
        actor=info.context.principal,
    )
    return RefreshDeviceTokenPayload(envelope=envelope)
