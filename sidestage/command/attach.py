"""`sidestage attach`: look at a terminal of the server from this one, and type."""

import argparse
from typing import Final

from sidestage.command.attaching import TICKET_FIELDS, attach, own_size
from sidestage.command.client import Client, open_client, payload_of
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_state_dir, settings_of

PAGE_ROWS: Final = 100

_LIST: Final = """query Terminals($first: Int!) {
  terminals(first: $first) { nodes { id name state } }
}"""
_TICKET: Final = (
    """mutation Ticket($input: IssueTerminalTicketInput!) {
  issueTerminalTicket(input: $input) {
    __typename
    ... on IssueTerminalTicketPayload { """
    + TICKET_FIELDS
    + """ }
    ... on UserError { code message }
  }
}"""
)


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "attach",
        help="attach this terminal to one of the server's",
        description="Shows a terminal of the server here and passes your keys on. "
        "Without an id: the only one that runs.",
    )
    parser.add_argument("terminal", nargs="?", help="its id, or the beginning of it")
    parser.add_argument(
        "--view", action="store_true", help="only look; nothing you type is passed on"
    )
    add_state_dir(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Get a ticket, then attach this terminal."""
    settings = settings_of(arguments)
    own_size()
    with open_client(settings) as client:
        given = {
            "terminalId": _find_terminal(client, arguments.terminal),
            "mode": "VIEW" if arguments.view else "CONTROL",
        }
        data = client.query(_TICKET, {"input": given})
    payload = payload_of(data, "issueTerminalTicket", "IssueTerminalTicketPayload")
    return attach(settings, payload["ticket"], given["terminalId"])


def _find_terminal(client: Client, named: str | None) -> str:
    rows = client.query(_LIST, {"first": PAGE_ROWS})["terminals"]["nodes"]
    if named is None:
        running = [row for row in rows if row["state"] == "RUNNING"]
        if len(running) == 1:
            return str(running[0]["id"])
        raise CommandFailed(_say_which(running))
    wanted = named if named.startswith("terminal:") else f"terminal:{named}"
    found = [row["id"] for row in rows if row["id"].startswith(wanted)]
    if len(found) != 1:
        raise CommandFailed(f"{len(found)} terminals' ids begin with {wanted}.")
    return str(found[0])


def _say_which(running: list[dict[str, str]]) -> str:
    if not running:
        return "No terminal runs. `sidestage resume ID` starts one."
    rows = "".join(f"\n  {row['id']}  {row['name']}" for row in running)
    return f"Several terminals run. Name one:{rows}"
