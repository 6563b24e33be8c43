"""Pairings as values, and the port that resolvers call."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from sidestage.canonical import pae
from sidestage.devices.model import ContentMode, Device, Principal, Scope
from sidestage.envelopes.envelope import Envelope
from sidestage.envelopes.pairing import PairingLink
from sidestage.feeds import Feed
from sidestage.ids import DeviceId


class PairingState(StrEnum):
    """How far a pairing is, as its owner sees it."""

    OPEN = "OPEN"
    """The link was made; no device proved yet that it read it."""
    CLAIMED = "CLAIMED"
    """A device proved it, and shows the code that the owner is to type."""
    CONFIRMED = "CONFIRMED"
    """The owner typed the code; the device may fetch its token."""
    ENDED = "ENDED"
    """Nothing can come of it any more."""


class PairingEnd(StrEnum):
    """Why nothing can come of a pairing."""

    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"
    TWO_DEVICES = "TWO_DEVICES"
    """Two devices proved that they read the link: one of them is a stranger's."""
    WRONG_PROOFS = "WRONG_PROOFS"
    WRONG_CODES = "WRONG_CODES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A pairing in the making. *name*, *platform*, *key_id*: the claiming device's."""

    id: str
    state: PairingState
    scopes: frozenset[Scope]
    content: ContentMode
    expires_at: datetime
    name: str | None = None
    platform: str | None = None
    key_id: str | None = None
    end: PairingEnd | None = None
    device_id: DeviceId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRequest:
    """What a device sends to be paired; a retry sends it again, byte for byte."""

    pairing_id: str
    device_key: bytes
    name: str
    platform: str
    nonce: bytes
    proof: bytes = field(repr=False)

    @property
    def digest(self) -> bytes:
        """SHA-256 over all of it: equal means the same request came again."""
        texts = (self.pairing_id, self.name, self.platform)
        # Lone surrogates have no UTF-8; they are refused later, with a sentence.
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        parts += [self.device_key, self.nonce, self.proof]
        return hashlib.sha256(pae(("sidestage/pair-request/v1", *parts))).digest()


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a device that asked to be paired gets, sealed for its key.

    The code to show while *device* is None, its credentials afterwards.
    """

    envelope: Envelope
    is_done: bool


class Pairings(Protocol):
    """Pairing, from the link to the device's token."""

    @property
    def feed(self) -> Feed[Pairing]:
        """The pairings in the making, and for a while those that ended."""

    async def create(
        self,
        *,
        base_url: str,
        name: str | None,
        scopes: frozenset[Scope] | None,
        content: ContentMode,
        actor: Principal,
    ) -> tuple[Pairing, PairingLink]:
        """Open a pairing; its link holds the secret and is shown once.

        Raises `InvalidInput`, `PairingLimitReached`, `DeviceLimitReached`.
        """

    async def claim(self, request: PairRequest, *, actor: Principal) -> Claimed:
        """Hear a device that says it read the link.

        Raises `PairingRefused`, `PairingClosed`, `InvalidInput`, `RateLimited`.
        """

    async def confirm(self, pairing_id: str, code: str, *, actor: Principal) -> Device:
        """Take the device in that shows *code*.

        Raises `PairingClosed`, `PairingCodeWrong`, `InvalidInput`,
        `DeviceLimitReached`.
        """

    async def cancel(self, pairing_id: str, *, actor: Principal) -> Pairing:
        """End the pairing; raises `PairingClosed` if it ended otherwise."""
