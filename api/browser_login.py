"""How the web client logs in without a person copying a token.

`sidestage open` asks on the control socket for a link with a ticket; the page that the
link opens sends the ticket here and gets a token for twelve hours. This route and
`pairDevice` are all that the network may ask without a token and that grants something.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.rates import RateLimiter
from sidestage.devices.browser_tickets import BrowserTickets
from sidestage.devices.keeper import TokenKeeper
from sidestage.devices.model import ADMIN_SCOPES, ANONYMOUS
from sidestage.errors import (
    InvalidInput,
    RateLimited,
    SidestageError,
    TicketRefused,
)

LOGIN_PATH: Final = "/browser-login"
LOGIN_LIFETIME: Final = timedelta(hours=12)
"""A working day: the token lies in the tab's `sessionStorage`."""
BODY_LIMIT_BYTES: Final = 1_024
ATTEMPTS_BURST: Final = 10
ATTEMPTS_PER_SECOND: Final = 1 / 6
"""As many as wrong tokens: ten at once, ten a minute, for each address."""
_STATUSES: Final = {InvalidInput: 400, TicketRefused: 401, RateLimited: 429}


@dataclass(frozen=True, slots=True)
class LoginParts:
    """What the route works with."""

    keeper: TokenKeeper
    tickets: BrowserTickets
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]


def login_route(parts: LoginParts) -> Route:
    """Return the route that turns a ticket into a token."""
    rates = RateLimiter(ATTEMPTS_BURST, ATTEMPTS_PER_SECOND, parts.monotonic)

    async def log_in(request: Request) -> Response:
        address = request.client.host if request.client else "unknown"
        rates.spend(address, 1)
        parts.tickets.spend(await _ticket(request))
        token = await parts.keeper.create(
            name="browser",
            scopes=ADMIN_SCOPES,
            lifetime=LOGIN_LIFETIME,
            actor=ANONYMOUS,
        )
        expires_at = parts.clock() + LOGIN_LIFETIME
        return JSONResponse({"token": token, "expiresAt": expires_at.isoformat()})

    return Route(LOGIN_PATH, _told(log_in), methods=["POST"])


def _told(
    handler: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    async def told(request: Request) -> Response:
        try:
            return await handler(request)
        except SidestageError as error:
            status = _STATUSES.get(type(error))
            if status is None:
                raise
            body = {"code": error.code.value, "message": str(error)}
            return JSONResponse(body, status_code=status)

    return told


async def _ticket(request: Request) -> str:
    # Not a form: those may be sent by any page without asking.
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise InvalidInput("Send application/json.")
    body = await _read_body(request)
    ticket = body.get("ticket") if isinstance(body, dict) else None
    if not isinstance(ticket, str):
        raise InvalidInput("ticket must be a text.")
    return ticket


async def _read_body(request: Request) -> Any:  # noqa: ANN401 -- JSON is anything
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_LIMIT_BYTES:
            raise InvalidInput("The request is too long.")
    try:
        return orjson.loads(bytes(data))
    except orjson.JSONDecodeError as error:
        raise InvalidInput("The request is not JSON.") from error
