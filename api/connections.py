"""Every open socket and stream: how many, of whom, and how they are ended."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from api.limits import Limits
from sidestage.devices.model import Authenticator
from sidestage.errors import RateLimited

log = logging.getLogger(__name__)

FULL_RETRY_MS = 5000
"""When to come back to a full server."""


WATCH_AGAIN_SECONDS = 1.0
"""After watching failed; it only fails by a bug, which must not spin."""


class Connection(Protocol):
    """A socket or stream that outlives one request."""

    def revoke(self) -> None:
        """End it: its token is not good any more."""

    def restart(self) -> None:
        """End it: the server stops, and the client should come back."""


class Newcomer(Protocol):
    """A socket that has not shown a token yet."""

    def turn_away(self) -> None:
        """End it: others came since, and it still has not said who it is."""


class Connections:
    """Counts connections, and ends those of a revoked token."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.dropped: Counter[str] = Counter()
        """How many the server ended, by reason."""
        self._open: set[Connection] = set()
        self._addresses: Counter[str] = Counter()
        self._by_token: dict[str, set[Connection]] = {}
        self._newcomers: dict[Newcomer, None] = {}
        self._is_stopping = False
        self._all_closed = asyncio.Event()
        self._all_closed.set()

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._open)

    @contextmanager
    def opened(self, connection: Connection, address: str | None) -> Iterator[None]:
        """Count *connection* while the block runs; raises `RateLimited` when full."""
        where = address or ""
        if (
            self._is_stopping
            or len(self._open) >= self._limits.connections
            or self._addresses[where] >= self._limits.connections_per_address
        ):
            self.dropped["full"] += 1
            raise RateLimited(
                "Too many connections are open.", retry_after_ms=FULL_RETRY_MS
            )
        self._open.add(connection)
        self._all_closed.clear()
        self._addresses[where] += 1
        try:
            yield
        finally:
            self._open.discard(connection)
            if not self._open:
                self._all_closed.set()
            self._addresses[where] -= 1
            if not self._addresses[where]:
                del self._addresses[where]

    @contextmanager
    def uninitialised(self, newcomer: Newcomer) -> Iterator[None]:
        """Count a socket without a token yet while the block runs.

        When there are too many, the oldest one goes: an honest client shows its token
        at once, so a stranger who holds many open keeps nobody out.
        """
        if len(self._newcomers) >= self._limits.uninitialised:
            oldest = next(iter(self._newcomers))
            del self._newcomers[oldest]
            self.dropped["no_token"] += 1
            oldest.turn_away()
        self._newcomers[newcomer] = None
        try:
            yield
        finally:
            self._newcomers.pop(newcomer, None)

    def tokens(self) -> tuple[str, ...]:
        """Return the ids of the tokens that connections are tied to."""
        return tuple(self._by_token)

    @contextmanager
    def of_token(self, connection: Connection, token_id: str | None) -> Iterator[None]:
        """Tie *connection* to its token while the block runs."""
        if token_id is None:
            yield
            return
        tied = self._by_token.setdefault(token_id, set())
        tied.add(connection)
        try:
            yield
        finally:
            tied.discard(connection)
            if not tied:
                self._by_token.pop(token_id, None)

    async def watch(self, authenticator: Authenticator) -> None:
        """End the connections of each token that is revoked or expires, for ever."""
        while True:
            try:
                async for token_id in authenticator.watch_revocations():
                    self._revoke(token_id)
            except Exception:  # a task's top: without it no revocation would be heard
                log.exception("Watching for revoked tokens failed")
            # What was revoked meanwhile is not known: everyone shows a token again.
            for token_id in tuple(self._by_token):
                self._revoke(token_id)
            await asyncio.sleep(WATCH_AGAIN_SECONDS)

    def _revoke(self, token_id: str) -> None:
        for connection in tuple(self._by_token.get(token_id, ())):
            self.dropped["revoked"] += 1
            connection.revoke()

    async def stop(self, *, patience_seconds: float) -> None:
        """Tell every connection that the server restarts, and wait for them to end."""
        self._is_stopping = True
        for connection in tuple(self._open):
            connection.restart()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_seconds):
                await self._all_closed.wait()
