"""Tokens of devices: sealed for their key, and what their first use brings about."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.devices.host_keys import HostKeys
from sidestage.devices.keeper import DEVICE_IDLE, TokenKeeper
from sidestage.devices.model import (
    ContentMode,
    Device,
    DeviceState,
    Principal,
    PrincipalKind,
)
from sidestage.devices.registry import DeviceRegistry
from sidestage.devices.sealing_desk import to_ms
from sidestage.devices.seals import Seals
from sidestage.devices.store import KeptEnvelope
from sidestage.devices.tokens import StoredToken, mint_token
from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.errors import DeviceKeyRequired, InvalidInput
from sidestage.ids import DeviceId


class DeviceCredentials:
    """`sidestage.devices.keeper.DeviceCalls`, and new tokens for old ones."""

    def __init__(
        self,
        registry: DeviceRegistry,
        keeper: TokenKeeper,
        keys: HostKeys,
        seals: Seals,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._registry = registry
        self._keeper = keeper
        self._keys = keys
        self._seals = seals
        self._clock = clock

    def content_of(self, device_id: DeviceId) -> ContentMode:
        """Return how much clear text the device is shown."""
        return self._registry.get(device_id).content

    async def seen(self, device_id: DeviceId, at: datetime) -> None:
        """Note when the device last called."""
        await self._registry.mark_seen(device_id, at)

    async def called(self, token: StoredToken) -> None:
        """At a token's first use drop its envelope, and the tokens it replaces."""
        if not self._is_new(token):
            return
        async with self._registry.changing:
            # Another call with it, or a revocation, may have come first.
            if self._is_new(token) and token.device_id is not None:
                await self._activate(self._registry.get(token.device_id), token)

    def _is_new(self, token: StoredToken) -> bool:
        if token.device_id is None:
            return False
        kept = self._registry.find_kept(token.device_id, Purpose.CREDENTIALS)
        return kept is not None and kept.token_id == token.id

    async def _activate(self, device: Device, token: StoredToken) -> None:
        old = tuple(
            token_id
            for token_id in self._keeper.list_device_tokens(device.id)
            if token_id != token.id
        )
        is_first = device.state is DeviceState.PENDING
        record = AuditRecord(
            actor=device.id,
            action="device.activate" if is_first else "token.refresh",
            target_id=device.id if is_first else f"token:{token.id}",
            outcome=AuditOutcome.DONE,
        )
        active = replace(device, state=DeviceState.ACTIVE)
        await self._registry.activate(active, old, record)
        self._keeper.replaced(device.id, old)

    def issue(
        self, device: Device, subject: Subject
    ) -> tuple[StoredToken, KeptEnvelope]:
        """Make a token for *device*: what to keep of it, and the envelope with it."""
        text, token = mint_token(
            PrincipalKind.DEVICE,
            device.scopes,
            name=device.name,
            created_at=self._clock(),
            device_id=device.id,
        )
        content: dict[str, Any] = {
            "deviceId": device.id,
            "token": text,
            "scopes": sorted(device.scopes),
        }
        envelope = self._seals.seal(
            device, purpose=Purpose.CREDENTIALS, subject=subject, content=content
        )
        kept = KeptEnvelope(device.id, Purpose.CREDENTIALS, envelope, token.id)
        return token, kept

    async def refresh(self, device_key_id: str, *, actor: Principal) -> Envelope:
        """Return a new token of the caller, sealed; the same one until it is used."""
        device = actor.device_id and self._registry.feed.get(actor.device_id)
        if not device:
            raise DeviceKeyRequired("Only a paired device has a token to refresh.")
        if device.key_id != device_key_id:
            raise InvalidInput("deviceKeyId is not the id of this device's key.")
        async with self._registry.changing:
            kept = self._registry.find_kept(device.id, Purpose.CREDENTIALS)
            if kept is None or not self._is_of_use(kept):
                kept = await self._renew(self._registry.get(device.id), kept, actor)
        return kept.envelope

    def _is_of_use(self, kept: KeptEnvelope) -> bool:
        """Tell whether its device can open it, and its token would be let in."""
        is_current = (
            kept.envelope.header.host_key_id == self._keys.current.public.key_id
        )
        is_good = kept.token_id is not None and self._keeper.is_good(kept.token_id)
        return is_current and is_good

    async def _renew(
        self, device: Device, never_opened: KeptEnvelope | None, actor: Principal
    ) -> KeptEnvelope:
        if device.state is not DeviceState.ACTIVE:
            raise DeviceKeyRequired("This device is revoked.")
        expires_at_ms = to_ms(self._clock() + DEVICE_IDLE)
        token, kept = self.issue(device, Subject("", "", expires_at_ms))
        record = AuditRecord(
            actor=actor.actor,
            address=actor.address,
            action="token.issue",
            target_id=f"token:{token.id}",
            outcome=AuditOutcome.DONE,
        )
        old = never_opened.token_id if never_opened else None
        await self._registry.refresh(token, kept, old, record)
        self._keeper.adopt(token)
        return kept
