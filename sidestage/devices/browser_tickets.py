"""Tickets that let a browser log in: made for the command line, spent by the page.

A ticket travels in an address's fragment, so it is good once and for a minute. Only
hashes are kept, in memory: a restart voids them.
"""

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from sidestage.errors import TicketRefused

TICKET_LIFETIME: Final = timedelta(seconds=60)
"""A browser that is not running yet needs some seconds to open a page."""
TICKET_BYTES: Final = 32
OPEN_TICKETS_LIMIT: Final = 16
"""Nobody opens more browsers within a minute; the oldest is dropped beyond it."""
TICKET_LIMIT_CHARACTERS: Final = 128
"""Ours have 43; a longer text is not looked up."""


class BrowserTickets:
    """The tickets that are out."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._expiries: dict[bytes, datetime] = {}

    def issue(self) -> str:
        """Make a ticket; return its text, which is shown this once."""
        self._forget_expired()
        while len(self._expiries) >= OPEN_TICKETS_LIMIT:
            del self._expiries[next(iter(self._expiries))]
        text = secrets.token_urlsafe(TICKET_BYTES)
        self._expiries[_hash(text)] = self._clock() + TICKET_LIFETIME
        return text

    def spend(self, text: str) -> None:
        """Take the ticket; raises `TicketRefused` if it is spent, old or unknown."""
        self._forget_expired()
        # The lookup is by hash, so how long it takes tells nothing of the text.
        is_sane = len(text) <= TICKET_LIMIT_CHARACTERS
        if not is_sane or self._expiries.pop(_hash(text), None) is None:
            raise TicketRefused(
                "This link was used already, or is older than a minute. "
                "Run `sidestage open` again."
            )

    def _forget_expired(self) -> None:
        now = self._clock()
        for digest in [each for each, end in self._expiries.items() if end <= now]:
            del self._expiries[digest]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
