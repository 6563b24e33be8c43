"""`sidestage sessions`: the sessions that were started outside."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sidestage.command.client import Client, open_client, subscribe
from sidestage.command.options import add_json, add_state_dir, settings_of
from sidestage.settings import Settings
from sidestage.text import clean_text

PAGE_ROWS: Final = 100
DEFAULT_ROWS: Final = 50
NAME_WIDTH_CELLS: Final = 50
SHORT_ID_CHARACTERS: Final = 8
"""32 bits: among 10,000 sessions one pair in a hundred machines looks alike."""

_FIELDS: Final = """
  id name state agent directory gitBranch model lastActivityAt
  waitingFor { kind label }
  resume { available refusal { code message } }
  terminal { id }
"""
_FEED_FIELDS: Final = _FIELDS
_QUERY: Final = (
    """query Sessions($first: Int!, $after: String, $filter: OutsideSessionFilter) {
  outsideSessions(first: $first, after: $after, filter: $filter,
                  orderBy: LAST_ACTIVITY) {
    nodes {"""
    + _FIELDS
    + """}
    pageInfo { hasNextPage endCursor }
  }
}"""
)
_FEED: Final = (
    """subscription Sessions($filter: OutsideSessionFilter) {
  outsideSessionFeed(filter: $filter) {
    kind removedIds upserts {"""
    + _FEED_FIELDS
    + """}
  }
}"""
)
_STYLES: Final[Mapping[str, str]] = {
    "RUNNING": "green",
    "ASKING": "bold yellow",
    "IDLE": "cyan",
    "ENDED": "dim",
    "UNKNOWN": "magenta",
}


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "sessions",
        help="list the sessions that were started outside",
        description="List the agents' sessions, the latest activity first.",
    )
    parser.add_argument(
        "--watch", action="store_true", help="go on and print each change"
    )
    parser.add_argument(
        "--state",
        action="append",
        choices=[state.lower() for state in _STYLES],
        help="only sessions in this state (may be given several times)",
    )
    parser.add_argument("--search", metavar="TEXT", help="only sessions with this text")
    parser.add_argument(
        "-n",
        "--rows",
        type=int,
        default=DEFAULT_ROWS,
        help=f"print at most this many (default: {DEFAULT_ROWS}; 0 for all)",
    )
    add_json(parser)
    add_state_dir(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List the sessions once, or watch them."""
    settings = settings_of(arguments)
    wanted: dict[str, Any] = {}
    if arguments.state:
        wanted["states"] = [state.upper() for state in arguments.state]
    if arguments.search:
        wanted["text"] = arguments.search
    if arguments.watch:
        asyncio.run(_watch(settings, wanted, as_json=arguments.json))
        return 0
    with open_client(settings) as client:
        rows = []
        for row in list_sessions(client, wanted):
            rows.append(row)
            if len(rows) == arguments.rows:
                break
    if arguments.json:
        json.dump(rows, sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
    else:
        _print_table(rows, filtered=bool(wanted))
    return 0


def list_sessions(
    client: Client, wanted: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield every session, page by page."""
    after = None
    while True:
        variables = {"first": PAGE_ROWS, "after": after, "filter": dict(wanted)}
        page = client.query(_QUERY, variables)["outsideSessions"]
        yield from page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            return
        after = page["pageInfo"]["endCursor"]


async def _watch(
    settings: Settings, wanted: Mapping[str, Any], *, as_json: bool
) -> None:
    console = Console(highlight=False)
    async for data in subscribe(settings, _FEED, {"filter": dict(wanted)}):
        message = data["outsideSessionFeed"]
        if message["kind"] == "HEARTBEAT":
            continue
        if as_json:
            sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
            sys.stdout.flush()
            continue
        for row in message["upserts"]:
            console.print(_line(row))
        for removed in message["removedIds"]:
            console.print(Text(f"{removed}  is no longer in the list", style="dim"))


def _print_table(rows: list[dict[str, Any]], *, filtered: bool) -> None:
    console = Console(highlight=False)
    if not rows and filtered:
        console.print("No session is like that. `sidestage sessions` lists them all.")
        return
    if not rows:
        console.print(
            "No sessions yet. Start an agent in any terminal, say something, and look "
            "again."
        )
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("STATE", no_wrap=True, min_width=7)
    table.add_column("NAME", no_wrap=True, overflow="ellipsis", max_width=40)
    table.add_column("FOLDER", no_wrap=True, overflow="ellipsis", max_width=36)
    table.add_column("ACTIVE", no_wrap=True, min_width=10)
    table.add_column("ID", no_wrap=True, min_width=SHORT_ID_CHARACTERS)
    for row in rows:
        table.add_row(
            _state(row),
            Text(_clean(row["name"])),
            Text(_clean(row["directory"] or "?")),
            _age(row["lastActivityAt"]),
            _short_id(row),
        )
    console.print(table)


def _line(row: Mapping[str, Any]) -> Text:
    line = Text(datetime.now().astimezone().strftime("%H:%M:%S  "), style="dim")
    line.append_text(_state(row))
    line.append(f"  {_clean(row['name'])[:NAME_WIDTH_CELLS]}  ")
    line.append(_short_id(row), style="dim")
    return line


def _state(row: Mapping[str, Any]) -> Text:
    waiting = row["waitingFor"]
    label = row["state"] if waiting is None else f"{row['state']} {waiting['kind']}"
    return Text(label.lower(), style=_STYLES.get(row["state"], ""))


def _clean(text: str) -> str:
    # The server cleaned it; this terminal does not take anybody's word for that.
    return clean_text(text, multiline=False)


def _short_id(row: Mapping[str, Any]) -> str:
    # Enough to name a session with; `resume` takes the beginning of an id.
    return str(row["id"]).removeprefix("outside:")[:SHORT_ID_CHARACTERS]


def _age(at: str | None) -> str:
    if at is None:
        return "?"
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"
