"""An envelope: its clear fields, what binds them to the seal, and its wire form.

The clear fields are never read from anything sealed: the recipient rebuilds `aad` from
them, so a changed one makes the envelope not open.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from sidestage.canonical import pae
from sidestage.envelopes.encoding import (
    decode_base64,
    decode_base64url,
    encode_base64,
)
from sidestage.envelopes.hpke import TAG_BYTES, Sealed
from sidestage.envelopes.keys import KEY_BYTES, KEY_ID_BYTES
from sidestage.errors import EnvelopeInvalid, InvalidInput
from sidestage.ids import ID_LIMIT_CHARACTERS, DeviceId, HostId

MESSAGE_ID_BYTES: Final = 16
PLAINTEXT_LIMIT_BYTES: Final = 64 * 1024
"""Of the JSON text: the longest answer is 8,000 characters, echoed texts as much."""
PADDING_BLOCK_BYTES: Final = 256
CIPHERTEXT_LIMIT_BYTES: Final = PLAINTEXT_LIMIT_BYTES + PADDING_BLOCK_BYTES + TAG_BYTES
"""65,808: one block of padding more than needed, for a sender who always adds some."""

_DOMAIN: Final = "sidestage/envelope/v1"
_INFO: Final = "sidestage/hpke/v1/"
_DIGEST_DOMAIN: Final = "sidestage/envelope-digest/v1"
_ID: Final = re.compile(rf"[\x21-\x7e]{{0,{ID_LIMIT_CHARACTERS}}}")
_TIME: Final = re.compile(r"0|[1-9][0-9]{0,15}")
_BASE64_LIMIT_CHARACTERS: Final = len(encode_base64(bytes(CIPHERTEXT_LIMIT_BYTES)))


class Direction(StrEnum):
    """Who seals for whom."""

    HOST_TO_DEVICE = "HOST_TO_DEVICE"
    DEVICE_TO_HOST = "DEVICE_TO_HOST"


class Purpose(StrEnum):
    """What an envelope is for, as `info` and `aad` spell it."""

    PAIRING_CODE = "pairing-code"
    CREDENTIALS = "credentials"
    OFFER = "offer"
    REQUEST = "request"
    HOST_KEY = "host-key"
    HANDOVER_ANSWER = "handover-answer"
    REQUEST_ANSWER = "request-answer"

    @property
    def direction(self) -> Direction:
        """Who may seal for this purpose; a recipient accepts its own direction only."""
        if self in _ANSWERS:
            return Direction.DEVICE_TO_HOST
        return Direction.HOST_TO_DEVICE

    @property
    def info(self) -> bytes:
        """HPKE's `info`: purpose and version."""
        return f"{_INFO}{self.value}".encode("ascii")


_ANSWERS: Final = frozenset({Purpose.HANDOVER_ANSWER, Purpose.REQUEST_ANSWER})


class Fault(StrEnum):
    """Why an envelope was refused, for the audit log."""

    FORM = "FORM"
    SIZE = "SIZE"
    PURPOSE = "PURPOSE"
    HOST = "HOST"
    DEVICE = "DEVICE"
    SUBJECT = "SUBJECT"
    EXPIRY = "EXPIRY"
    """It names another expiry than its subject has."""
    EXPIRED = "EXPIRED"
    SEAL = "SEAL"
    CONTENT = "CONTENT"


@dataclass(frozen=True, slots=True)
class Subject:
    """What an envelope is about: an offer, a request, a pairing; "" for what it lacks.

    *expires_at_ms* is stored with it (milliseconds since 1970); answers must name it.
    """

    subject_id: str
    session_id: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class Header:
    """The clear fields of an envelope, in the order in which `aad` binds them.

    Ids are the exact texts of the API; times are milliseconds since 1970 by the
    sender's clock and the subject's stored expiry. Raises `EnvelopeInvalid` for a value
    that has no place on the wire.
    """

    purpose: Purpose
    host_id: HostId
    host_key_id: str
    device_id: DeviceId
    device_key_id: str
    subject_id: str
    session_id: str
    message_id: str
    sealed_at_ms: int
    expires_at_ms: int

    def __post_init__(self) -> None:
        for text in (self.host_id, self.device_id, self.subject_id, self.session_id):
            _require(_ID.fullmatch(text) is not None, "an id")
        for key_id in (self.host_key_id, self.device_key_id):
            _require(_is_base64url(key_id, KEY_ID_BYTES), "a key id")
        _require(_is_base64url(self.message_id, MESSAGE_ID_BYTES), "the message id")
        for time_ms in (self.sealed_at_ms, self.expires_at_ms):
            _require(_TIME.fullmatch(str(time_ms)) is not None, "a time")

    @property
    def aad(self) -> bytes:
        """What the seal binds: every clear field, in one canonical form."""
        return pae(
            (
                _DOMAIN,
                self.purpose.value,
                self.host_id,
                self.host_key_id,
                self.device_id,
                self.device_key_id,
                self.subject_id,
                self.session_id,
                self.message_id,
                str(self.sealed_at_ms),
                str(self.expires_at_ms),
            )
        )


@dataclass(frozen=True, slots=True)
class Envelope:
    """A sealed message with its clear fields. Nothing about it is checked yet."""

    header: Header
    sealed: Sealed

    @property
    def digest(self) -> bytes:
        """SHA-256 over all of it: equal means the very same envelope came again."""
        parts = (_DIGEST_DOMAIN, self.header.aad, *self.sealed)
        return hashlib.sha256(pae(parts)).digest()

    def to_fields(self) -> dict[str, str]:
        """Return the fields as they travel."""
        header = self.header
        return {
            "purpose": header.purpose.value,
            "hostId": header.host_id,
            "hostKeyId": header.host_key_id,
            "deviceId": header.device_id,
            "deviceKeyId": header.device_key_id,
            "subjectId": header.subject_id,
            "sessionId": header.session_id,
            "messageId": header.message_id,
            "sealedAtMs": str(header.sealed_at_ms),
            "expiresAtMs": str(header.expires_at_ms),
            "enc": encode_base64(self.sealed.enc),
            "ciphertext": encode_base64(self.sealed.ciphertext),
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> Self:
        """Return the envelope with these fields: sizes first, then the purpose.

        Raises `EnvelopeInvalid` for every other spelling of the same envelope too;
        `KeyError` if a field is missing (the schema requires them all).
        """
        sealed = _parse_sealed(fields["enc"], fields["ciphertext"])
        header = Header(
            purpose=_parse_purpose(fields["purpose"]),
            host_id=HostId(fields["hostId"]),
            host_key_id=fields["hostKeyId"],
            device_id=DeviceId(fields["deviceId"]),
            device_key_id=fields["deviceKeyId"],
            subject_id=fields["subjectId"],
            session_id=fields["sessionId"],
            message_id=fields["messageId"],
            sealed_at_ms=_parse_time(fields["sealedAtMs"]),
            expires_at_ms=_parse_time(fields["expiresAtMs"]),
        )
        return cls(header, sealed)


def _parse_sealed(enc: str, ciphertext: str) -> Sealed:
    # Before decoding: a text of any size costs nothing then.
    if max(len(enc), len(ciphertext)) > _BASE64_LIMIT_CHARACTERS:
        raise EnvelopeInvalid("The envelope is too large.", fault=Fault.SIZE)
    try:
        sealed = Sealed(decode_base64(enc), decode_base64(ciphertext))
    except InvalidInput:
        raise EnvelopeInvalid(
            "The envelope's bytes are not in canonical Base64.", fault=Fault.FORM
        ) from None
    right = TAG_BYTES < len(sealed.ciphertext) <= CIPHERTEXT_LIMIT_BYTES
    if len(sealed.enc) != KEY_BYTES or not right:
        raise EnvelopeInvalid("The envelope has a wrong size.", fault=Fault.SIZE)
    return sealed


def _parse_purpose(text: str) -> Purpose:
    try:
        return Purpose(text)
    except ValueError:
        raise EnvelopeInvalid(
            "The envelope has an unknown purpose.", fault=Fault.PURPOSE
        ) from None


def _parse_time(text: str) -> int:
    _require(_TIME.fullmatch(text) is not None, "a time")
    return int(text)


def _is_base64url(text: str, length_bytes: int) -> bool:
    try:
        decode_base64url(text, length_bytes=length_bytes)
    except InvalidInput:
        return False
    return True


def _require(holds: bool, what: str) -> None:  # noqa: FBT001  # reads as an assertion
    if not holds:
        raise EnvelopeInvalid(
            f"The envelope has {what} in a wrong form.", fault=Fault.FORM
        )
