"""Sealed envelopes, as GraphQL carries them in both directions."""

import strawberry

from resolvers.content import plain
from resolvers.context import Context
from resolvers.scalars import Base64, BigInt, encode_base64
from sidestage.devices.sealing_desk import refusal_record
from sidestage.envelopes import envelope as model
from sidestage.envelopes.envelope import Purpose
from sidestage.errors import EnvelopeInvalid


def _purpose(root: strawberry.Parent[model.Envelope]) -> str:
    return root.header.purpose.value


def _host_id(root: strawberry.Parent[model.Envelope]) -> str:
    return root.header.host_id


def _host_key_id(root: strawberry.Parent[model.Envelope]) -> str:
    return root.header.host_key_id


def _device_id(root: strawberry.Parent[model.Envelope]) -> str:
    return root.header.device_id


def _device_key_id(root: strawberry.Parent[model.Envelope]) -> str:
    return root.header.device_key_id


def _subject_id(root: strawberry.Parent[model.Envelope]) -> str:
    return root.header.subject_id


def _session_id(root: strawberry.Parent[model.Envelope]) -> str:
    return root.header.session_id


def _message_id(root: strawberry.Parent[model.Envelope]) -> str:
    return root.header.message_id


def _sealed_at(root: strawberry.Parent[model.Envelope]) -> int:
    return root.header.sealed_at_ms


def _expires_at(root: strawberry.Parent[model.Envelope]) -> int:
    return root.header.expires_at_ms


def _enc(root: strawberry.Parent[model.Envelope]) -> bytes:
    return root.sealed.enc


def _ciphertext(root: strawberry.Parent[model.Envelope]) -> bytes:
    return root.sealed.ciphertext


@strawberry.type(
    description=(
        "A message sealed by the host for one device, or by a device for the host: "
        "HPKE in mode Auth. Its seal covers every field; how is told in "
        "docs/handover-protocol.md."
    )
)
class Envelope:
    """A sealed message with its clear fields."""

    purpose: str = plain("What it is for, such as `offer`.", resolver=_purpose)
    host_id: strawberry.ID = plain("The host.", resolver=_host_id)
    host_key_id: str = plain("The id of the host's key.", resolver=_host_key_id)
    device_id: strawberry.ID = plain(
        "The device; empty until a pairing is confirmed.", resolver=_device_id
    )
    device_key_id: str = plain("The id of the device's key.", resolver=_device_key_id)
    subject_id: strawberry.ID = plain(
        "The offer, request or pairing it is about; empty if none.",
        resolver=_subject_id,
    )
    session_id: strawberry.ID = plain(
        "The session it is about; empty if none.", resolver=_session_id
    )
    message_id: str = plain(
        "16 random bytes in base64url, new for every envelope.", resolver=_message_id
    )
    sealed_at_ms: BigInt = plain(
        "When, by the sender's clock, in milliseconds since 1970. Only to be shown.",
        resolver=_sealed_at,
    )
    expires_at_ms: BigInt = plain(
        "When its subject expires, in milliseconds since 1970.", resolver=_expires_at
    )
    enc: Base64 = plain("The ephemeral public key, 32 bytes.", resolver=_enc)
    ciphertext: Base64 = plain("The sealed text.", resolver=_ciphertext)


@strawberry.input(
    description="A message that a device sealed for the host; see `Envelope`."
)
class EnvelopeInput:
    """A message that a device sealed for the host."""

    purpose: str = strawberry.field(description="What it is for.")
    host_id: strawberry.ID = strawberry.field(description="The host.")
    host_key_id: str = strawberry.field(description="The id of the host's key.")
    device_id: strawberry.ID = strawberry.field(description="The sending device.")
    device_key_id: str = strawberry.field(description="The id of the device's key.")
    subject_id: strawberry.ID = strawberry.field(description="What it answers.")
    session_id: strawberry.ID = strawberry.field(
        description="The session it is about; empty if none."
    )
    message_id: str = strawberry.field(
        description="16 random bytes in base64url. The same envelope again is a retry."
    )
    sealed_at_ms: BigInt = strawberry.field(
        description="When, by the device's clock, in milliseconds since 1970."
    )
    expires_at_ms: BigInt = strawberry.field(
        description="The expiry that the subject's own envelope named."
    )
    enc: Base64 = strawberry.field(description="The ephemeral public key, 32 bytes.")
    ciphertext: Base64 = strawberry.field(description="The sealed text.")


async def read_envelope(
    context: Context, given: EnvelopeInput, purpose: Purpose
) -> model.Envelope:
    """Return the envelope that was *given* for *purpose*.

    Raises `EnvelopeInvalid` for one with a wrong form, which the audit log tells.
    """
    fields = {
        "purpose": given.purpose,
        "hostId": given.host_id,
        "hostKeyId": given.host_key_id,
        "deviceId": given.device_id,
        "deviceKeyId": given.device_key_id,
        "subjectId": given.subject_id,
        "sessionId": given.session_id,
        "messageId": given.message_id,
        "sealedAtMs": str(given.sealed_at_ms),
        "expiresAtMs": str(given.expires_at_ms),
        "enc": encode_base64(given.enc),
        "ciphertext": encode_base64(given.ciphertext),
    }
    try:
        return model.Envelope.from_fields(fields)
    except EnvelopeInvalid as error:
        record = refusal_record(error, context.principal, purpose)
        await context.parts.audit.write(record)
        raise
