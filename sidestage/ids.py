"""The ids of the product, and what each looks like.

An id is opaque to clients, unique among all hosts, and stable for the life of its
object. It is `<kind>:<body>`, so that a log line shows what it names.
"""

import hashlib
import re
import secrets
from typing import Final, NewType

SessionId = NewType("SessionId", str)
"""`outside:` and 32 hex digits: a keyed digest of agent and conversation id."""
ConversationId = NewType("ConversationId", str)
"""The agent CLI's own id. It never leaves the server."""
ProjectId = NewType("ProjectId", str)
TerminalId = NewType("TerminalId", str)
HostId = NewType("HostId", str)
DeviceId = NewType("DeviceId", str)
TemplateId = NewType("TemplateId", str)

RANDOM_ID_BYTES: Final = 16
ID_LIMIT_CHARACTERS: Final = 128
"""No id of ours is longer; a longer one is refused before it is looked up."""

_OUTSIDE = re.compile(r"outside:[0-9a-f]{32}")
_CONVERSATION = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
)


def session_id(agent: str, conversation: str, *, machine_secret: bytes) -> SessionId:
    """Return the row id of *agent*'s *conversation* on the machine with that secret."""
    digest = hashlib.blake2b(
        agent.encode() + b"\0" + conversation.encode("utf-8", "surrogatepass"),
        key=machine_secret,
        digest_size=16,
        person=b"sidestage/row/v1",
    )
    return SessionId(f"outside:{digest.hexdigest()}")


def is_session_id(text: str) -> bool:
    """Tell whether *text* has the form of an outside session's row id."""
    return _OUTSIDE.fullmatch(text) is not None


def is_conversation_id(text: str) -> bool:
    """Tell whether *text* is exactly a UUID in 8-4-4-4-12 hex, in any case."""
    return _CONVERSATION.fullmatch(text) is not None


def new_id(kind: str) -> str:
    """Return a fresh random id: *kind*, a colon and 32 hex digits."""
    return f"{kind}:{secrets.token_hex(RANDOM_ID_BYTES)}"
