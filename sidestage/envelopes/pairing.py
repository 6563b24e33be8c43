"""Pairing: the link a device scans, and the proof that it knows the link's secret.

The secret has 128 random bits and travels by camera or as a whole link, so an HMAC is
enough. A short code that people type as *the secret* would need a PAKE instead.
"""

import hmac
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from sidestage.canonical import pae
from sidestage.envelopes.encoding import decode_base64url, encode_base64url
from sidestage.envelopes.hkdf import expand, extract
from sidestage.envelopes.keys import KEY_BYTES, PublicKey
from sidestage.errors import InvalidInput
from sidestage.ids import ID_LIMIT_CHARACTERS, HostId

PAIRING_ID_BYTES: Final = 16
SECRET_BYTES: Final = 16
NONCE_BYTES: Final = 16
PROOF_BYTES: Final = 32
LINK_LIMIT_CHARACTERS: Final = 512
"""Above 200 a code scans badly; above this a text is no link of ours."""

_DOMAIN: Final = "sidestage/pair/v1"
_VERSION: Final = "1"
_PATH: Final = "/pair"
# No dot: it separates the parts. The rest may stand in a fragment as it is.
_HOST_ID: Final = re.compile(rf"[A-Za-z0-9:_=-]{{1,{ID_LIMIT_CHARACTERS}}}")
_BASE_URL: Final = re.compile(r"https?://[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class PairingLink:
    """What the QR code says: `<base URL>/pair#1.<id>.<secret>.<host key>.<host id>`.

    Everything after `#` stays in the browser: it reaches no server and no `Referer`.
    Raises `InvalidInput` for a part that cannot stand in a link.
    """

    base_url: str
    pairing_id: str
    secret: bytes = field(repr=False)
    host_key: PublicKey
    host_id: HostId

    def __post_init__(self) -> None:
        _require_base_url(self.base_url)
        decode_base64url(self.pairing_id, length_bytes=PAIRING_ID_BYTES)
        if len(self.secret) != SECRET_BYTES or len(self.host_key.raw) != KEY_BYTES:
            raise InvalidInput("A pairing link's secret or key has a wrong length.")
        if not _HOST_ID.fullmatch(self.host_id):
            raise InvalidInput("A pairing link cannot carry this host's id.")

    def encode(self) -> str:
        """Return the link as text. It holds the secret: never log it."""
        parts = (
            _VERSION,
            self.pairing_id,
            encode_base64url(self.secret),
            encode_base64url(self.host_key.raw),
            self.host_id,
        )
        return f"{self.base_url}{_PATH}#{'.'.join(parts)}"


def parse_pairing_link(text: str) -> PairingLink:
    """Return the link in *text*; raise `InvalidInput` for anything else."""
    address, separator, fragment = text.partition("#")
    parts = fragment.split(".")
    if (
        len(text) > LINK_LIMIT_CHARACTERS
        or not separator
        or not address.endswith(_PATH)
        or len(parts) != 5
        or parts[0] != _VERSION
    ):
        raise InvalidInput("This is not a pairing link of this version.")
    _, pairing_id, secret, host_key, host_id = parts
    return PairingLink(
        base_url=address.removesuffix(_PATH),
        pairing_id=pairing_id,
        secret=decode_base64url(secret, length_bytes=SECRET_BYTES),
        host_key=PublicKey(decode_base64url(host_key, length_bytes=KEY_BYTES)),
        host_id=HostId(host_id),
    )


@dataclass(frozen=True, slots=True)
class PairingClaim:
    """What a device says when it asks to be paired, and to whom.

    *name* and *platform* are the texts exactly as they were sent, before any cleaning.
    There is no time in it: a device's clock cannot matter.
    """

    pairing_id: str
    host_id: HostId
    host_key: PublicKey
    device_key: PublicKey
    name: str
    platform: str
    nonce: bytes

    @property
    def transcript(self) -> bytes:
        """The bytes that the proof covers.

        Raises `InvalidInput` for a lone surrogate, which has no UTF-8.
        """
        parts = (
            _DOMAIN,
            self.pairing_id,
            self.host_id,
            self.host_key.raw,
            self.device_key.raw,
            self.name,
            self.platform,
            self.nonce,
        )
        try:
            return pae(parts)
        except UnicodeEncodeError:
            raise InvalidInput("A device's name must be Unicode text.") from None

    def prove(self, secret: bytes) -> bytes:
        """Return the proof that the claim comes from who read *secret*."""
        return hmac.digest(derive_pairing_key(secret), self.transcript, "sha256")

    def is_proved_by(self, proof: bytes, secret: bytes) -> bool:
        """Tell, in constant time, whether *proof* is the one `prove` returns."""
        return hmac.compare_digest(self.prove(secret), proof)


def derive_pairing_key(secret: bytes) -> bytes:
    """Return the key that pairing proofs are made with."""
    return expand(extract(b"", secret), _DOMAIN.encode("ascii"), KEY_BYTES)


def _require_base_url(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        # Reading the port is what refuses a bad one.
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if (
        not is_whole
        or not _BASE_URL.fullmatch(base_url)
        or "@" in base_url
        or "?" in base_url
        or "#" in base_url
        or base_url.endswith("/")
    ):
        raise InvalidInput("A pairing link needs the address of a server, as http(s).")
