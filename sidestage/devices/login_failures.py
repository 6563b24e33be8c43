"""Wrong tokens: how many an address may show, and one audit entry a minute for them."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.errors import RateLimited, Unauthenticated

FAILURES_PER_MINUTE: Final = 10
"""Wrong tokens an address may show a minute before it is told to wait."""
ADDRESSES_LIMIT: Final = 1_000
"""Addresses whose failures are counted at once; the oldest is forgotten beyond it."""
_MINUTE: Final = timedelta(minutes=1)


class _Failures:
    """How often an address was wrong, and since when."""

    def __init__(self, since: datetime) -> None:
        self.since = since
        self.count = 0


class LoginFailures:
    """Counts the wrong tokens of each address. *write* puts a record in the log."""

    def __init__(
        self, write: Callable[[AuditRecord], None], *, clock: Callable[[], datetime]
    ) -> None:
        self._write = write
        self._clock = clock
        self._failures: dict[str, _Failures] = {}

    def refuse(self, address: str) -> Unauthenticated | RateLimited:
        """Count a failure; return what to raise for it."""
        now = self._clock()
        failures = self._failures.get(address)
        if failures and now - failures.since >= _MINUTE:
            self._note(address)
            failures = None
        if failures is None:
            failures = self._begin(address, now)
        failures.count += 1
        if failures.count > FAILURES_PER_MINUTE:
            wait = _MINUTE - (now - failures.since)
            return RateLimited(
                "Too many wrong tokens. Wait a moment.",
                retry_after_ms=max(1, int(wait.total_seconds() * 1000)),
            )
        return Unauthenticated("This token is not known here.")

    def note_all(self) -> None:
        """Write down what was counted and not written yet."""
        for address in tuple(self._failures):
            self._note(address)

    def _begin(self, address: str, now: datetime) -> _Failures:
        if len(self._failures) >= ADDRESSES_LIMIT:
            self._note(next(iter(self._failures)))
        failures = self._failures[address] = _Failures(now)
        asyncio.get_running_loop().call_later(
            _MINUTE.total_seconds(), self._minute_over, address, failures
        )
        return failures

    def _minute_over(self, address: str, failures: _Failures) -> None:
        if self._failures.get(address) is failures:
            self._note(address)

    def _note(self, address: str) -> None:
        # One row an address and minute, with a count: a flood must not fill the disk.
        failures = self._failures.pop(address)
        self._write(
            AuditRecord(
                actor="anonymous",
                action="login.refused",
                target_id=None,
                outcome=AuditOutcome.REFUSED,
                address=address,
                detail=f"count={failures.count}",
            )
        )
