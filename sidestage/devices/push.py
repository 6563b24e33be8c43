"""Telling devices out of reach that something waits: the values and the ports.

No content goes out, ever: what is sent says that questions wait, and how many.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from urllib.parse import urlsplit

import orjson

from sidestage.audit import AuditRecord
from sidestage.devices.model import Principal
from sidestage.ids import DeviceId


class PushKind(StrEnum):
    """How an endpoint is spoken to."""

    WEB_PUSH = "WEB_PUSH"
    """RFC 8030 and 8291: browsers' push services, and UnifiedPush."""
    WEBHOOK = "WEBHOOK"
    """A signed POST to a relay that the owner allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPushKeys:
    """What a push service's client encrypts for: its P-256 point and its secret."""

    p256dh: bytes = field(repr=False)
    auth: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushEndpoint:
    """Where a device is told. Who knows *url* can write to it: it is never shown."""

    id: str
    device_id: DeviceId
    url: str = field(repr=False)
    created_at: datetime
    keys: WebPushKeys | None = None
    """For Web Push."""
    secret: bytes | None = field(default=None, repr=False)
    """What a webhook's messages are signed with."""

    @property
    def kind(self) -> PushKind:
        """How it is spoken to."""
        return PushKind.WEBHOOK if self.keys is None else PushKind.WEB_PUSH

    @property
    def host(self) -> str:
        """The name of the service, which may be shown and logged."""
        return urlsplit(self.url).hostname or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEndpoint:
    """What a device asks to be told by. Texts in base64url, as browsers give them."""

    kind: PushKind
    url: str = field(repr=False)
    p256dh: str | None = field(default=None, repr=False)
    auth: str | None = field(default=None, repr=False)
    secret: bytes | None = field(default=None, repr=False)


class PushWord(StrEnum):
    """All that a message can say."""

    WAITING = "waiting"
    """A question waits that did not before."""
    SETTLED = "settled"
    """One that the device was told of waits no more."""
    DEVICES = "devices"
    """A device was paired or got other rights, or the host's key changed."""


@dataclass(frozen=True, slots=True)
class PushMessage:
    """What is sent. *count* is how many questions wait now."""

    word: PushWord
    count: int
    topic: str
    """A later message replaces an undelivered one of the same topic."""

    def body(self) -> bytes:
        """Return the bytes that are sent: all there is."""
        return orjson.dumps({"t": self.word.value, "n": self.count})


class Delivery(StrEnum):
    """What became of a message."""

    DELIVERED = "DELIVERED"
    LATER = "LATER"
    """Not taken now; worth another try."""
    REFUSED = "REFUSED"
    """Not taken, and trying again would not help."""
    GONE = "GONE"
    """The endpoint exists no more."""


class Push(Protocol):
    """Wakes devices through push services. No content goes out, ever."""

    def reaches_anyone(self) -> bool:
        """Tell whether a device that may answer has an endpoint (no I/O)."""

    def waiting(self, subject_id: str, session_id: str) -> None:
        """Say once that the offer or request waits; sent in the background."""

    def settled(self, subject_id: str) -> None:
        """Withdraw what was said of it, if anything was."""


class Courier(Protocol):
    """Carries messages to endpoints."""

    async def check(self, endpoint: PushEndpoint) -> None:
        """Raise `PushEndpointRefused` or `InvalidInput` if it can never be reached."""

    async def deliver(self, endpoint: PushEndpoint, message: PushMessage) -> Delivery:
        """Send *message* once; never raises for what the other side does."""


class PushDesk(Protocol):
    """What may be asked about endpoints: the port that resolvers call."""

    def list_of(self, device_id: DeviceId) -> tuple[PushEndpoint, ...]:
        """Return the device's endpoints, oldest first."""

    async def register(self, new: NewEndpoint, *, actor: Principal) -> PushEndpoint:
        """Take an endpoint of the calling device in; the same address again is one.

        Raises `DeviceKeyRequired` for a caller that is no device, `InvalidInput`,
        `PushEndpointRefused`, and `PushEndpointLimitReached`.
        """

    async def remove(self, endpoint_id: str, *, actor: Principal) -> PushEndpoint:
        """Forget an endpoint: the caller's own, or anyone's for `ADMIN`.

        Raises `PushEndpointNotFound`.
        """

    async def vapid_public_key(self) -> str:
        """Return the key that browsers subscribe with, in base64url."""


@dataclass(frozen=True, slots=True)
class Told:
    """A device that was told of a question, which is to be withdrawn again."""

    subject_id: str
    device_id: DeviceId
    topic: str


class PushStore(Protocol):
    """Keeps endpoints, and who was told of what."""

    async def load(self) -> tuple[tuple[PushEndpoint, ...], tuple[Told, ...]]:
        """Return everything, endpoints oldest first."""

    async def put(self, endpoint: PushEndpoint, record: AuditRecord) -> None:
        """Write the endpoint over the one with its id."""

    async def remove(self, endpoint_id: str, record: AuditRecord) -> None:
        """Delete the endpoint."""

    async def add_told(self, told: Told) -> None:
        """Remember that the device was told."""

    async def forget_told(self, subject_id: str) -> None:
        """Forget who was told of the subject."""
