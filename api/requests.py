"""Reads what transports send: bodies into requests, headers into callers."""

import re
from typing import Any, Final

import orjson

from api.operations import Request
from sidestage.devices.model import ANONYMOUS, Authenticator, Principal
from sidestage.errors import ClientTooOld, InvalidInput, Unauthenticated

CLIENT: Final = re.compile(r"[\w.+-]{1,64}/(\d{1,6}(?:\.\d{1,6}){0,2})", re.ASCII)
TOKEN_LIMIT_CHARACTERS: Final = 256
"""Ours have 64; a longer one is not looked up."""


def parse_json(body: bytes) -> Any:  # noqa: ANN401 -- JSON is anything
    """Return the JSON value of *body*; raise `InvalidInput` if it is none.

    Lone surrogates and numbers without a meaning are refused with the rest.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput("The body is not JSON in UTF-8.") from error


def parse_request(value: object) -> Request:
    """Return the GraphQL request that a JSON value is; raise `InvalidInput`."""
    if not isinstance(value, dict):
        raise InvalidInput("A request is one JSON object; batches are not taken.")
    query = value.get("query")
    if not isinstance(query, str) or not query:
        raise InvalidInput("query must be a GraphQL document.")
    variables = value.get("variables")
    if variables is not None and not isinstance(variables, dict):
        raise InvalidInput("variables must be an object.")
    name = value.get("operationName")
    if name is not None and not isinstance(name, str):
        raise InvalidInput("operationName must be a string.")
    extensions = value.get("extensions")
    if extensions is not None and not isinstance(extensions, dict):
        raise InvalidInput("extensions must be an object.")
    # An empty name is what some clients send for none.
    return Request(query, variables or {}, name or None)


def parse_bearer(headers: list[str]) -> str | None:
    """Return the token of the `Authorization` headers; None without any.

    Raises `Unauthenticated` for two of them, or for another scheme.
    """
    if not headers:
        return None
    scheme, _, token = headers[0].partition(" ")
    if len(headers) > 1 or scheme.lower() != "bearer":
        raise Unauthenticated("Send exactly one Authorization: Bearer header.")
    return token.strip()


async def authenticate(
    authenticator: Authenticator, token: str | None, *, address: str | None
) -> Principal:
    """Return who shows *token*; the anonymous caller without one.

    Raises `Unauthenticated`, `RateLimited`.
    """
    if token is None:
        return Principal(
            ANONYMOUS.kind, ANONYMOUS.scopes, ANONYMOUS.actor, None, None, address
        )
    if not token or len(token) > TOKEN_LIMIT_CHARACTERS:
        raise Unauthenticated("That token is not good.")
    return await authenticator.authenticate(token, address=address)


def check_client(client: str | None, oldest: str) -> None:
    """Raise `ClientTooOld` if *client* (`name/version`) is older than *oldest*.

    Who says nothing, or something else, is served.
    """
    match = CLIENT.fullmatch(client or "")
    if match and _version(match[1]) < _version(oldest):
        raise ClientTooOld(f"This server serves clients from version {oldest} on.")


def _version(text: str) -> tuple[int, ...]:
    numbers = [int(number) for number in re.findall(r"\d+", text)[:3]]
    return tuple(numbers + [0] * (3 - len(numbers)))
