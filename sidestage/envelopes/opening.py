"""Opening an answer at the host: every check, in the one order that is safe.

Sizes and forms (`Envelope.from_fields`), purpose, host, device, known before?, subject,
expiry, seal, content. What a stranger sends is compared before it is computed with, and
nothing of it is parsed before it is authenticated.
"""

from dataclasses import dataclass
from typing import Any

from sidestage.envelopes.envelope import (
    Direction,
    Envelope,
    Fault,
    Header,
    Purpose,
    Subject,
)
from sidestage.envelopes.keys import PrivateKey, PublicKey
from sidestage.envelopes.replay import SeenEnvelope, check_not_replayed
from sidestage.envelopes.sealing import unseal_envelope
from sidestage.errors import DeviceKeyRequired, EnvelopeInvalid
from sidestage.ids import DeviceId, HostId


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """This host and the keys that open for it: the current one, then those in grace."""

    host_id: HostId
    keys: tuple[PrivateKey, ...]


@dataclass(frozen=True, slots=True)
class Caller:
    """The device whose token came with the envelope."""

    device_id: DeviceId
    key: PublicKey
    is_revoked: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """What the host expects of an envelope, looked up before it is opened.

    *caller* is None for a token without a device key; *known* is the row of the
    caller's id and the envelope's message id; *subject* is what the envelope's
    `subject_id` names, None if there is no such thing. *now_ms* is the server's clock.
    """

    purpose: Purpose
    host: HostIdentity
    caller: Caller | None
    known: SeenEnvelope | None
    subject: Subject | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class Opened:
    """The content of an envelope that is what it should be.

    *is_retry* tells that the same envelope was accepted before and has no final
    outcome: its subject's state decides what happens now.
    """

    content: dict[str, Any]
    is_retry: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """The very same envelope came before; this is its final outcome. Do nothing."""

    outcome: str


def open_answer(envelope: Envelope, expected: Expected) -> Opened | Settled:
    """Open *envelope*, or return the outcome it had before.

    Raises `DeviceKeyRequired`, `EnvelopeReplayed` and `EnvelopeInvalid`.
    """
    header = envelope.header
    _check_purpose(header, expected.purpose)
    host_key = _find_host_key(header, expected.host)
    caller = _check_caller(header, expected.caller)
    known = expected.known
    check_not_replayed(known, envelope)
    if known is not None and known.outcome is not None:
        return Settled(known.outcome)
    _check_subject(header, expected.subject)
    _check_expiry(header, expected.now_ms)
    content = unseal_envelope(envelope, recipient=host_key, sender=caller.key)
    return Opened(content, is_retry=known is not None)


def reopen_answer(
    envelope: Envelope, *, purpose: Purpose, host: HostIdentity, caller: Caller
) -> dict[str, Any]:
    """Open an answer again that `open_answer` accepted and that was kept sealed.

    *caller* is the device it came from. Raises `EnvelopeInvalid`.
    """
    header = envelope.header
    _check_purpose(header, purpose)
    host_key = _find_host_key(header, host)
    _check_caller(header, caller)
    return unseal_envelope(envelope, recipient=host_key, sender=caller.key)


def _check_purpose(header: Header, purpose: Purpose) -> None:
    is_answer = header.purpose.direction is Direction.DEVICE_TO_HOST
    if not is_answer or header.purpose is not purpose:
        raise EnvelopeInvalid("The envelope is for another use.", fault=Fault.PURPOSE)


def _find_host_key(header: Header, host: HostIdentity) -> PrivateKey:
    if header.host_id == host.host_id:
        for key in host.keys:
            if key.public.key_id == header.host_key_id:
                return key
    raise EnvelopeInvalid(
        "The envelope is for another host, or for a key it has no more.",
        fault=Fault.HOST,
    )


def _check_caller(header: Header, caller: Caller | None) -> Caller:
    if caller is None:
        raise DeviceKeyRequired("Only a paired device's key can seal this.")
    names_caller = (
        header.device_id == caller.device_id
        and header.device_key_id == caller.key.key_id
    )
    if caller.is_revoked or not names_caller:
        raise EnvelopeInvalid(
            "The envelope is not of the device that sent it.", fault=Fault.DEVICE
        )
    return caller


def _check_subject(header: Header, subject: Subject | None) -> None:
    if subject is None or (header.subject_id, header.session_id) != (
        subject.subject_id,
        subject.session_id,
    ):
        raise EnvelopeInvalid(
            "The envelope is about something that is not there.", fault=Fault.SUBJECT
        )
    # Equal, not merely earlier: the expiry is the host's to choose.
    if header.expires_at_ms != subject.expires_at_ms:
        raise EnvelopeInvalid(
            "The envelope names another expiry than its subject has.",
            fault=Fault.EXPIRY,
        )


def _check_expiry(header: Header, now_ms: int) -> None:
    # The server's clock. `sealed_at_ms` is only shown: a device's may be wrong.
    if header.expires_at_ms <= now_ms:
        raise EnvelopeInvalid("What it answers has expired.", fault=Fault.EXPIRED)
