"""The host's X25519 key: made once, changed on demand, the one before it in grace.

Current key and the one before stand in one file, which is replaced as a whole, so a
crash leaves either the old pair or the new one.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson

from sidestage.devices.secret_file import read_secret, write_secret
from sidestage.envelopes.encoding import decode_base64url, encode_base64url
from sidestage.envelopes.keys import KEY_BYTES, PrivateKey
from sidestage.envelopes.opening import HostIdentity
from sidestage.errors import InvalidInput, StateFolderUnsafe
from sidestage.ids import HostId

GRACE: Final = timedelta(days=7)
"""How long the key before still opens answers: offers live for twelve hours, devices
may be out of reach for days."""


@dataclass(frozen=True, slots=True)
class PreviousKey:
    """The key before the current one; *until* it still opens and announces."""

    key: PrivateKey
    rotated_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class _Ring:
    current: PrivateKey
    previous: PreviousKey | None = None


class HostKeys:
    """The keys of this host. `load` it before anything else."""

    def __init__(
        self, path: Path, host_id: HostId, *, clock: Callable[[], datetime]
    ) -> None:
        self._path = path
        self._host_id = host_id
        self._clock = clock
        self._ring: _Ring | None = None

    async def load(self) -> None:
        """Read the file, or make it at the first start.

        Raises `StateFolderUnsafe` if it is damaged, a link, or readable by others.
        """
        text = await asyncio.to_thread(read_secret, self._path)
        if text is None:
            await self._save(_Ring(PrivateKey.generate()))
            return
        self._ring = _parse(text, self._path)
        await self.forget_expired()

    @property
    def host_id(self) -> HostId:
        """The host these keys are of."""
        return self._host_id

    @property
    def current(self) -> PrivateKey:
        """The key that seals, and that devices pin."""
        return self._loaded.current

    @property
    def previous(self) -> PreviousKey | None:
        """The key before, while it is in grace."""
        previous = self._loaded.previous
        if previous is None or previous.until <= self._clock():
            return None
        return previous

    @property
    def identity(self) -> HostIdentity:
        """What answers may be sealed for: the current key, then the one in grace."""
        previous = self.previous
        keys = (self.current,) if previous is None else (self.current, previous.key)
        return HostIdentity(self._host_id, keys)

    async def rotate(self, *, keep_previous: bool) -> None:
        """Make a new key. The old one stays in grace, or is erased at once."""
        now = self._clock()
        previous = PreviousKey(self.current, now, now + GRACE)
        new = _Ring(PrivateKey.generate(), previous if keep_previous else None)
        await self._save(new)

    async def forget_expired(self) -> None:
        """Erase the key before once its grace is over."""
        if self._loaded.previous is not None and self.previous is None:
            await self._save(replace(self._loaded, previous=None))

    @property
    def _loaded(self) -> _Ring:
        if self._ring is None:
            raise RuntimeError("The host's keys were not loaded.")
        return self._ring

    async def _save(self, ring: _Ring) -> None:
        await asyncio.to_thread(write_secret, self._path, _encode(ring))
        self._ring = ring


def _encode(ring: _Ring) -> str:
    value: dict[str, Any] = {"current": encode_base64url(ring.current.secret)}
    if ring.previous is not None:
        value["previous"] = {
            "key": encode_base64url(ring.previous.key.secret),
            "rotatedAt": ring.previous.rotated_at.astimezone(UTC).isoformat(),
            "until": ring.previous.until.astimezone(UTC).isoformat(),
        }
    return orjson.dumps(value).decode("ascii")


def _parse(text: str, path: Path) -> _Ring:
    try:
        value = orjson.loads(text)
        previous = value.get("previous")
        return _Ring(
            _key(value["current"]),
            previous
            and PreviousKey(
                _key(previous["key"]),
                datetime.fromisoformat(previous["rotatedAt"]),
                datetime.fromisoformat(previous["until"]),
            ),
        )
    except (ValueError, TypeError, KeyError, AttributeError, InvalidInput) as error:
        raise StateFolderUnsafe(
            f"{path} is damaged. Restore it, or remove it: every device must then be "
            "paired again."
        ) from error


def _key(text: str) -> PrivateKey:
    return PrivateKey.from_secret(decode_base64url(text, length_bytes=KEY_BYTES))
