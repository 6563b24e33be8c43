"""How a session's row is selected, and how its parts are written for a person."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rich.text import Text

SHORT_ID_CHARACTERS: Final = 8
"""32 bits: among 10,000 sessions one pair in a hundred machines looks alike."""
FIELDS: Final = """
  id name state agent directory gitBranch model lastActivityAt
  waitingFor { kind label }
  resume { available refusal { code message } }
  terminal { id }
"""
STYLES: Final[Mapping[str, str]] = {
    "RUNNING": "green",
    "ASKING": "bold yellow",
    "IDLE": "cyan",
    "ENDED": "dim",
    "UNKNOWN": "magenta",
}
"""The states and how they look."""


def state_cell(row: Mapping[str, Any]) -> Text:
    """Return a session's state, and what it waits for."""
    waiting = row["waitingFor"]
    label = row["state"] if waiting is None else f"{row['state']} {waiting['kind']}"
    return Text(label.lower(), style=STYLES.get(row["state"], ""))


def short_id(row_id: str) -> str:
    """Return enough of an id to name its row with: commands take beginnings."""
    return row_id.partition(":")[2][:SHORT_ID_CHARACTERS]


def age(at: str | None) -> str:
    """Return how long ago an instant was, in words."""
    if at is None:
        return "?"
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"
