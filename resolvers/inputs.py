"""What every mutation checks in the texts it was sent, before a port sees them."""

import re
from typing import Final

from sidestage.errors import InvalidInput
from sidestage.ids import ID_LIMIT_CHARACTERS

KEY_LIMIT_CHARACTERS: Final = 128
"""An idempotency key is a UUID or the like."""
NAME_LIMIT_CHARACTERS: Final = 200
PATH_LIMIT_CHARACTERS: Final = 4096
"""PATH_MAX of Linux."""
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def checked_text(name: str, value: str, limit_characters: int) -> str:
    """Return *value*; raise `InvalidInput` if it is empty, too long or has controls."""
    if not value.strip():
        raise InvalidInput(f"{name} must not be empty")
    if len(value) > limit_characters:
        raise InvalidInput(f"{name} must not be longer than {limit_characters}")
    if _CONTROLS.search(value):
        raise InvalidInput(f"{name} must not contain control characters")
    return value


def checked_id(name: str, value: str) -> str:
    """Return *value*; raise `InvalidInput` if no id of ours can look like that."""
    return checked_text(name, value, ID_LIMIT_CHARACTERS)


def checked_key(value: str | None) -> str | None:
    """Return the idempotency key; raise `InvalidInput` if it is no good."""
    if value is None:
        return None
    return checked_text("idempotencyKey", value, KEY_LIMIT_CHARACTERS)


def checked_name(value: str | None) -> str | None:
    """Return the name; raise `InvalidInput` if it is no good."""
    if value is None:
        return None
    return checked_text("name", value, NAME_LIMIT_CHARACTERS)
