"""The endpoints by which devices are told, each change written down first."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.devices.model import DeviceState, Principal, Scope
from sidestage.devices.push import (
    Courier,
    NewEndpoint,
    PushEndpoint,
    PushKind,
    PushStore,
    WebPushKeys,
)
from sidestage.devices.registry import DeviceRegistry
from sidestage.envelopes.encoding import decode_base64url
from sidestage.errors import (
    DeviceKeyRequired,
    InvalidInput,
    PushEndpointLimitReached,
    PushEndpointNotFound,
)
from sidestage.ids import DeviceId, new_id

ENDPOINTS_LIMIT: Final = 4
"""Of one device: a browser has one, an app one, and one may be on its way out."""
P256DH_BYTES: Final = 65
"""An uncompressed point of P-256 (RFC 8291, 3.2)."""
AUTH_BYTES: Final = 16
"""RFC 8291, 3.2."""
SECRET_LEAST_BYTES: Final = 16
SECRET_MOST_BYTES: Final = 64
"""The block of SHA-256: a longer key is hashed first."""


class PushEndpoints:
    """`sidestage.devices.push.PushDesk`. `put_all` what was stored first."""

    def __init__(
        self,
        registry: DeviceRegistry,
        courier: Courier,
        store: PushStore,
        vapid_public_key: Callable[[], Awaitable[str]],
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._registry = registry
        self._courier = courier
        self._store = store
        self._vapid_public_key = vapid_public_key
        self._clock = clock
        self._endpoints: dict[str, PushEndpoint] = {}
        self._changing = asyncio.Lock()

    def put_all(self, endpoints: tuple[PushEndpoint, ...]) -> None:
        """Take over what was stored."""
        self._endpoints.update({endpoint.id: endpoint for endpoint in endpoints})

    def list_of(self, device_id: DeviceId) -> tuple[PushEndpoint, ...]:
        """Return the device's endpoints, oldest first; none once it is revoked."""
        device = self._registry.feed.get(device_id)
        if device is None or device.state is DeviceState.REVOKED:
            return ()
        found = self._endpoints.values()
        return tuple(each for each in found if each.device_id == device_id)

    def is_current(self, endpoint: PushEndpoint) -> bool:
        """Tell whether *endpoint* stands as it is."""
        return endpoint in self.list_of(endpoint.device_id)

    async def vapid_public_key(self) -> str:
        """Return the key that browsers subscribe with, in base64url."""
        return await self._vapid_public_key()

    async def register(self, new: NewEndpoint, *, actor: Principal) -> PushEndpoint:
        """Take an endpoint of the calling device in; the same address again is one."""
        if actor.device_id is None:
            raise DeviceKeyRequired("Only a paired device can be told by push.")
        endpoint = _endpoint(new, actor.device_id, self._clock())
        await self._courier.check(endpoint)
        # The registry's lock: no device is revoked between this look and the row.
        async with self._registry.changing, self._changing:
            self._check_device(actor.device_id)
            own = self.list_of(actor.device_id)
            same = next((each for each in own if each.url == endpoint.url), None)
            if same is not None:
                endpoint = replace(endpoint, id=same.id, created_at=same.created_at)
            elif len(own) >= ENDPOINTS_LIMIT:
                raise PushEndpointLimitReached(
                    f"A device has {ENDPOINTS_LIMIT} push endpoints at most."
                )
            await self._store.put(endpoint, _record("push.register", endpoint, actor))
            self._endpoints[endpoint.id] = endpoint
        return endpoint

    async def remove(self, endpoint_id: str, *, actor: Principal) -> PushEndpoint:
        """Forget an endpoint: the caller's own, or anyone's for `ADMIN`."""
        async with self._changing:
            endpoint = self._endpoints.get(endpoint_id)
            if endpoint is None or not _may_remove(endpoint, actor):
                raise PushEndpointNotFound("There is no such push endpoint.")
            record = _record("push.remove", endpoint, actor)
            await self._store.remove(endpoint_id, record)
            del self._endpoints[endpoint_id]
        return endpoint

    async def drop_gone(self, endpoint: PushEndpoint) -> None:
        """Forget an endpoint of which its service says that it exists no more."""
        async with self._changing:
            if self._endpoints.get(endpoint.id) == endpoint:
                record = _record("push.gone", endpoint, None)
                await self._store.remove(endpoint.id, record)
                del self._endpoints[endpoint.id]

    def forget_devices(self, live: frozenset[DeviceId]) -> None:
        """Forget the endpoints of all but *live*: their rows are deleted already."""
        kept = {k: v for k, v in self._endpoints.items() if v.device_id in live}
        self._endpoints = kept

    def _check_device(self, device_id: DeviceId) -> None:
        device = self._registry.feed.get(device_id)
        if device is None or device.state is DeviceState.REVOKED:
            raise DeviceKeyRequired("The calling device is not paired any more.")


def _may_remove(endpoint: PushEndpoint, actor: Principal) -> bool:
    return actor.may(Scope.ADMIN) or actor.device_id == endpoint.device_id


def _endpoint(new: NewEndpoint, device_id: DeviceId, now: datetime) -> PushEndpoint:
    is_web_push = new.kind is PushKind.WEB_PUSH
    return PushEndpoint(
        id=new_id("push"),
        device_id=device_id,
        url=new.url,
        created_at=now,
        keys=_keys(new) if is_web_push else None,
        secret=None if is_web_push else _secret(new),
    )


def _keys(new: NewEndpoint) -> WebPushKeys:
    if new.p256dh is None or new.auth is None or new.secret is not None:
        raise InvalidInput("WEB_PUSH needs p256dh and auth, and has no secret.")
    return WebPushKeys(
        p256dh=decode_base64url(new.p256dh.rstrip("="), length_bytes=P256DH_BYTES),
        auth=decode_base64url(new.auth.rstrip("="), length_bytes=AUTH_BYTES),
    )


def _secret(new: NewEndpoint) -> bytes:
    if new.secret is None or new.p256dh is not None or new.auth is not None:
        raise InvalidInput("WEBHOOK needs a secret, and has no p256dh and no auth.")
    if not SECRET_LEAST_BYTES <= len(new.secret) <= SECRET_MOST_BYTES:
        raise InvalidInput(
            f"secret must have {SECRET_LEAST_BYTES} to {SECRET_MOST_BYTES} bytes."
        )
    return new.secret


def _record(
    action: str, endpoint: PushEndpoint, actor: Principal | None
) -> AuditRecord:
    # The host alone: who knows the path can write to the endpoint.
    return AuditRecord(
        actor="system" if actor is None else actor.actor,
        address=None if actor is None else actor.address,
        action=action,
        target_id=endpoint.device_id,
        outcome=AuditOutcome.DONE,
        detail=f"endpoint={endpoint.id} kind={endpoint.kind} host={endpoint.host}",
    )
