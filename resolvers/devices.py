"""Paired devices, pairings in the making, and the caller, as GraphQL shows them."""

from datetime import datetime
from typing import Final

import strawberry

from resolvers.content import labelled, plain
from resolvers.context import Info
from resolvers.envelopes import Envelope
from resolvers.node import Node
from resolvers.paging import (
    After,
    Before,
    Connection,
    First,
    Last,
    Order,
    Page,
    PageRequest,
    page_of,
)
from resolvers.scalars import Base64, write_datetime
from sidestage.devices import model, push
from sidestage.devices import pairings as pairing_model
from sidestage.devices.model import (
    ContentMode,
    DeviceState,
    Principal,
    PrincipalKind,
    Scope,
)
from sidestage.devices.pairings import PairingEnd, PairingState
from sidestage.devices.push import PushKind
from sidestage.envelopes import envelope as envelopes


def _scopes(
    root: strawberry.Parent[model.Device | pairing_model.Pairing],
) -> list[Scope]:
    return _ordered(root.scopes)


def _ordered(scopes: frozenset[Scope]) -> list[Scope]:
    return [scope for scope in Scope if scope in scopes]


def _is_caller(info: Info, root: strawberry.Parent[model.Device]) -> bool:
    return info.context.principal.device_id == root.id


def _host_key_envelope(
    info: Info, root: strawberry.Parent[model.Device]
) -> envelopes.Envelope | None:
    if info.context.principal.device_id != root.id:
        return None
    return info.context.parts.devices.find_key_news(root.id)


def _push_endpoints(
    info: Info, root: strawberry.Parent[model.Device]
) -> list[push.PushEndpoint] | None:
    caller = info.context.principal
    if caller.device_id != root.id and not caller.may(Scope.ADMIN):
        return None
    return list(info.context.parts.push.list_of(root.id))


@strawberry.type(
    description="Where a device is told, while away, that something waits."
)
class PushEndpoint:
    """Where a device is told. Its address and keys are never shown."""

    id: strawberry.ID = plain("Its id, to remove it by.")
    kind: PushKind = plain("How it is spoken to.")
    host: str = plain("The push service's or relay's name.")
    created_at: datetime = plain("When it was first registered.")


@strawberry.type(description="A paired client with a key of its own.")
class Device(Node):
    """A paired client with a key of its own."""

    name: str = labelled("What it is called. A placeholder when content is sealed.")
    platform: str = plain("What it runs on, as it said itself, such as `ios`.")
    key: Base64 = plain("Its X25519 public key.")
    key_id: str = plain("The id of its key, as envelopes name it.")
    scopes: list[Scope] = plain("What it may do.", resolver=_scopes)
    content: ContentMode = plain("Whether it is shown texts and names in clear.")
    state: DeviceState = plain("Where it stands in its life.")
    paired_at: datetime = plain("When its owner confirmed it.")
    last_seen_at: datetime | None = plain("When it last called, to the minute.")
    revoked_at: datetime | None = plain("When it was cut off.")
    is_caller: bool = plain("Whether it is the caller.", resolver=_is_caller)
    host_key_envelope = strawberry.field(
        resolver=_host_key_envelope,
        graphql_type=Envelope | None,
        description=(
            "The host's new key, sealed by the one before it, until the key changes "
            "again: pin it. Each device sees its own only; null for everyone else."
        ),
    )

    push_endpoints = strawberry.field(
        resolver=_push_endpoints,
        graphql_type=list[PushEndpoint] | None,
        description=(
            "Where it is told while it is away. A device sees its own only, `ADMIN` "
            "all; null for everyone else. Feeds do not tell of their changes."
        ),
    )

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is a device."""
        return isinstance(value, model.Device)


DeviceConnection = Connection[Device]
ORDER: Final[Order[model.Device]] = Order(
    "devices", lambda device: (write_datetime(device.paired_at), device.id)
)


def list_devices(
    info: Info,
    first: First = strawberry.UNSET,
    after: After = strawberry.UNSET,
    last: Last = strawberry.UNSET,
    before: Before = strawberry.UNSET,
) -> Page[model.Device]:
    """Return a page of the devices, in the order they were paired."""
    request = PageRequest.of(first, after, last, before)
    return page_of(info.context.parts.devices.feed.values(), ORDER, request)


@strawberry.type(
    description="A pairing in the making, as the owner who confirms it sees it."
)
class Pairing:
    """A pairing in the making."""

    id: strawberry.ID = plain("Its id, which is also in the link.")
    state: PairingState = plain("How far it is.")
    end: PairingEnd | None = plain("Why it ended, if it did without a device.")
    name: str | None = labelled("What the device that read the link calls itself.")
    platform: str | None = plain("What that device runs on, as it says.")
    key_id: str | None = plain("The id of that device's key.")
    scopes: list[Scope] = plain("What the device will be allowed.", resolver=_scopes)
    content: ContentMode = plain("Whether it will be shown texts and names in clear.")
    expires_at: datetime = plain("When it ends by itself.")
    device_id: strawberry.ID | None = plain("The device it made, once confirmed.")


def _viewer_scopes(root: strawberry.Parent[Principal]) -> list[Scope]:
    return _ordered(root.scopes)


def _viewer_device(
    info: Info, root: strawberry.Parent[Principal]
) -> model.Device | None:
    if root.device_id is None:
        return None
    return info.context.parts.devices.feed.get(root.device_id)


@strawberry.type(description="The caller, as the server knows it.")
class Viewer:
    """The caller, as the server knows it."""

    kind: PrincipalKind = plain("What kind of credential it showed.")
    scopes: list[Scope] = plain("What it may do.", resolver=_viewer_scopes)
    content: ContentMode = plain("Whether it is shown texts and names in clear.")
    device = strawberry.field(
        resolver=_viewer_device,
        graphql_type=Device | None,
        description="The device it is; null for tokens without one.",
    )


def this_viewer(info: Info) -> Principal:
    """Return the caller."""
    return info.context.principal
