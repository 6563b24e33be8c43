"""Errors as the API shows them: one table from code to HTTP status, one mask for bugs.

What we raise on purpose is shown with its code. Anything else is a bug: it is logged
whole under a reference, and the client gets the reference.
"""

import logging
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final

from graphql import GraphQLError

from sidestage.errors import ErrorCode, RateLimited, SidestageError

log = logging.getLogger(__name__)

STATUS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.INTERNAL: 500,
    ErrorCode.STORAGE_UNAVAILABLE: 503,
}
"""Every other code is 400: the request itself has to change."""

# graphql-core words what the caller got wrong in a running operation like this.
_CALLERS_FAULT: Final = ("Argument ", "Variable ")


def status_of(code: str | None) -> int:
    """Return the HTTP status of a request that failed with *code*."""
    return STATUS.get(ErrorCode(code), 400) if code else 400


def shown_error(error: SidestageError) -> dict[str, Any]:
    """Return an error of ours as an entry of `errors`."""
    return {"message": str(error), "extensions": _extensions(error)}


def _extensions(error: SidestageError) -> dict[str, Any]:
    extensions: dict[str, Any] = {"code": error.code.value}
    if isinstance(error, RateLimited):
        extensions["retryAfterMs"] = error.retry_after_ms
    return extensions


def shown_errors(
    errors: Iterable[GraphQLError], *, code: ErrorCode | None = None
) -> list[dict[str, Any]]:
    """Return *errors* as the response shows them.

    *code* is what they all have when they come from a stage that can only fail by the
    caller's fault: parsing, validation, variables.
    """
    return [_shown(error, code) for error in errors]


def _shown(error: GraphQLError, code: ErrorCode | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"message": error.message}
    if error.locations:
        entry["locations"] = [location.formatted for location in error.locations]
    if error.path is not None:
        entry["path"] = error.path
    if code is not None:
        return {**entry, "extensions": {"code": code.value}}
    cause = error.original_error
    if isinstance(cause, SidestageError):
        return {**entry, "message": str(cause), "extensions": _extensions(cause)}
    if cause is None and error.message.startswith(_CALLERS_FAULT):
        return {**entry, "extensions": {"code": ErrorCode.BAD_USER_INPUT.value}}
    return {**entry, **masked(cause or error)}


def masked(error: BaseException) -> dict[str, Any]:
    """Log a bug whole, and return what a client may see of it."""
    reference = secrets.token_hex(6)
    log.error("Internal error %s", reference, exc_info=error)
    return {
        "message": f"Something went wrong in the server (reference {reference}).",
        "extensions": {"code": ErrorCode.INTERNAL.value, "reference": reference},
    }
