"""`sidestage sessions --watch`: each change, as it happens, over restarts too."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import datetime
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from sidestage.command.client import subscribe
from sidestage.command.failure import ServerGone
from sidestage.command.session_rows import FIELDS, short_id, state_cell
from sidestage.command.table import cell, shrink_end, shrink_start
from sidestage.settings import Settings

RETRY_SECONDS: Final = 1.0
"""Between two looks for a server that went away: no event tells that one listens."""
STATE_CELLS: Final = 17
"""`asking permission`, the longest there is."""
NAME_CELLS: Final = 40
FOLDER_CELLS: Final = 36

_FEED: Final = (
    """subscription Sessions($filter: OutsideSessionFilter, $after: FeedCursor) {
  outsideSessionFeed(filter: $filter, after: $after) {
    kind cursor more removedIds upserts {"""
    + FIELDS
    + """}
  }
}"""
)

Json = Mapping[str, Any]
Shown = tuple[str, str, str]
Subscribe = Callable[[Settings, str, Json], AsyncGenerator[dict[str, Any]]]


class Watched:
    """What was printed of each session, so that only what a person can see repeats."""

    def __init__(self) -> None:
        self._shown: dict[str, Shown] = {}
        self._snapshot: set[str] | None = None

    def take(self, message: Json) -> list[Text]:
        """Return the lines a message of the feed is worth."""
        lines = [self._upsert(row) for row in message["upserts"]]
        removed = list(message["removedIds"])
        if message["kind"] == "RESET":
            self._snapshot = None
        if message["kind"] == "SNAPSHOT":
            removed += self._missing(message)
        lines += [self._remove(row_id) for row_id in removed]
        return [line for line in lines if line is not None]

    def _upsert(self, row: Json) -> Text | None:
        shown = (state_cell(row).plain, row["name"], row["directory"] or "?")
        if self._shown.get(row["id"]) == shown:
            return None
        self._shown[row["id"]] = shown
        return _line(row["id"], state_cell(row), row["name"], row["directory"] or "?")

    def _remove(self, row_id: str) -> Text | None:
        shown = self._shown.pop(row_id, None)
        if shown is None:
            return None
        return _line(row_id, Text("gone", style="dim"), shown[1], shown[2])

    def _missing(self, message: Json) -> list[str]:
        """Return the ids that a complete snapshot no longer holds."""
        self._snapshot = self._snapshot or set()
        self._snapshot.update(row["id"] for row in message["upserts"])
        if message["more"]:
            return []
        missing = [row_id for row_id in self._shown if row_id not in self._snapshot]
        self._snapshot = None
        return missing


async def watch(settings: Settings, wanted: Json, *, as_json: bool) -> None:
    """Print each change until interrupted; wait for a server that goes away.

    Raises `ServerGone` if none answers at the start, `CommandFailed` if it refuses.
    """
    watched = Watched()
    console = Console(highlight=False)
    sys.stderr.write("Watching; each change gets a line. Stop with Ctrl-C.\n")
    async for message in follow(settings, wanted):
        if message["kind"] == "HEARTBEAT":
            continue
        if as_json:
            sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
            sys.stdout.flush()
            continue
        for line in watched.take(message):
            console.print(line, soft_wrap=True)


async def follow(
    settings: Settings,
    wanted: Json,
    *,
    subscribe: Subscribe = subscribe,
    retry_seconds: float = RETRY_SECONDS,
) -> AsyncGenerator[dict[str, Any]]:
    """Yield the feed's messages, going on behind the last one after each restart."""
    cursor: str | None = None
    waiting = False
    while True:
        try:
            variables = {"filter": dict(wanted), "after": cursor}
            async for data in subscribe(settings, _FEED, variables):
                message = data["outsideSessionFeed"]
                cursor, waiting = message["cursor"], False
                yield message
        except ServerGone:
            if cursor is None:
                raise
            if not waiting:
                sys.stderr.write("The server went away. Waiting for it.\n")
            waiting = True
        await asyncio.sleep(retry_seconds)


def _line(row_id: str, state: Text, name: str, folder: str) -> Text:
    line = Text(datetime.now().astimezone().strftime("%H:%M:%S  "), style="dim")
    line.append_text(state)
    line.append(" " * max(0, STATE_CELLS - cell_len(state.plain)))
    name = shrink_end(cell(name).plain, NAME_CELLS)
    line.append(f"  {set_cell_size(name, NAME_CELLS)}")
    line.append(f"  {shrink_start(cell(folder).plain, FOLDER_CELLS)}")
    line.append(f"  {short_id(row_id)}", style="dim")
    return line
