"""`sidestage attach`: look at a terminal of the server from this one, and type."""

import argparse
from typing import Final

from sidestage.command.attaching import KEYS, TICKET_FIELDS, attach, own_size
from sidestage.command.client import Client, open_client, payload_of
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_state_dir, settings_of
from sidestage.command.terminals import find_terminal, list_terminals, say_which

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
        epilog=KEYS,
    )
    parser.add_argument(
        "terminal",
        nargs="?",
        help="its id or its session's, or the beginning of either",
    )
    parser.add_argument(
        "--view",
        action="store_true",
        help="only look; nothing you type is passed on, and its size stays",
    )
    add_state_dir(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Get a ticket, then attach this terminal."""
    settings = settings_of(arguments)
    own_size()
    view = bool(arguments.view)
    with open_client(settings) as client:
        terminal_id = _choose(client, arguments.terminal)
        given = {"terminalId": terminal_id, "mode": "VIEW" if view else "CONTROL"}
        data = client.query(_TICKET, {"input": given})
    payload = payload_of(data, "issueTerminalTicket", "IssueTerminalTicketPayload")
    return attach(settings, payload["ticket"], terminal_id, view=view)


def _choose(client: Client, named: str | None) -> str:
    if named is not None:
        return str(find_terminal(client, named)["id"])
    running = [row for row in list_terminals(client) if row["state"] == "RUNNING"]
    if len(running) == 1:
        return str(running[0]["id"])
    if not running:
        starting = client.write("resume ID")
        raise CommandFailed(f"No terminal runs. `{starting}` starts one.")
    raise CommandFailed(say_which(running, "Several terminals run."))
