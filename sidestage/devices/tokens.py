"""Bearer tokens: how they look, how they are kept, who shows a good one.

A token is `sst_<16 hex id>_<43 base64url>`. Its secret has 256 random bits, so a fast
hash suffices for what is stored (docs/security.md, "Tokens").
"""

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sidestage.devices.model import PrincipalKind, Scope
from sidestage.ids import DeviceId

SECRET_BYTES: Final = 32
_ID_BYTES: Final = 8
_FORM: Final = re.compile(r"sst_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)


@dataclass(frozen=True, slots=True)
class StoredToken:
    """What the server keeps of a token: everything but its secret."""

    id: str
    kind: PrincipalKind
    name: str
    secret_sha256: bytes = field(repr=False)
    scopes: frozenset[Scope]
    created_at: datetime
    device_id: DeviceId | None = None
    last_used_at: datetime | None = None
    expires_at: datetime | None = None
    replaced_at: datetime | None = None
    """When another one of its device took its place; it opens nothing since."""


@dataclass(frozen=True, slots=True)
class ShownToken:
    """What a caller shows: the id to look up and the secret to compare."""

    id: str
    secret: bytes = field(repr=False)

    def matches(self, stored: StoredToken | None) -> bool:
        """Compare in constant time, also when there is nothing to compare with."""
        expected = (
            stored.secret_sha256 if stored else bytes(hashlib.sha256().digest_size)
        )
        digest = hashlib.sha256(self.secret).digest()
        return hmac.compare_digest(digest, expected) and stored is not None


def mint_token(
    kind: PrincipalKind,
    scopes: frozenset[Scope],
    *,
    name: str,
    created_at: datetime,
    expires_at: datetime | None = None,
    device_id: DeviceId | None = None,
) -> tuple[str, StoredToken]:
    """Make a token: the text to hand out once, and what to keep of it."""
    token_id = secrets.token_hex(_ID_BYTES)
    secret = secrets.token_bytes(SECRET_BYTES)
    encoded = base64.urlsafe_b64encode(secret).rstrip(b"=").decode()
    stored = StoredToken(
        id=token_id,
        kind=kind,
        name=name,
        secret_sha256=hashlib.sha256(secret).digest(),
        scopes=scopes,
        created_at=created_at,
        device_id=device_id,
        expires_at=expires_at,
    )
    return f"sst_{token_id}_{encoded}", stored


def parse_token(text: str) -> ShownToken | None:
    """Take a token apart; None if it has not exactly the form of one."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    secret = base64.urlsafe_b64decode(match[2] + "=")
    # 43 characters carry 258 bits: the two spare ones must be zero, or several texts
    # would be one token.
    if base64.urlsafe_b64encode(secret).rstrip(b"=").decode() != match[2]:
        return None
    return ShownToken(match[1], secret)
