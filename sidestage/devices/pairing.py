"""Pairing a device: link, proof, the code that the owner types, credentials.

A pairing in the making lives in memory: a restart voids it. From the confirmation on it
is a row, so that its device gets the same envelope however often it asks again. Times
are the server's own; no device's clock matters (docs/handover-protocol.md).
"""

import asyncio
import hmac
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final

from sidestage.audit import AuditLog, AuditOutcome
from sidestage.devices.credentials import DeviceCredentials
from sidestage.devices.host_keys import HostKeys
from sidestage.devices.keeper import TokenKeeper
from sidestage.devices.model import (
    ContentMode,
    Device,
    DeviceState,
    Principal,
    Scope,
)
from sidestage.devices.pairing_rules import (
    CODE_DIGITS,
    ENDED_LIMIT,
    LIFETIME,
    OPEN_LIMIT,
    WRONG_CODES_LIMIT,
    WRONG_PROOFS_LIMIT,
    Rate,
    Slot,
    check_form,
    checked_scopes,
    pairing_record,
)
from sidestage.devices.pairings import (
    Claimed,
    Pairing,
    PairingEnd,
    PairingState,
    PairRequest,
)
from sidestage.devices.registry import DEVICES_LIMIT, DeviceRegistry
from sidestage.devices.sealing_desk import to_ms
from sidestage.devices.seals import Seals
from sidestage.devices.service import FIRST_CALL_WITHIN, clean_device_name
from sidestage.devices.store import PairedBy, StoredDevice
from sidestage.envelopes.encoding import encode_base64url
from sidestage.envelopes.envelope import Purpose, Subject
from sidestage.envelopes.keys import PublicKey, parse_public_key
from sidestage.envelopes.pairing import (
    PAIRING_ID_BYTES,
    SECRET_BYTES,
    PairingClaim,
    PairingLink,
)
from sidestage.errors import (
    DeviceLimitReached,
    InvalidInput,
    PairingClosed,
    PairingCodeWrong,
    PairingLimitReached,
    PairingRefused,
)
from sidestage.feeds import Feed
from sidestage.ids import DeviceId, new_id
from sidestage.text import clean_text

_REFUSED: Final = "This pairing is not open, or the proof is wrong."


class PairingService:
    """`sidestage.devices.pairings.Pairings`."""

    def __init__(
        self,
        registry: DeviceRegistry,
        keeper: TokenKeeper,
        keys: HostKeys,
        seals: Seals,
        credentials: DeviceCredentials,
        audit: AuditLog,
        *,
        rate: Rate,
        rate_of_address: Rate,
        clock: Callable[[], datetime],
    ) -> None:
        self._registry = registry
        self._keeper = keeper
        self._keys = keys
        self._seals = seals
        self._credentials = credentials
        self._audit = audit
        self._rate = rate
        self._rate_of_address = rate_of_address
        self._clock = clock
        self._slots: dict[str, Slot] = {}
        self._feed: Feed[Pairing] = Feed(lambda pairing: pairing.id, clock=clock)
        self._lock = asyncio.Lock()

    @property
    def feed(self) -> Feed[Pairing]:
        """The pairings in the making, and for a while those that ended."""
        return self._feed

    def close(self) -> None:
        """Void what is open."""
        for slot in self._slots.values():
            if slot.timer is not None:
                slot.timer.cancel()
        self._slots.clear()

    async def create(
        self,
        *,
        base_url: str,
        name: str | None,
        scopes: frozenset[Scope] | None,
        content: ContentMode,
        actor: Principal,
    ) -> tuple[Pairing, PairingLink]:
        """Open a pairing (see `Pairings.create`)."""
        chosen = checked_scopes(scopes, content)
        owner_name = None if name is None else clean_device_name(name)
        async with self._lock:
            return await self._create(base_url, owner_name, chosen, content, actor)

    async def _create(
        self,
        base_url: str,
        owner_name: str | None,
        scopes: frozenset[Scope],
        content: ContentMode,
        actor: Principal,
    ) -> tuple[Pairing, PairingLink]:
        self._check_room()
        pairing = Pairing(
            id=encode_base64url(secrets.token_bytes(PAIRING_ID_BYTES)),
            state=PairingState.OPEN,
            scopes=scopes,
            content=content,
            expires_at=self._clock() + LIFETIME,
        )
        slot = Slot(pairing, secrets.token_bytes(SECRET_BYTES), owner_name)
        link = PairingLink(
            base_url=base_url,
            pairing_id=pairing.id,
            secret=slot.secret,
            host_key=self._keys.current.public,
            host_id=self._keys.host_id,
        )
        await self._audit.write(pairing_record("pairing.create", pairing.id, actor))
        self._slots[pairing.id] = slot
        slot.timer = asyncio.get_running_loop().call_later(
            LIFETIME.total_seconds(), self._end, slot, PairingEnd.EXPIRED
        )
        self._feed.upsert(pairing)
        return pairing, link

    def _check_room(self) -> None:
        if len(self._registry.list_live()) >= DEVICES_LIMIT:
            raise DeviceLimitReached(
                f"{DEVICES_LIMIT} devices are paired; revoke one that is not used."
            )
        making = [slot for slot in self._slots.values() if self._is_in_making(slot)]
        if len(making) >= OPEN_LIMIT:
            raise PairingLimitReached(
                f"{OPEN_LIMIT} pairings are open; finish or cancel one."
            )

    async def claim(self, request: PairRequest, *, actor: Principal) -> Claimed:
        """Hear a device that says it read the link (see `Pairings.claim`)."""
        if (repeated := self._find_repeated(request)) is not None:
            return repeated
        self._rate_of_address.spend(actor.address or "", 1)
        self._rate.spend("", 1)
        check_form(request)
        async with self._lock:
            return await self._claim(request, actor)

    def _find_repeated(self, request: PairRequest) -> Claimed | None:
        """Return what the very same request got before; None if it is a new one.

        Raises `PairingClosed` if its device is in use.
        """
        paired = self._registry.find_paired(request.pairing_id)
        if paired is not None:
            if not hmac.compare_digest(paired.paired_by.request_sha256, request.digest):
                return None
            kept = self._registry.find_kept(paired.device.id, Purpose.CREDENTIALS)
            if kept is None or paired.device.state is not DeviceState.PENDING:
                raise PairingClosed("This device is paired; use its token.")
            return Claimed(kept.envelope, is_done=True)
        slot = self._slots.get(request.pairing_id)
        if slot is None or slot.request is None or not self._is_in_making(slot):
            return None
        if not hmac.compare_digest(slot.request.digest, request.digest):
            return None
        assert slot.envelope is not None, "a claimed pairing has its code sealed"
        return Claimed(slot.envelope, is_done=False)

    async def _claim(self, request: PairRequest, actor: Principal) -> Claimed:
        # Of two equal requests the second waited for the lock.
        if (repeated := self._find_repeated(request)) is not None:
            return repeated
        slot = self._slots.get(request.pairing_id)
        if slot is None or not self._is_in_making(slot):
            raise PairingRefused(_REFUSED)
        await self._check_proof(slot, request, actor)
        key = parse_public_key(request.device_key, own=self._keys.current)
        if slot.request is not None:
            if not hmac.compare_digest(slot.request.device_key, request.device_key):
                await self._burn(slot, PairingEnd.TWO_DEVICES, actor)
            raise PairingRefused(_REFUSED)
        if self._registry.is_key_known(key.raw):
            raise InvalidInput("This key was registered before; make a new one.")
        await self._bind(slot, request, key, actor)
        assert slot.envelope is not None, "it was just sealed"
        return Claimed(slot.envelope, is_done=False)

    async def _check_proof(
        self, slot: Slot, request: PairRequest, actor: Principal
    ) -> None:
        claim = PairingClaim(
            pairing_id=request.pairing_id,
            host_id=self._keys.host_id,
            host_key=self._keys.current.public,
            device_key=PublicKey(request.device_key),
            name=request.name,
            platform=request.platform,
            nonce=request.nonce,
        )
        if claim.is_proved_by(request.proof, slot.secret):
            return
        slot.wrong_proofs += 1
        if slot.wrong_proofs >= WRONG_PROOFS_LIMIT:
            await self._burn(slot, PairingEnd.WRONG_PROOFS, actor)
        raise PairingRefused(_REFUSED)

    async def _bind(
        self, slot: Slot, request: PairRequest, key: PublicKey, actor: Principal
    ) -> None:
        name = slot.owner_name or clean_device_name(request.name)
        claimed = replace(
            slot.pairing,
            state=PairingState.CLAIMED,
            name=name,
            platform=clean_text(request.platform, multiline=False),
            key_id=key.key_id,
        )
        code = f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}d}"
        envelope = self._seals.seal(
            self._device(claimed, key, DeviceId("")),
            purpose=Purpose.PAIRING_CODE,
            subject=Subject(claimed.id, "", to_ms(claimed.expires_at)),
            content={"code": code},
        )
        await self._audit.write(pairing_record("pairing.claim", claimed.id, actor))
        if not self._is_in_making(slot):
            raise PairingRefused(_REFUSED)
        slot.request, slot.code, slot.envelope = request, code, envelope
        self._put(slot, claimed)

    async def confirm(self, pairing_id: str, code: str, *, actor: Principal) -> Device:
        """Take the device in that shows *code* (see `Pairings.confirm`)."""
        async with self._lock:
            slot = self._slots.get(pairing_id)
            if slot is not None and slot.pairing.device_id is not None:
                await self._check_code(slot, code, actor)
                return self._registry.get(slot.pairing.device_id)
            if slot is None or not self._is_in_making(slot):
                raise PairingClosed("This pairing is not open any more.")
            if slot.request is None:
                raise InvalidInput("No device has read the link yet.")
            await self._check_code(slot, code, actor)
            return await self._take_in(slot, slot.request, actor)

    async def _check_code(self, slot: Slot, code: str, actor: Principal) -> None:
        # On bytes: `compare_digest` raises for a str with other than ASCII.
        if hmac.compare_digest(slot.code.encode(), code.encode("utf-8", "replace")):
            return
        if slot.pairing.state is PairingState.CLAIMED:
            slot.wrong_codes += 1
        left = WRONG_CODES_LIMIT - slot.wrong_codes
        if left <= 0:
            await self._burn(slot, PairingEnd.WRONG_CODES, actor)
            raise PairingCodeWrong("The code is wrong; the pairing has ended.")
        raise PairingCodeWrong(
            f"The code is wrong; it may be typed {left} more time(s)."
        )

    async def _take_in(
        self, slot: Slot, request: PairRequest, actor: Principal
    ) -> Device:
        if len(self._registry.list_live()) >= DEVICES_LIMIT:
            raise DeviceLimitReached(f"{DEVICES_LIMIT} devices are paired already.")
        key = PublicKey(request.device_key)
        device = self._device(slot.pairing, key, DeviceId(new_id("device")))
        until = to_ms(device.paired_at + FIRST_CALL_WITHIN)
        token, kept = self._credentials.issue(
            device, Subject(slot.pairing.id, "", until)
        )
        await self._registry.add(
            StoredDevice(device, PairedBy(slot.pairing.id, request.digest)),
            token,
            kept,
            pairing_record("device.pair", device.id, actor),
        )
        self._keeper.adopt(token)
        confirmed = replace(
            slot.pairing, state=PairingState.CONFIRMED, device_id=device.id
        )
        self._put(slot, confirmed)
        return device

    def _device(self, pairing: Pairing, key: PublicKey, device_id: DeviceId) -> Device:
        return Device(
            id=device_id,
            name=pairing.name or "",
            platform=pairing.platform or "",
            key=key.raw,
            key_id=key.key_id,
            scopes=pairing.scopes,
            content=pairing.content,
            state=DeviceState.PENDING,
            paired_at=self._clock(),
        )

    async def cancel(self, pairing_id: str, *, actor: Principal) -> Pairing:
        """End the pairing (see `Pairings.cancel`)."""
        async with self._lock:
            slot = self._slots.get(pairing_id)
            if slot is not None and slot.pairing.end is PairingEnd.CANCELLED:
                return slot.pairing
            if slot is None or not self._is_in_making(slot):
                raise PairingClosed("This pairing is not open any more.")
            await self._burn(slot, PairingEnd.CANCELLED, actor)
            return slot.pairing

    @asynccontextmanager
    async def void_all(self, *, actor: Principal) -> AsyncGenerator[None]:
        """End every pairing in the making, and let none begin while the block runs.

        For a change of the host's key, which is in their links.
        """
        async with self._lock:
            for slot in tuple(self._slots.values()):
                if self._is_in_making(slot):
                    await self._burn(slot, PairingEnd.CANCELLED, actor)
            yield

    async def _burn(self, slot: Slot, end: PairingEnd, actor: Principal) -> None:
        # Ended first: while the log is written nobody may bind or confirm.
        self._end(slot, end)
        cancelled = end is PairingEnd.CANCELLED
        record = pairing_record(
            "pairing.cancel" if cancelled else "pairing.burn", slot.pairing.id, actor
        )
        if not cancelled:
            record = replace(record, outcome=AuditOutcome.REFUSED, detail=end.value)
        await self._audit.write(record)

    def _is_in_making(self, slot: Slot) -> bool:
        """Tell whether something may come of it still; an overdue one is ended."""
        if slot.pairing.state not in (PairingState.OPEN, PairingState.CLAIMED):
            return False
        if slot.pairing.expires_at > self._clock():
            return True
        self._end(slot, PairingEnd.EXPIRED)
        return False

    def _end(self, slot: Slot, end: PairingEnd) -> None:
        if slot.pairing.state in (PairingState.OPEN, PairingState.CLAIMED):
            slot.secret, slot.envelope = b"", None
            if slot.timer is not None:
                slot.timer.cancel()
            self._put(slot, replace(slot.pairing, state=PairingState.ENDED, end=end))

    def _put(self, slot: Slot, pairing: Pairing) -> None:
        slot.pairing = pairing
        self._feed.upsert(pairing)
        over = [
            each
            for each in self._slots.values()
            if each.pairing.state in (PairingState.CONFIRMED, PairingState.ENDED)
        ]
        for old in over[: len(over) - ENDED_LIMIT]:
            self._feed.remove(old.pairing.id)
            del self._slots[old.pairing.id]
