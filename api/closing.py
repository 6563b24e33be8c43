"""How a GraphQL WebSocket ends: its close codes, and what carries one.

4400 bad message · 4401 log in again · 4406 another subprotocol · 4408 no
`connection_init` in time · 4409 id in use · 4429 second `connection_init` · 1009
message too long · 1012 the server restarts · 1013 come back later · 4500 a bug.
"""

from typing import Final

BAD_MESSAGE: Final = 4400
LOG_IN_AGAIN: Final = 4401
BAD_SUBPROTOCOL: Final = 4406
INIT_TIMEOUT: Final = 4408
ID_IN_USE: Final = 4409
SECOND_INIT: Final = 4429
INTERNAL: Final = 4500
TOO_LONG: Final = 1009
RESTART: Final = 1012
TRY_LATER: Final = 1013


class Close(Exception):
    """Ends the connection with a close code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
