"""Idempotency keys: the same key with the same input starts nothing twice."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sidestage.canonical import pae
from sidestage.errors import IdempotencyKeyReused, InvalidInput
from sidestage.ids import TerminalId
from sidestage.terminals.model import Terminal
from sidestage.terminals.store import StartKey

KEY_LIFETIME: Final = timedelta(hours=24)
KEY_LIMIT_CHARACTERS: Final = 128
KEYS_LIMIT: Final = 10_000
"""Keys remembered at once: seven starts a minute for a whole day."""

REUSED: Final = "This idempotency key was used with another input."
CLOSED: Final = "What this idempotency key started is closed. Use a new key."


@dataclass(slots=True)
class _Known:
    key: StartKey
    outcome: "asyncio.Future[Terminal] | None"
    """Set while the start is in flight."""


class StartKeys:
    """The keys of the last day, and the starts in flight that own one."""

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._known: dict[str, _Known] = {}

    def restore(self, keys: tuple[StartKey, ...]) -> None:
        """Take over what was written down by an earlier run."""
        for key in keys:
            self._known[key.key] = _Known(key, None)

    def find(self, key: str | None, input_sha256: str) -> "_Known | None":
        """Return what the bound key started before, in flight or done.

        Raises `IdempotencyKeyReused` for one that came with another input.
        """
        if key is None:
            return None
        known = self._known.get(key)
        if known is None or known.key.created_at <= self._clock() - KEY_LIFETIME:
            return None
        if known.key.input_sha256 != input_sha256:
            raise IdempotencyKeyReused(REUSED)
        return known

    def claim(
        self,
        key: str | None,
        input_sha256: str,
        terminal_id: TerminalId,
        outcome: "asyncio.Future[Terminal]",
    ) -> StartKey | None:
        """Note that a start in flight owns the bound *key*."""
        if key is None:
            return None
        if len(self._known) >= KEYS_LIMIT:
            self.forget_old()
        start_key = StartKey(key, input_sha256, terminal_id, self._clock())
        self._known[key] = _Known(start_key, outcome)
        return start_key

    def settle(self, key: StartKey | None) -> None:
        """Note that the start of *key* is done; its terminal answers from now on."""
        if key is not None and key.key in self._known:
            self._known[key.key].outcome = None

    def release(self, terminal_id: TerminalId) -> None:
        """Forget the keys of a start that came to nothing."""
        self._known = {
            text: known
            for text, known in self._known.items()
            if known.key.terminal_id != terminal_id
        }

    def forget_old(self) -> datetime:
        """Forget the keys whose day is over; return the moment before which."""
        before = self._clock() - KEY_LIFETIME
        self._known = {
            text: known
            for text, known in self._known.items()
            if known.key.created_at > before or known.outcome is not None
        }
        return before


def bound_key(key: str | None, credential: str) -> str | None:
    """Return *key* as it is kept: that of another credential is another key.

    Raises `InvalidInput` for one of a wrong form.
    """
    if key is None:
        return None
    if not 1 <= len(key) <= KEY_LIMIT_CHARACTERS:
        raise InvalidInput(
            f"An idempotency key has 1 to {KEY_LIMIT_CHARACTERS} characters."
        )
    return f"{hashlib.sha256(credential.encode()).hexdigest()}:{key}"


def input_digest(*parts: str) -> str:
    """Return what stands for an input: the hex SHA-256 of its canonical form."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return hashlib.sha256(pae(encoded)).hexdigest()
