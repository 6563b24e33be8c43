"""What the command line asks over the control socket, and who else may not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from api.control_routes import (
    BODY_LIMIT_BYTES,
    LIFETIME_LIMIT_SECONDS,
    ControlParts,
    control_routes,
)
from sidestage.devices import model
from sidestage.devices.browser_tickets import BrowserTickets
from sidestage.devices.keeper import TokenKeeper
from sidestage.devices.key_change import KeyChange
from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from sidestage.settings import read_settings
from sidestage.storage.database import Database
from sidestage.storage.stores import SqlAuditLog, SqlTokenStore

OWNER = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "local:1")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TOKENS = "/control/tokens"
GOOD = {"name": "wall display", "scopes": ["VIEW"]}


@dataclass
class KeysThatChange:
    """Stands in for the change of the host's key; remembers how it was asked."""

    asked: list[bool] = field(default_factory=list)

    async def rotate(self, *, compromised: bool, actor: Principal) -> int:
        self.asked.append(compromised)
        return 2


@dataclass
class Socket:
    """The routes behind a caller, as the control socket tells who called."""

    parts: ControlParts
    keys: KeysThatChange

    @asynccontextmanager
    async def client(
        self, caller: Principal | None = OWNER
    ) -> AsyncIterator[httpx.AsyncClient]:
        app = Starlette(routes=control_routes(self.parts))

        async def told(scope: Scope, receive: Receive, send: Send) -> None:
            extensions = {} if caller is None else {"sidestage.principal": caller}
            await app({**scope, "extensions": extensions}, receive, send)

        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(told), base_url="http://control"
        ) as client:
            yield client

    async def post(self, path: str, body: object) -> tuple[int, dict[str, Any]]:
        async with self.client() as client:
            answer = await client.post(path, json=body)
            return answer.status_code, answer.json()


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[Socket]:
    database = await Database.open(tmp_path / "sidestage.db")
    audit = SqlAuditLog(database, clock=lambda: NOW)
    keeper = TokenKeeper(SqlTokenStore(database), audit, clock=lambda: NOW)
    await keeper.load()
    keys = KeysThatChange()
    parts = ControlParts(
        keeper=keeper,
        settings=read_settings(
            {"state_dir": str(tmp_path)}, environment={"HOME": str(tmp_path)}
        ),
        tickets=BrowserTickets(lambda: NOW),
        url="http://127.0.0.1:1",
        key_change=cast("KeyChange", keys),
    )
    yield Socket(parts, keys)
    await keeper.close()
    await database.close()


async def test_a_token_is_made_listed_and_revoked(control: Socket) -> None:
    status, made = await control.post(TOKENS, GOOD | {"lifetimeSeconds": 60})
    assert status == 201
    caller = await control.parts.keeper.authenticate(made["token"], address=None)
    assert caller.scopes == {model.Scope.VIEW}
    async with control.client() as client:
        text = (await client.get(TOKENS)).text
        [row] = (await client.get(TOKENS)).json()["tokens"]
    assert made["token"] not in text
    assert (row["name"], row["scopes"]) == ("wall display", ["VIEW"])
    assert row["expiresAt"] == "2026-11-30T12:01:00+00:00"
    for revoked in (True, False):
        again = await control.post(f"{TOKENS}/revoke", {"id": row["id"]})
        assert again == (200, {"revoked": revoked})
    assert not control.parts.keeper.is_current(caller)


async def test_rotating_the_admin_token_voids_the_one_before(control: Socket) -> None:
    file = control.parts.settings.admin_token_file
    await control.parts.keeper.ensure_admin(file)
    before = file.read_text()
    assert await control.post(f"{TOKENS}/rotate", {}) == (200, {"rotated": True})
    assert file.read_text() != before


@pytest.mark.parametrize("body", [{}, {"compromised": False}, {"compromised": True}])
async def test_the_hosts_key_is_changed_as_it_was_asked(
    control: Socket, body: dict[str, bool]
) -> None:
    assert await control.post("/control/keys/rotate", body) == (200, {"devices": 2})
    assert control.keys.asked == [body.get("compromised", False)]


async def test_a_key_is_not_changed_on_a_word_that_is_neither_yes_nor_no(
    control: Socket,
) -> None:
    status, told = await control.post("/control/keys/rotate", {"compromised": "no"})
    assert (status, told["code"]) == (400, "INVALID_REQUEST")
    assert control.keys.asked == []


async def test_a_browser_ticket_is_good_for_one_login(control: Socket) -> None:
    status, made = await control.post("/control/browser-tickets", {})
    address, _, ticket = made["url"].partition("#ticket=")
    assert (status, address) == (201, "http://127.0.0.1:1/")
    control.parts.tickets.spend(ticket)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (["not an object"], "object"),
        ({"scopes": ["VIEW"]}, "name"),
        ({"name": 4, "scopes": ["VIEW"]}, "name"),
        ({"name": "a"}, "scopes"),
        ({"name": "a", "scopes": ["everything"]}, "scopes"),
        (GOOD | {"lifetimeSeconds": 0}, "lifetimeSeconds"),
        (GOOD | {"lifetimeSeconds": True}, "lifetimeSeconds"),
        (GOOD | {"lifetimeSeconds": 1.5}, "lifetimeSeconds"),
        (GOOD | {"lifetimeSeconds": LIFETIME_LIMIT_SECONDS + 1}, "lifetimeSeconds"),
        ({"name": "a" * BODY_LIMIT_BYTES}, "too long"),
    ],
)
async def test_what_no_token_can_be_made_of_is_refused_by_name(
    control: Socket, body: object, word: str
) -> None:
    status, told = await control.post(TOKENS, body)
    assert (status, told["code"]) == (400, "INVALID_REQUEST")
    assert word in told["message"]
    assert control.parts.keeper.list_tokens() == ()


async def test_what_is_not_json_is_refused(control: Socket) -> None:
    async with control.client() as client:
        answer = await client.post(TOKENS, content=b"{")
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize(
    "caller",
    [
        None,
        Principal(PrincipalKind.ADMIN, ADMIN_SCOPES, "admin"),
        Principal(PrincipalKind.LOCAL, frozenset({model.Scope.VIEW}), "local:1"),
    ],
)
async def test_only_the_owners_own_terminal_makes_tokens(
    control: Socket, caller: Principal | None
) -> None:
    """An agent in a sandbox reaches the socket too, with VIEW."""
    async with control.client(caller) as client:
        answers = [
            await client.post(path, json=GOOD)
            for path in (TOKENS, f"{TOKENS}/rotate", "/control/keys/rotate")
        ]
    assert [answer.status_code for answer in answers] == [403] * 3
    assert answers[0].json()["code"] == "PERMISSION_DENIED"
    assert control.parts.keeper.list_tokens() == ()
    assert control.keys.asked == []
