"""`sidestage keys`: the key with which this host seals for its devices."""

import argparse
import sys

from sidestage.command.client import open_client
from sidestage.command.options import add_state_dir, settings_of


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "keys",
        help="change the key that seals for paired devices",
        description="Devices pin the host's key when they are paired.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    rotating = actions.add_parser(
        "rotate", help="make a new key; the old one tells the devices of it"
    )
    rotating.add_argument(
        "--compromised",
        action="store_true",
        help="the old key was stolen: erase it and revoke every device",
    )
    rotating.set_defaults(run=run_rotate)
    add_state_dir(rotating)


def run_rotate(arguments: argparse.Namespace) -> int:
    """Change the host's key."""
    body = {"compromised": arguments.compromised}
    with open_client(settings_of(arguments)) as client:
        devices = client.request("POST", "/control/keys/rotate", body)["devices"]
        pairing = client.write("pair")
    if arguments.compromised:
        sys.stdout.write(
            f"New key; {devices} device(s) revoked. Pair each again with `{pairing}`.\n"
        )
    else:
        sys.stdout.write(
            f"New key; {devices} device(s) learn of it when they next call. The old "
            "one opens answers for seven more days.\n"
        )
    return 0
