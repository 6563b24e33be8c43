"""`sidestage token`: the admin token, and narrower ones for dashboards and scripts."""

import argparse
import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from rich.text import Text

from sidestage.command.client import Client, open_client
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_json, add_state_dir, settings_of
from sidestage.command.picking import matching, only
from sidestage.command.table import Column, Shrink, cell, print_table

_SCOPES: Final = ("VIEW", "READ", "TERMINAL", "ADMIN")
_PATH: Final = "/control/tokens"
HOURS_LIMIT: Final = 10 * 366 * 24
"""Ten years, as the server allows."""
COLUMNS: Final = (
    Column("NAME", Shrink.END),
    Column("SCOPES"),
    Column("LAST USED"),
    Column("EXPIRES"),
    Column("ID"),
)


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "token",
        help="show, make, rotate or revoke tokens",
        description="Clients show a bearer token. The admin token lies in a file; "
        "narrower ones are for dashboards and scripts.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    path = actions.add_parser("path", help="say where the admin token lies")
    path.set_defaults(run=run_path)
    listing = actions.add_parser("list", help="list the tokens, without their secrets")
    listing.set_defaults(run=run_list)
    add_json(listing)
    making = actions.add_parser(
        "create", help="make a narrower token; it is shown once"
    )
    making.add_argument("name", help="what it is for")
    making.add_argument(
        "--scope",
        action="append",
        choices=[scope.lower() for scope in _SCOPES],
        help="what it allows (may be given several times; default: view)",
    )
    making.add_argument(
        "--hours", type=_hours, help="how long it lasts (default: for ever)"
    )
    making.set_defaults(run=run_create)
    rotating = actions.add_parser("rotate", help="replace the admin token")
    rotating.set_defaults(run=run_rotate)
    revoking = actions.add_parser("revoke", help="revoke a token")
    revoking.add_argument("token", help="its name, its id, or the beginning of that")
    revoking.set_defaults(run=run_revoke)
    for each in (path, listing, making, rotating, revoking):
        add_state_dir(each)


def run_path(arguments: argparse.Namespace) -> int:
    """Say where the admin token lies; never print it."""
    sys.stdout.write(f"{settings_of(arguments).admin_token_file}\n")
    return 0


def run_list(arguments: argparse.Namespace) -> int:
    """List the tokens."""
    with open_client(settings_of(arguments)) as client:
        tokens = client.request("GET", _PATH)["tokens"]
    if arguments.json:
        json.dump(tokens, sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
        return 0
    print_table(COLUMNS, [_cells(token) for token in tokens])
    return 0


def _cells(token: Mapping[str, Any]) -> tuple[Text, ...]:
    return (
        cell(token["name"]),
        Text(" ".join(token["scopes"])),
        Text(minute(token["lastUsedAt"])),
        Text(minute(token["expiresAt"])),
        Text(token["id"]),
    )


def run_create(arguments: argparse.Namespace) -> int:
    """Make a token and print it, this once."""
    body = {
        "name": arguments.name,
        "scopes": [scope.upper() for scope in arguments.scope or ["view"]],
        "lifetimeSeconds": None if arguments.hours is None else arguments.hours * 3600,
    }
    with open_client(settings_of(arguments)) as client:
        made = client.request("POST", _PATH, body)
    sys.stdout.write(f"{made['token']}\n")
    return 0


def run_rotate(arguments: argparse.Namespace) -> int:
    """Replace the admin token; connections that used the old one are closed."""
    settings = settings_of(arguments)
    with open_client(settings) as client:
        client.request("POST", f"{_PATH}/rotate", {})
    sys.stdout.write(f"The new admin token lies in {settings.admin_token_file}.\n")
    return 0


def run_revoke(arguments: argparse.Namespace) -> int:
    """Revoke a token; its connections are closed."""
    with open_client(settings_of(arguments)) as client:
        token = _find_token(client, arguments.token)
        answer = client.request("POST", f"{_PATH}/revoke", {"id": token["id"]})
    name = cell(token["name"]).plain
    if not answer["revoked"]:
        raise CommandFailed(f"The token {name!r} was revoked already.")
    sys.stdout.write(f"Revoked {name!r}; what used it is cut off.\n")
    return 0


def _find_token(client: Client, named: str) -> Mapping[str, Any]:
    tokens = client.request("GET", _PATH)["tokens"]
    found = matching(tokens, named)
    return only(found, named, kind="token", listing=client.write("token list"))


def _hours(text: str) -> int:
    if text.isdecimal() and 0 < int(text) <= HOURS_LIMIT:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a whole number of hours from 1 to {HOURS_LIMIT}"
    )


def minute(at: str | None) -> str:
    """Return an instant in local time, to the minute."""
    if at is None:
        return "never"
    return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M")
