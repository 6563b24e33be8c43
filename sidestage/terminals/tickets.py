"""Tickets: each admits one client to one terminal once."""

import base64
import hashlib
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sidestage.devices.model import Principal
from sidestage.errors import RateLimited, TicketRefused
from sidestage.ids import TerminalId
from sidestage.terminals.desk import Admission, Ticket, TicketMode

TICKET_LIFETIME: Final = timedelta(seconds=60)
"""Long enough for a phone to open a socket, short enough to be useless when found."""
OPEN_TICKETS_LIMIT: Final = 256
"""Unspent tickets at once: four a second for their whole life. Beyond them the oldest
goes of the token that has the most."""
TOKEN_TICKETS_LIMIT: Final = 64
"""Unspent tickets of one token: a dashboard that opens every terminal, twice."""
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class _Open:
    admission: Admission
    expires_at: datetime


class TicketBox:
    """The tickets that were issued and not spent. Only their hashes are kept."""

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._open: dict[bytes, _Open] = {}

    def issue(
        self, terminal_id: TerminalId, mode: TicketMode, principal: Principal
    ) -> Ticket:
        """Make a ticket; raises `RateLimited` if the token has too many unspent."""
        self._forget_expired(self._clock())
        if len(self._of(principal.credential)) >= TOKEN_TICKETS_LIMIT:
            raise RateLimited(
                "Too many tickets are open. Use them, or wait until they expire.",
                retry_after_ms=int(TICKET_LIFETIME.total_seconds() * 1000),
            )
        return self._issue(terminal_id, mode, principal)

    def issue_for_start(self, terminal_id: TerminalId, principal: Principal) -> Ticket:
        """Make a `CONTROL` ticket for what the caller just started; never refuses.

        The terminal runs by now. The caller's oldest ticket goes if it has too many.
        """
        self._forget_expired(self._clock())
        own = self._of(principal.credential)
        if len(own) >= TOKEN_TICKETS_LIMIT:
            del self._open[own[0]]
        return self._issue(terminal_id, TicketMode.CONTROL, principal)

    def _issue(
        self, terminal_id: TerminalId, mode: TicketMode, principal: Principal
    ) -> Ticket:
        if len(self._open) >= OPEN_TICKETS_LIMIT:
            del self._open[self._of(self._richest())[0]]
        secret = base64.urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES))
        expires_at = self._clock() + TICKET_LIFETIME
        admission = Admission(terminal_id, mode, principal)
        text = secret.rstrip(b"=").decode()
        self._open[_digest(text)] = _Open(admission, expires_at)
        return Ticket(
            secret=text,
            terminal_id=terminal_id,
            mode=mode,
            expires_at=expires_at,
            socket_path=f"terminals/{terminal_id}/socket",
        )

    def spend(self, terminal_id: TerminalId, secret: str) -> Admission:
        """Use a ticket up, whatever comes of it; raises `TicketRefused`."""
        # One answer for every reason: who guesses learns nothing.
        found = self._open.pop(_digest(secret), None)
        if (
            found is None
            or found.expires_at <= self._clock()
            or found.admission.terminal_id != terminal_id
        ):
            raise TicketRefused("This ticket is not good here. Ask for a new one.")
        return found.admission

    def drop_token(self, token_id: str) -> None:
        """Void every ticket that was issued to the token."""
        self._open = {
            digest: ticket
            for digest, ticket in self._open.items()
            if ticket.admission.principal.token_id != token_id
        }

    def _of(self, credential: str) -> list[bytes]:
        """Return the digests of the credential's tickets, the oldest first."""
        return [
            digest
            for digest, ticket in self._open.items()
            if ticket.admission.principal.credential == credential
        ]

    def _richest(self) -> str:
        held = Counter(
            ticket.admission.principal.credential for ticket in self._open.values()
        )
        return held.most_common(1)[0][0]

    def _forget_expired(self, now: datetime) -> None:
        self._open = {
            digest: ticket
            for digest, ticket in self._open.items()
            if ticket.expires_at > now
        }


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
