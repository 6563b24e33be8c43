"""Logins of Claude Code, with the fields of 2.1.328 and made-up values."""

import json
from typing import Any


def make_login(number: int, **changes: Any) -> str:
    """Return a login's file: of one account, later with each *number*.

    *changes* are to the fields of `claudeAiOauth`; None takes a field out.
    """
    oauth = {
        "accessToken": f"access-{number}",
        "refreshToken": f"refresh-{number}",
        "expiresAt": 1_800_000_000_000 + number,
        "refreshTokenExpiresAt": 1_900_000_000_000 + number,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
        "accountUuid": "account-1",
        "organizationUuid": "organization-1",
        **changes,
    }
    present = {key: value for key, value in oauth.items() if value is not None}
    return json.dumps({"claudeAiOauth": present}, separators=(",", ":"))
