"""Tickets of many tokens: what one takes is not taken from the others."""

from datetime import UTC, datetime

import pytest

from sidestage.devices.model import Principal, PrincipalKind, Scope
from sidestage.errors import RateLimited, TicketRefused
from sidestage.ids import TerminalId
from sidestage.terminals.desk import Ticket, TicketMode
from sidestage.terminals.tickets import (
    OPEN_TICKETS_LIMIT,
    TICKET_LIFETIME,
    TOKEN_TICKETS_LIMIT,
    TicketBox,
)

TERMINAL = TerminalId("terminal:1")


def device(name: str) -> Principal:
    scopes = frozenset({Scope.READ})
    return Principal(PrincipalKind.DEVICE, scopes, f"device:{name}", token_id=name)


class Bench:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, tzinfo=UTC)
        self.box = TicketBox(clock=lambda: self.now)

    def issue(self, name: str, count: int = 1) -> list[Ticket]:
        return [
            self.box.issue(TERMINAL, TicketMode.VIEW, device(name))
            for _ in range(count)
        ]


def test_a_token_that_takes_too_many_stops_none_but_itself() -> None:
    """One READ token filled the box of all, and every attach was RATE_LIMITED."""
    bench = Bench()
    bench.issue("greedy", TOKEN_TICKETS_LIMIT)
    with pytest.raises(RateLimited) as refused:
        bench.issue("greedy")
    assert refused.value.retry_after_ms == TICKET_LIFETIME.total_seconds() * 1000
    assert bench.box.spend(TERMINAL, bench.issue("other")[0].secret)
    bench.now += TICKET_LIFETIME
    assert bench.issue("greedy")


def test_a_full_box_makes_room_at_the_token_that_has_the_most() -> None:
    bench = Bench()
    other = bench.issue("other")[0]
    greedy = bench.issue("greedy", TOKEN_TICKETS_LIMIT)
    left = OPEN_TICKETS_LIMIT - TOKEN_TICKETS_LIMIT - 1
    for number in range(left):
        bench.issue(f"token {number}")
    last = bench.issue("last")[0]
    with pytest.raises(TicketRefused):
        bench.box.spend(TERMINAL, greedy[0].secret)
    for ticket in (other, greedy[1], last):
        assert bench.box.spend(TERMINAL, ticket.secret)
