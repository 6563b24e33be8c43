"""What only the command line may ask, over the control socket.

The life of tokens, and what the server sees of its machine. JSON, not GraphQL: a token
is shown once, to the person at the terminal, and never travels through the schema that
clients see.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.checks import list_findings
from sidestage.devices.browser_tickets import BrowserTickets
from sidestage.devices.keeper import TokenKeeper
from sidestage.devices.key_change import KeyChange
from sidestage.devices.model import Principal, PrincipalKind, Scope
from sidestage.devices.tokens import StoredToken
from sidestage.errors import InvalidInput, PermissionDenied, SidestageError
from sidestage.settings import Settings

BODY_LIMIT_BYTES: Final = 4_096
"""The longest request holds a name of 64 characters and four scopes."""
LIFETIME_LIMIT_SECONDS: Final = 10 * 366 * 86_400

_Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ControlParts:
    """What the routes work with."""

    keeper: TokenKeeper
    settings: Settings
    tickets: BrowserTickets
    url: str
    """Where a browser on this machine finds the server."""
    key_change: KeyChange


def control_routes(parts: ControlParts) -> list[Route]:
    """Return the routes; each refuses whoever is not on the control socket."""
    return [*_machine_routes(parts), *_token_routes(parts)]


def _machine_routes(parts: ControlParts) -> list[Route]:
    async def issue_ticket(_: Request) -> Response:
        ticket = parts.tickets.issue()
        return JSONResponse({"url": f"{parts.url}/#ticket={ticket}"}, status_code=201)

    async def rotate_keys(request: Request) -> Response:
        compromised = (await _body(request)).get("compromised", False)
        if not isinstance(compromised, bool):
            raise InvalidInput("compromised must be true or false.")
        devices = await parts.key_change.rotate(
            compromised=compromised, actor=_principal(request)
        )
        return JSONResponse({"devices": devices})

    async def check(_: Request) -> Response:
        # In a thread: it starts programs and reads files.
        findings = await asyncio.to_thread(list_findings, parts.settings)
        return JSONResponse({"checks": [asdict(each) for each in findings]})

    return [
        Route("/control/checks", _guarded(check, Scope.VIEW), methods=["GET"]),
        Route("/control/browser-tickets", _guarded(issue_ticket), methods=["POST"]),
        Route("/control/keys/rotate", _guarded(rotate_keys), methods=["POST"]),
    ]


def _token_routes(parts: ControlParts) -> list[Route]:
    async def list_tokens(_: Request) -> Response:
        return JSONResponse({"tokens": [_shown(t) for t in parts.keeper.list_tokens()]})

    async def create(request: Request) -> Response:
        body = await _body(request)
        text = await parts.keeper.create(
            name=_text(body, "name"),
            scopes=_scopes(body.get("scopes")),
            lifetime=_lifetime(body.get("lifetimeSeconds")),
            actor=_principal(request),
        )
        return JSONResponse({"token": text}, status_code=201)

    async def rotate(request: Request) -> Response:
        await parts.keeper.rotate_admin(
            parts.settings.admin_token_file, actor=_principal(request)
        )
        return JSONResponse({"rotated": True})

    async def revoke(request: Request) -> Response:
        token_id = _text(await _body(request), "id")
        revoked = await parts.keeper.revoke(token_id, actor=_principal(request))
        return JSONResponse({"revoked": revoked})

    base = "/control/tokens"
    return [
        Route(base, _guarded(list_tokens), methods=["GET"]),
        Route(base, _guarded(create), methods=["POST"]),
        Route(f"{base}/rotate", _guarded(rotate), methods=["POST"]),
        Route(f"{base}/revoke", _guarded(revoke), methods=["POST"]),
    ]


def _guarded(handler: _Handler, scope: Scope = Scope.ADMIN) -> _Handler:
    async def guarded(request: Request) -> Response:
        try:
            _check_scope(_principal(request), scope)
            return await handler(request)
        except PermissionDenied as error:
            return _refusal(error, 403)
        except SidestageError as error:
            return _refusal(error, 400)

    return guarded


def _check_scope(principal: Principal, scope: Scope) -> None:
    if not principal.may(scope):
        raise PermissionDenied("Run this in your own terminal.")


def _principal(request: Request) -> Principal:
    principal = request.scope.get("extensions", {}).get("sidestage.principal")
    if not isinstance(principal, Principal) or (
        principal.kind is not PrincipalKind.LOCAL
    ):
        raise PermissionDenied("Only the command line of this machine may ask this.")
    return principal


def _refusal(error: SidestageError, status: int) -> Response:
    body = {"code": error.code.value, "message": str(error)}
    return JSONResponse(body, status_code=status)


async def _body(request: Request) -> dict[str, Any]:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_LIMIT_BYTES:
            raise InvalidInput("The request is too long.")
    try:
        body = orjson.loads(bytes(data))
    except orjson.JSONDecodeError as error:
        raise InvalidInput("The request is not JSON.") from error
    if not isinstance(body, dict):
        raise InvalidInput("The request is not a JSON object.")
    return body


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a text.")
    return value


def _scopes(value: object) -> frozenset[Scope]:
    try:
        if isinstance(value, list):
            return frozenset(Scope(word) for word in value)
    except ValueError:
        pass
    raise InvalidInput(f"scopes must be a list of {', '.join(Scope)}.")


def _lifetime(value: object) -> timedelta | None:
    if value is None:
        return None
    if type(value) is int and 0 < value <= LIFETIME_LIMIT_SECONDS:
        return timedelta(seconds=value)
    raise InvalidInput("lifetimeSeconds must be a positive whole number.")


def _shown(token: StoredToken) -> dict[str, object]:
    return {
        "id": token.id,
        "kind": token.kind.value,
        "name": token.name,
        "scopes": sorted(token.scopes),
        "createdAt": token.created_at.isoformat(),
        "lastUsedAt": token.last_used_at and token.last_used_at.isoformat(),
        "expiresAt": token.expires_at and token.expires_at.isoformat(),
    }
