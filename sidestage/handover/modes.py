"""In which permission mode a continuation runs: never a laxer one than is asked for."""

from collections.abc import Mapping
from typing import Final

from sidestage.sessions.model import Session

MANUAL: Final = "manual"
"""Each risky tool asks."""
_KEPT: Final[Mapping[str, str]] = {"plan": "plan", "acceptEdits": "acceptEdits"}


def continuation_mode(session: Session | None) -> str:
    """Return the agent's option for a continuation of *session*.

    Plan and acceptEdits stay what they are; everything else becomes manual.
    """
    mode = None if session is None else session.permission_mode
    return _KEPT.get(mode or "", MANUAL)
