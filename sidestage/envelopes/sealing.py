"""Sealing a message, by the host for a device or by a device for the host."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sidestage.envelopes import hpke
from sidestage.envelopes.content import decode_content, encode_content
from sidestage.envelopes.encoding import encode_base64url
from sidestage.envelopes.envelope import (
    MESSAGE_ID_BYTES,
    Direction,
    Envelope,
    Header,
    Purpose,
    Subject,
)
from sidestage.envelopes.keys import PrivateKey, PublicKey
from sidestage.ids import DeviceId, HostId


@dataclass(frozen=True, slots=True)
class Parties:
    """Host and device with the keys that this message is between.

    Before a pairing is confirmed the device has no id: it is empty then.
    """

    host_id: HostId
    host_key: PublicKey
    device_id: DeviceId
    device_key: PublicKey

    def sender_and_recipient(self, purpose: Purpose) -> tuple[PublicKey, PublicKey]:
        """Return whose key seals for *purpose* and whose opens."""
        if purpose.direction is Direction.HOST_TO_DEVICE:
            return self.host_key, self.device_key
        return self.device_key, self.host_key


def seal_envelope(
    content: Mapping[str, Any],
    *,
    purpose: Purpose,
    parties: Parties,
    subject: Subject,
    sender: PrivateKey,
    sealed_at_ms: int,
    entropy: Callable[[int], bytes] = secrets.token_bytes,
) -> Envelope:
    """Seal *content* about *subject* with a new message id and ephemeral key.

    Raises `InvalidInput` for content that cannot be sent, `EnvelopeInvalid` for ids or
    times that have no place on the wire, and `ValueError` if *sender* is not the one
    who may seal for *purpose*.
    """
    sealing, recipient = parties.sender_and_recipient(purpose)
    if sender.public != sealing:
        raise ValueError(f"This key does not seal for {purpose.value}.")
    header = Header(
        purpose=purpose,
        host_id=parties.host_id,
        host_key_id=parties.host_key.key_id,
        device_id=parties.device_id,
        device_key_id=parties.device_key.key_id,
        subject_id=subject.subject_id,
        session_id=subject.session_id,
        message_id=encode_base64url(entropy(MESSAGE_ID_BYTES)),
        sealed_at_ms=sealed_at_ms,
        expires_at_ms=subject.expires_at_ms,
    )
    sealed = hpke.seal(
        encode_content(purpose, content),
        info=purpose.info,
        aad=header.aad,
        recipient=recipient,
        sender=sender,
        ephemeral=PrivateKey.generate(entropy=entropy),
    )
    return Envelope(header, sealed)


def unseal_envelope(
    envelope: Envelope, *, recipient: PrivateKey, sender: PublicKey
) -> dict[str, Any]:
    """Return the content that *sender* sealed for *recipient* in *envelope*.

    It proves who sealed these clear fields, not that they are the ones to expect:
    `sidestage.envelopes.opening` checks that. Raises `EnvelopeInvalid`.
    """
    header = envelope.header
    plaintext = hpke.unseal(
        envelope.sealed,
        info=header.purpose.info,
        aad=header.aad,
        recipient=recipient,
        sender=sender,
    )
    return decode_content(header.purpose, plaintext)
