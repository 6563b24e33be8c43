"""What a pairing is held to: limits, scopes, the form of a request."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.devices.model import ContentMode, Principal, Scope
from sidestage.devices.pairings import Pairing, PairRequest
from sidestage.devices.service import clean_device_name
from sidestage.envelopes.envelope import Envelope
from sidestage.envelopes.keys import KEY_BYTES
from sidestage.envelopes.pairing import NONCE_BYTES, PROOF_BYTES
from sidestage.errors import InvalidInput
from sidestage.text import clean_text

LIFETIME: Final = timedelta(minutes=5)
OPEN_LIMIT: Final = 3
"""Pairings in the making: more than one owner needs."""
ENDED_LIMIT: Final = 10
"""Ended ones that are still told."""
WRONG_PROOFS_LIMIT: Final = 5
WRONG_CODES_LIMIT: Final = 3
"""Of a million codes: a stranger's chance is 3 in a million."""
CODE_DIGITS: Final = 6
PLATFORM_LIMIT_CHARACTERS: Final = 32
RAW_LIMIT_CHARACTERS: Final = 256
"""Of a name before it is cleaned."""
DEFAULT_SCOPES: Final = frozenset(
    {Scope.VIEW, Scope.READ, Scope.ANSWER, Scope.TERMINAL}
)
SEALED_SCOPES: Final = frozenset({Scope.VIEW, Scope.ANSWER})
"""All that a device with sealed content may have: the rest shows texts in clear."""
REQUESTS_A_MINUTE: Final = 60
"""Requests to be paired, from everywhere; repeating a known one is free."""
REQUESTS_A_MINUTE_FROM_ADDRESS: Final = 10


class Rate(Protocol):
    """A limit of how often a caller may do something."""

    def spend(self, caller: str, points: float) -> None:
        """Count *points*; raises `RateLimited`."""


@dataclass(slots=True)
class Slot:
    """A pairing with what only the server knows of it."""

    pairing: Pairing
    secret: bytes = field(repr=False)
    owner_name: str | None
    wrong_proofs: int = 0
    wrong_codes: int = 0
    request: PairRequest | None = None
    code: str = field(default="", repr=False)
    envelope: Envelope | None = None
    timer: asyncio.TimerHandle | None = None


def checked_scopes(
    scopes: frozenset[Scope] | None, content: ContentMode
) -> frozenset[Scope]:
    """Return the scopes the device gets; raise `InvalidInput` for unfit ones."""
    most = SEALED_SCOPES if content is ContentMode.SEALED else frozenset(Scope)
    chosen = (DEFAULT_SCOPES & most) if scopes is None else scopes
    if Scope.VIEW not in chosen:
        raise InvalidInput("Every device has the scope VIEW.")
    if not chosen <= most:
        raise InvalidInput(
            "A device with sealed content may have VIEW and ANSWER only: the other "
            "scopes show texts in clear."
        )
    return chosen


def check_form(request: PairRequest) -> None:
    """Raise `InvalidInput` for what no honest device sends."""
    lengths = (
        ("deviceKey", request.device_key, KEY_BYTES),
        ("nonce", request.nonce, NONCE_BYTES),
        ("proof", request.proof, PROOF_BYTES),
    )
    for name, value, length in lengths:
        if len(value) != length:
            raise InvalidInput(f"{name} has {length} bytes.")
    if max(len(request.name), len(request.platform)) > RAW_LIMIT_CHARACTERS:
        raise InvalidInput("name and platform are too long.")
    clean_device_name(request.name)
    platform = clean_text(request.platform, multiline=False)
    if not 1 <= len(platform) <= PLATFORM_LIMIT_CHARACTERS:
        raise InvalidInput(f"platform has 1 to {PLATFORM_LIMIT_CHARACTERS} characters.")


def pairing_record(action: str, target_id: str, actor: Principal) -> AuditRecord:
    """Return what the audit log says of a step of a pairing."""
    return AuditRecord(
        actor=actor.actor,
        address=actor.address,
        action=action,
        target_id=target_id,
        outcome=AuditOutcome.DONE,
    )
