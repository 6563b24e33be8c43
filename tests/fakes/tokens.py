"""An authenticator that knows a few tokens."""

import asyncio
from collections.abc import AsyncIterator

from sidestage.devices.model import (
    ADMIN_SCOPES,
    Authenticator,
    Principal,
    PrincipalKind,
    Scope,
)
from sidestage.errors import RateLimited, Unauthenticated
from sidestage.ids import DeviceId

ADMIN = "admin-token"
VIEWER = "viewer-token"
READER = "reader-token"
OPERATOR = "operator-token"


def device_principal(name: str, *scopes: Scope) -> Principal:
    """Return the device of that name with those scopes."""
    return Principal(
        PrincipalKind.DEVICE,
        frozenset(scopes),
        f"device:{name}",
        DeviceId(f"device:{name}"),
        f"token:{name}",
    )


class FakeAuthenticator(Authenticator):
    """Knows four tokens; a test may revoke them."""

    def __init__(self) -> None:
        self.principals = {
            ADMIN: Principal(
                PrincipalKind.ADMIN, ADMIN_SCOPES, "admin", None, "token:admin"
            ),
            VIEWER: device_principal("viewer", Scope.VIEW),
            READER: device_principal("reader", Scope.VIEW, Scope.READ),
            OPERATOR: device_principal("operator", Scope.VIEW, Scope.TERMINAL),
        }
        self.is_flooded = False
        self._revoked: asyncio.Queue[str] = asyncio.Queue()

    async def authenticate(self, token: str, *, address: str | None) -> Principal:
        """Return who shows the token."""
        principal = self.principals.get(token)
        if principal is None and self.is_flooded:
            raise RateLimited("Too many wrong tokens.", retry_after_ms=60_000)
        if principal is None:
            raise Unauthenticated("That token is not good.")
        return principal

    def is_current(self, principal: Principal) -> bool:
        """Tell whether the token is still known."""
        known = {each.token_id for each in self.principals.values()}
        return principal.token_id in known

    def revoke(self, token: str) -> None:
        """Forget the token and say so."""
        principal = self.principals.pop(token)
        assert principal.token_id is not None
        self._revoked.put_nowait(principal.token_id)

    async def watch_revocations(self) -> AsyncIterator[str]:
        """Yield what `revoke` was called with."""
        while True:
            yield await self._revoked.get()
