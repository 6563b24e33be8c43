"""`sidestage devices`: the paired devices."""

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from rich.text import Text

from sidestage.command.client import Client, open_client, payload_of
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_json, add_state_dir, settings_of
from sidestage.command.picking import matching, only
from sidestage.command.table import Column, Shrink, cell, print_table
from sidestage.command.token import minute

PAGE_ROWS: Final = 100
COLUMNS: Final = (
    Column("NAME", Shrink.END),
    Column("PLATFORM"),
    Column("STATE"),
    Column("SCOPES"),
    Column("LAST SEEN"),
    Column("ID", Shrink.END),
)

_LIST: Final = """query Devices($first: Int!, $after: String) {
  devices(first: $first, after: $after) {
    nodes {
      id name platform state scopes content keyId pairedAt lastSeenAt revokedAt
    }
    pageInfo { hasNextPage endCursor }
  }
}"""
_RENAME: Final = """mutation Rename($input: RenameDeviceInput!) {
  renameDevice(input: $input) {
    __typename
    ... on RenameDevicePayload { device { id name } }
    ... on UserError { code message }
  }
}"""
_REVOKE: Final = """mutation Revoke($input: RevokeDeviceInput!) {
  revokeDevice(input: $input) {
    __typename
    ... on RevokeDevicePayload { wasRevoked device { id name } }
    ... on UserError { code message }
  }
}"""

Json = Mapping[str, Any]


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "devices",
        help="list, rename or revoke paired devices",
        description="Devices are paired with `sidestage pair`.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list the devices")
    listing.add_argument(
        "--all", action="store_true", help="those that were revoked, too"
    )
    listing.set_defaults(run=run_list)
    add_json(listing)
    renaming = actions.add_parser("rename", help="give a device another name")
    renaming.add_argument("device", help="its name, its id, or the beginning of that")
    renaming.add_argument("name", help="the new name")
    renaming.set_defaults(run=run_rename)
    revoking = actions.add_parser("revoke", help="cut a device off, for good")
    revoking.add_argument("device", help="its name, its id, or the beginning of that")
    revoking.set_defaults(run=run_revoke)
    for each in (listing, renaming, revoking):
        add_state_dir(each)


def run_list(arguments: argparse.Namespace) -> int:
    """List the devices."""
    with open_client(settings_of(arguments)) as client:
        rows = _list_devices(client)
        pairing = client.write("pair")
    if not arguments.all:
        rows = [row for row in rows if row["state"] != "REVOKED"]
    if arguments.json:
        json.dump(rows, sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
        return 0
    if not rows:
        sys.stdout.write(f"No devices yet. Pair one with `{pairing}`.\n")
        return 0
    print_table(COLUMNS, [_cells(row) for row in rows])
    return 0


def run_rename(arguments: argparse.Namespace) -> int:
    """Rename a device."""
    with open_client(settings_of(arguments)) as client:
        device = _find(client, arguments.device)
        wish = {"deviceId": device["id"], "name": arguments.name}
        data = client.query(_RENAME, {"input": wish})
        made = payload_of(data, "renameDevice", "RenameDevicePayload")
    sys.stdout.write(f"It is called {cell(made['device']['name']).plain!r} now.\n")
    return 0


def run_revoke(arguments: argparse.Namespace) -> int:
    """Cut a device off."""
    with open_client(settings_of(arguments)) as client:
        device = _find(client, arguments.device)
        data = client.query(_REVOKE, {"input": {"deviceId": device["id"]}})
        made = payload_of(data, "revokeDevice", "RevokeDevicePayload")
    name = cell(made["device"]["name"]).plain
    if made["wasRevoked"]:
        raise CommandFailed(f"The device {name!r} was revoked already.")
    sys.stdout.write(f"Revoked {name!r}; it is cut off.\n")
    return 0


def _find(client: Client, named: str) -> Json:
    rows = _list_devices(client)
    found = matching(rows, named)
    # A revoked device's name may have been given again.
    live = [row for row in found if row["state"] != "REVOKED"]
    listing = client.write("devices list --all")
    return only(live or found, named, kind="device", listing=listing)


def _list_devices(client: Client) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        data = client.query(_LIST, {"first": PAGE_ROWS, "after": after})["devices"]
        rows += data["nodes"]
        if not data["pageInfo"]["hasNextPage"]:
            return rows
        after = data["pageInfo"]["endCursor"]


def _cells(row: Json) -> tuple[Text, ...]:
    sealed = " sealed" if row["content"] == "SEALED" else ""
    return (
        cell(row["name"]),
        cell(row["platform"]),
        Text(row["state"].lower()),
        Text(" ".join(row["scopes"]).lower() + sealed),
        Text(minute(row["lastSeenAt"])),
        Text(row["id"]),
    )
