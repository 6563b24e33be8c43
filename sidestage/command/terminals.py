"""`sidestage terminals`: the terminals of the server; list them, close one."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from sidestage.command.client import Client, open_client, payload_of
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_json, add_state_dir, settings_of
from sidestage.command.picking import begins, matching
from sidestage.command.session_rows import age, short_id
from sidestage.command.sessions import list_sessions
from sidestage.command.table import Column, Shrink, cell, print_table

PAGE_ROWS: Final = 100
COLUMNS: Final = (
    Column("STATE"),
    Column("NAME", Shrink.END),
    Column("FOLDER", Shrink.START),
    Column("STARTED"),
    Column("ID"),
    Column("SESSION"),
)

_LIST: Final = """query Terminals($first: Int!, $after: String) {
  terminals(first: $first, after: $after) {
    nodes {
      id name state exitStatus endReason directory startedAt attachedClients
      session { id }
    }
    pageInfo { hasNextPage endCursor }
  }
}"""
_CLOSE: Final = """mutation Close($input: CloseTerminalInput!) {
  closeTerminal(input: $input) {
    __typename
    ... on CloseTerminalPayload { terminal { id name } }
    ... on UserError { code message }
  }
}"""

Row = Mapping[str, Any]


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand; without an action it lists."""
    parser = subparsers.add_parser(
        "terminals",
        help="list the server's terminals, or close one",
        description="Lists the terminals in which sessions were resumed. They go on "
        "while nobody is attached; closing one ends its agent.",
    )
    add_json(parser)
    add_state_dir(parser)
    parser.set_defaults(run=run_list)
    actions = parser.add_subparsers(metavar="ACTION")
    listing = actions.add_parser("list", help="list the terminals (the default)")
    listing.set_defaults(run=run_list)
    closing = actions.add_parser(
        "close",
        help="end every process of a terminal and forget it",
        description="Ends every process of a terminal and forgets it. The session "
        "stays and can be resumed again.",
    )
    closing.add_argument(
        "terminal", help="its id or its session's, or the beginning of either"
    )
    closing.set_defaults(run=run_close)
    for each in (listing, closing):
        # Their defaults must not take the place of what stood before the action.
        add_json(each, default=argparse.SUPPRESS)
        add_state_dir(each, default=argparse.SUPPRESS)


def run_list(arguments: argparse.Namespace) -> int:
    """List the terminals."""
    with open_client(settings_of(arguments)) as client:
        rows = list_terminals(client)
    if arguments.json:
        return _print_json(rows)
    if not rows:
        starting = client.write("resume ID")
        sys.stdout.write(f"No terminals. `{starting}` starts one.\n")
        return 0
    print_table(COLUMNS, [_cells(row) for row in rows])
    return 0


def run_close(arguments: argparse.Namespace) -> int:
    """Close a terminal."""
    with open_client(settings_of(arguments)) as client:
        row = find_terminal(client, arguments.terminal)
        data = client.query(_CLOSE, {"input": {"terminalId": row["id"]}})
    closed = payload_of(data, "closeTerminal", "CloseTerminalPayload")["terminal"]
    if arguments.json:
        return _print_json(closed)
    sys.stdout.write(f"Closed {cell(closed['name']).plain!r}.\n")
    return 0


def list_terminals(client: Client) -> list[Row]:
    """Return every terminal, the latest start first."""
    rows: list[Row] = []
    after = None
    while True:
        page = client.query(_LIST, {"first": PAGE_ROWS, "after": after})["terminals"]
        rows.extend(page["nodes"])
        if not page["pageInfo"]["hasNextPage"]:
            return rows
        after = page["pageInfo"]["endCursor"]


def find_terminal(client: Client, named: str) -> Row:
    """Return the terminal that *named* means: by its id, name or session.

    Of several, the one that runs is meant. Raises `CommandFailed`.
    """
    found = _matching(list_terminals(client), named)
    running = [row for row in found if row["state"] == "RUNNING"]
    if len(found) > 1 and len(running) == 1:
        found = running
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandFailed(say_which(found, f"Several terminals are like {named!r}."))
    if any(begins(row["id"], named) for row in list_sessions(client, {})):
        resuming = client.write(f"resume {named}")
        raise CommandFailed(f"That session is in no terminal. Start it: {resuming}")
    raise CommandFailed(
        f"No terminal is like {named!r}. Ids are those of "
        f"`{client.write('terminals')}` and `{client.write('sessions')}`; the id that "
        "an agent itself shows is another one."
    )


def say_which(rows: Sequence[Row], sentence: str) -> str:
    """Return *sentence* with the terminals among which one must be named."""
    lines = "".join(f"\n  {row['id']}  {cell(row['name']).plain}" for row in rows)
    return f"{sentence} Name one:{lines}"


def _matching(rows: Sequence[Row], named: str) -> list[Row]:
    return matching(rows, named) or [
        row for row in rows if row["session"] and begins(row["session"]["id"], named)
    ]


def _cells(row: Row) -> tuple[Text, ...]:
    state = row["state"].lower()
    if row["exitStatus"] is not None:
        state += f" {row['exitStatus']}"
    session = row["session"]
    return (
        Text(state, style="green" if row["state"] == "RUNNING" else "dim"),
        cell(row["name"]),
        cell(row["directory"] or "?"),
        Text(age(row["startedAt"])),
        Text(short_id(row["id"])),
        Text("" if session is None else short_id(session["id"])),
    )


def _print_json(value: object) -> int:
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")
    return 0
