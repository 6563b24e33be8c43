"""Which login written inside a sandbox may become the owner's. Pure: values in, out.

Tokens are opaque, so nobody but the issuer can tell whose they are. What the file says
of account, organization, subscription, client and scopes must not change, and of a
refresh only tokens and their ends of life are taken (names seen in 2.1.328).
"""

import re
from typing import Any, Final

Json = dict[str, Any]

_OAUTH: Final = "claudeAiOauth"
_ORGANIZATION: Final = "organizationUuid"
_ACCOUNT: Final = ("accountUuid", _ORGANIZATION, "subscriptionType", "clientId")
"""Kept by the CLI over a refresh. A later start may add one that was not there."""
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,8192}")
"""Real ones have about 110 characters."""
_MOMENT_LIMIT_MS: Final = 2**53
"""Up to here the CLI's numbers are exact; milliseconds since 1970 have 41 bits."""


def refresh_login(owner: Json, inside: Json) -> Json | None:
    """Return *owner* with the tokens of *inside*; None if that is no refresh of it."""
    ours, theirs = _oauth(owner), _login(inside)
    if ours is None or theirs is None:
        return None
    if not _is_same_account(ours, theirs) or not _is_same(owner, inside, _ORGANIZATION):
        return None
    if not _is_later(theirs["expiresAt"], ours.get("expiresAt")):
        return None
    taken = {key: theirs[key] for key in ("accessToken", "refreshToken", "expiresAt")}
    if _is_later(theirs.get("refreshTokenExpiresAt"), theirs["expiresAt"]):
        taken["refreshTokenExpiresAt"] = theirs["refreshTokenExpiresAt"]
    return {**owner, _OAUTH: {**ours, **taken}}


def first_login(inside: Json) -> Json | None:
    """Return what of *inside* becomes the login of an owner without any; else None."""
    login = _login(inside)
    if login is None:
        return None
    organization = inside.get(_ORGANIZATION)
    further = {_ORGANIZATION: organization} if isinstance(organization, str) else {}
    return {_OAUTH: login, **further}


def _oauth(file: Json) -> Json | None:
    oauth = file.get(_OAUTH)
    return oauth if isinstance(oauth, dict) else None


def _login(file: Json) -> Json | None:
    """Return the login in *file*; None if it is none that one could use."""
    oauth = _oauth(file)
    if oauth is None or not _is_moment(oauth.get("expiresAt")):
        return None
    tokens = (oauth.get("accessToken"), oauth.get("refreshToken"))
    usable = all(isinstance(t, str) and _TOKEN.fullmatch(t) for t in tokens)
    return oauth if usable and _are_scopes(oauth.get("scopes")) else None


def _is_same_account(ours: Json, theirs: Json) -> bool:
    # A later start of the CLI adds ids; scopes are there from the sign-in on.
    return ours.get("scopes") == theirs.get("scopes") and all(
        _is_same(ours, theirs, key) for key in _ACCOUNT
    )


def _is_same(ours: Json, theirs: Json, key: str) -> bool:
    """Tell whether *theirs* says of *key* what *ours* does, if that says anything."""
    return ours.get(key) is None or ours[key] == theirs.get(key)


def _is_later(moment: object, than: object) -> bool:
    return (
        isinstance(moment, int)
        and isinstance(than, int)
        and _is_moment(moment)
        and _is_moment(than)
        and moment > than
    )


def _is_moment(value: object) -> bool:
    """Tell whether *value* is milliseconds since 1970."""
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return 0 <= value <= _MOMENT_LIMIT_MS


def _are_scopes(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, list) and all(isinstance(scope, str) for scope in value)
