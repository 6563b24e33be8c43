"""The caller of an operation and what it may do."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from sidestage.feeds import Feed
from sidestage.ids import DeviceId


class Scope(StrEnum):
    """What a token allows."""

    VIEW = "VIEW"
    """States, names, folders, counts."""
    READ = "READ"
    """Texts: transcripts, screens, inputs of requests."""
    ANSWER = "ANSWER"
    TERMINAL = "TERMINAL"
    ADMIN = "ADMIN"


class PrincipalKind(StrEnum):
    """What kind of credential the caller showed."""

    ADMIN = "ADMIN"
    """The admin token of this machine."""
    LOCAL = "LOCAL"
    """A process of the owner on the control socket."""
    DEVICE = "DEVICE"
    BROWSER = "BROWSER"
    ANONYMOUS = "ANONYMOUS"


class ContentMode(StrEnum):
    """How much clear text a device is shown."""

    CLEAR = "CLEAR"
    SEALED = "SEALED"
    """No `READ`, and labels withheld besides: texts come in envelopes or not at all."""


ADMIN_SCOPES = frozenset({Scope.VIEW, Scope.READ, Scope.TERMINAL, Scope.ADMIN})
"""Never ANSWER: without a paired device nothing can be approved."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls, and with which scopes. *actor* is how the audit log names it."""

    kind: PrincipalKind
    scopes: frozenset[Scope]
    actor: str
    device_id: DeviceId | None = None
    token_id: str | None = None
    address: str | None = None
    content: ContentMode = ContentMode.CLEAR

    @property
    def credential(self) -> str:
        """What the caller showed: the token's id, or for a local process its kind.

        Two processes of the owner are one, an agent on the control socket another.
        """
        return self.token_id or self.actor.partition(":")[0]

    def may(self, scope: Scope) -> bool:
        """Tell whether this caller has *scope*."""
        return scope in self.scopes


ANONYMOUS = Principal(PrincipalKind.ANONYMOUS, frozenset(), "anonymous")


class Authenticator(Protocol):
    """Turns a bearer token into the one who shows it."""

    async def authenticate(self, token: str, *, address: str | None) -> Principal:
        """Return the token's principal.

        Raises `Unauthenticated`, and `RateLimited` after too many failures from
        *address*; the right token is never locked out.
        """

    def is_current(self, principal: Principal) -> bool:
        """Tell whether the principal's token is still good (no I/O)."""

    def watch_revocations(self) -> AsyncIterator[str]:
        """Yield the token id of each token that is revoked or expires."""


class DeviceState(StrEnum):
    """Where a device stands in its life."""

    PENDING = "PENDING"
    """Paired, but it has not shown its token yet."""
    ACTIVE = "ACTIVE"
    REVOKED = "REVOKED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A paired client. Times are UTC; *key* is its X25519 public key, 32 bytes."""

    id: DeviceId
    name: str
    platform: str
    key: bytes = field(repr=False)
    key_id: str
    scopes: frozenset[Scope]
    content: ContentMode
    state: DeviceState
    paired_at: datetime
    last_seen_at: datetime | None = None
    revoked_at: datetime | None = None
    announced_by: str | None = None
    """The message id of the `host-key` envelope kept for it, if there is one."""

    @property
    def may_answer(self) -> bool:
        """Whether offers and requests are sealed for it, and its answers count."""
        return self.state is DeviceState.ACTIVE and Scope.ANSWER in self.scopes


class Devices(Protocol):
    """The paired devices, revoked ones included."""

    @property
    def feed(self) -> Feed[Device]:
        """The devices by id, with their changes."""

    def list_answering(self) -> tuple[Device, ...]:
        """Return the devices that may answer, in the order they were paired."""


class Presence(Protocol):
    """Which devices have a connection open at this moment."""

    def connected_devices(self) -> frozenset[DeviceId]:
        """Return the devices with an open socket or stream (no I/O)."""
