"""Who calls."""

from typing import Final

from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind

OWNER: Final = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "local:1")
"""The owner at the command line."""
