"""`sidestage sessions`: the sessions that were started outside."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.text import Text

from sidestage.command.client import Client, open_client
from sidestage.command.options import add_json, add_state_dir, count, settings_of
from sidestage.command.session_rows import FIELDS, STYLES, age, short_id, state_cell
from sidestage.command.table import Column, Shrink, cell, print_table
from sidestage.command.watching import watch

PAGE_ROWS: Final = 100
DEFAULT_ROWS: Final = 50
COLUMNS: Final = (
    Column("STATE"),
    Column("NAME", Shrink.END),
    Column("FOLDER", Shrink.START),
    Column("ACTIVE"),
    Column("ID"),
)
_QUERY: Final = (
    """query Sessions($first: Int!, $after: String, $filter: OutsideSessionFilter) {
  outsideSessions(first: $first, after: $after, filter: $filter,
                  orderBy: LAST_ACTIVITY) {
    nodes {"""
    + FIELDS
    + """}
    pageInfo { hasNextPage endCursor }
  }
}"""
)


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
        choices=[state.lower() for state in STYLES],
        help="only sessions in this state (may be given several times)",
    )
    parser.add_argument("--search", metavar="TEXT", help="only sessions with this text")
    parser.add_argument(
        "-n",
        "--rows",
        type=count,
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
        asyncio.run(watch(settings, wanted, as_json=arguments.json))
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
        _print_table(client, rows, filtered=bool(wanted))
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


def _print_table(client: Client, rows: list[dict[str, Any]], *, filtered: bool) -> None:
    if not rows and filtered:
        everything = client.write("sessions")
        sys.stdout.write(f"No session is like that. `{everything}` lists them all.\n")
        return
    if not rows:
        sys.stdout.write(
            "No sessions yet. Start an agent in any terminal, say something, and look "
            "again.\n"
        )
        return
    print_table(COLUMNS, [_cells(row) for row in rows])


def _cells(row: Mapping[str, Any]) -> tuple[Text, ...]:
    return (
        state_cell(row),
        cell(row["name"]),
        cell(row["directory"] or "?"),
        Text(age(row["lastActivityAt"])),
        Text(short_id(row["id"])),
    )
