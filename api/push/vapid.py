"""The key by which push services know this server (RFC 8292)."""

import asyncio
import time
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02

from sidestage.devices.secret_file import read_secret, write_secret
from sidestage.envelopes.encoding import decode_base64url, encode_base64url

KEY_BYTES: Final = 32
TOKEN_LIFETIME_SECONDS: Final = 12 * 3600
"""RFC 8292, 2: 24 hours at most; half of it forgives clocks that differ."""


class VapidKey:
    """The private key in its file, made at the first use and never changed.

    Browsers bind their subscriptions to it: another key would end them all.
    """

    def __init__(self, path: Path, *, contact: str) -> None:
        self._path = path
        self._contact = contact
        self._vapid: Vapid02 | None = None
        self._loading = asyncio.Lock()

    async def public_key(self) -> str:
        """Return the public key as an uncompressed point, in base64url.

        Raises `StateFolderUnsafe` if others can read the file.
        """
        vapid = await self._load()
        point = vapid.public_key.public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )
        return encode_base64url(point)

    async def sign_for(self, origin: str) -> str:
        """Return the `Authorization` header for messages to *origin*."""
        vapid = await self._load()
        claims = {
            "aud": origin,
            "exp": int(time.time()) + TOKEN_LIFETIME_SECONDS,
            "sub": self._contact,
        }
        authorization: str = vapid.sign(claims)["Authorization"]
        return authorization

    async def _load(self) -> Vapid02:
        async with self._loading:
            if self._vapid is None:
                self._vapid = await asyncio.to_thread(_read_or_make, self._path)
            return self._vapid


def _read_or_make(path: Path) -> Vapid02:
    text = read_secret(path)
    if text is None:
        key = ec.generate_private_key(ec.SECP256R1())
        raw = key.private_numbers().private_value.to_bytes(KEY_BYTES, "big")
        text = encode_base64url(raw)
        write_secret(path, text)
    decode_base64url(text, length_bytes=KEY_BYTES)  # a sentence for a damaged file
    return Vapid02.from_raw(text.encode())
