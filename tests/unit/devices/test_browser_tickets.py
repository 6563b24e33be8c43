"""Tickets of `sidestage open`: good once, for a minute."""

from datetime import UTC, datetime, timedelta

import pytest

from sidestage.devices.browser_tickets import (
    OPEN_TICKETS_LIMIT,
    TICKET_LIFETIME,
    BrowserTickets,
)
from sidestage.errors import TicketRefused


class Clock:
    """A time that stands until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 12, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_a_ticket_is_good_once() -> None:
    tickets = BrowserTickets(Clock())
    ticket = tickets.issue()
    tickets.spend(ticket)
    with pytest.raises(TicketRefused):
        tickets.spend(ticket)


def test_a_ticket_is_good_for_a_minute() -> None:
    clock = Clock()
    tickets = BrowserTickets(clock)
    in_time, late = tickets.issue(), tickets.issue()
    clock.now += TICKET_LIFETIME - timedelta(milliseconds=1)
    tickets.spend(in_time)
    clock.now += timedelta(milliseconds=1)
    with pytest.raises(TicketRefused):
        tickets.spend(late)


@pytest.mark.parametrize("text", ["", "x", "é", "\ud800", "x" * 100_000])
def test_what_never_was_a_ticket_is_refused(text: str) -> None:
    tickets = BrowserTickets(Clock())
    tickets.issue()
    with pytest.raises(TicketRefused):
        tickets.spend(text)


def test_the_oldest_ticket_goes_when_there_are_too_many() -> None:
    tickets = BrowserTickets(Clock())
    issued = [tickets.issue() for _ in range(OPEN_TICKETS_LIMIT + 1)]
    with pytest.raises(TicketRefused):
        tickets.spend(issued[0])
    for ticket in issued[1:]:
        tickets.spend(ticket)
