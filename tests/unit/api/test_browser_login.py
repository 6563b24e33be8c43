"""A ticket becomes a token: once, as JSON, and not too often."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.browser_login import (
    ATTEMPTS_BURST,
    LOGIN_LIFETIME,
    LOGIN_PATH,
    LoginParts,
    login_route,
)
from sidestage.devices.browser_tickets import BrowserTickets
from sidestage.devices.keeper import TokenKeeper
from sidestage.devices.model import ADMIN_SCOPES
from sidestage.storage.database import Database
from sidestage.storage.stores import SqlAuditLog, SqlTokenStore
from tests.fakes.parts import BASE, make_world


class Login:
    """The route behind the whole application, and its parts."""

    def __init__(self, keeper: TokenKeeper) -> None:
        self.now = datetime(2026, 12, 1, tzinfo=UTC)
        self.seconds = 0.0
        self.keeper = keeper
        self.tickets = BrowserTickets(lambda: self.now)
        parts = LoginParts(keeper, self.tickets, lambda: self.now, lambda: self.seconds)
        self.app = make_world(extra_routes=[login_route(parts)]).app

    async def post(self, *, address: str = "::1", **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(app=self.app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            return await client.post(LOGIN_PATH, **more)


@pytest.fixture
async def login(tmp_path: Path) -> AsyncIterator[Login]:
    database = await Database.open(tmp_path / "sidestage.db")
    audit = SqlAuditLog(database, clock=lambda: datetime(2026, 12, 1, tzinfo=UTC))
    keeper = TokenKeeper(SqlTokenStore(database), audit, clock=lambda: made.now)
    made = Login(keeper)
    yield made
    await keeper.close()
    await database.close()


async def test_a_ticket_buys_a_token_for_twelve_hours_without_the_scope_to_answer(
    login: Login,
) -> None:
    answer = await login.post(json={"ticket": login.tickets.issue()})
    assert answer.headers["cache-control"] == "no-store"
    principal = await login.keeper.authenticate(answer.json()["token"], address="::1")
    assert principal.scopes == ADMIN_SCOPES
    login.now += LOGIN_LIFETIME
    assert not login.keeper.is_current(principal)


async def test_a_ticket_that_was_used_says_what_to_run(login: Login) -> None:
    ticket = login.tickets.issue()
    await login.post(json={"ticket": ticket})
    answer = await login.post(json={"ticket": ticket})
    assert answer.status_code == 401
    assert answer.json()["code"] == "TICKET_REFUSED"
    assert "sidestage open" in answer.json()["message"]
    assert len(login.keeper.list_tokens()) == 1


@pytest.mark.parametrize(
    "sent",
    [
        {"content": b"{", "headers": {"content-type": "application/json"}},
        {"json": {"ticket": 1}},
        {"json": ["ticket"]},
        {"json": {"ticket": "x" * 2_000}},
        {"data": {"ticket": "x"}},
    ],
)
async def test_what_is_no_ticket_in_json_is_refused(
    login: Login, sent: dict[str, Any]
) -> None:
    answer = await login.post(**sent)
    assert answer.status_code == 400
    assert answer.json()["code"] == "INVALID_REQUEST"


async def test_an_address_may_not_guess_often_and_hinders_no_other(
    login: Login,
) -> None:
    for _ in range(ATTEMPTS_BURST):
        assert (await login.post(json={"ticket": "x"})).status_code == 401
    ticket = login.tickets.issue()
    assert (await login.post(json={"ticket": ticket})).status_code == 429
    other = await login.post(address="10.0.0.2", json={"ticket": ticket})
    assert other.status_code == 200


async def test_logins_that_ended_by_themselves_do_not_pile_up(login: Login) -> None:
    """Each `sidestage open` left a token, until there were too many to log in."""
    await login.post(json={"ticket": login.tickets.issue()})
    login.now += LOGIN_LIFETIME
    await login.post(json={"ticket": login.tickets.issue()})
    assert len(login.keeper.list_tokens()) == 1


async def test_a_foreign_page_cannot_log_in(login: Login) -> None:
    answer = await login.post(
        json={"ticket": login.tickets.issue()},
        headers={"origin": "https://evil.example"},
    )
    assert answer.status_code == 403
