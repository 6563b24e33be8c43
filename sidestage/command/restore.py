"""`sidestage restore`: put a backup back in place."""

import argparse
import sys
from pathlib import Path

from sidestage.command.backups import restore_backup
from sidestage.command.options import add_state_dir, settings_of


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "restore",
        help="put a backup back in place",
        description="Puts the contents of an archive that `sidestage backup` made in "
        "the place of the state folder's. Stop the server first.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the archive")
    add_state_dir(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check the archive, put aside what is there, and put it in place."""
    settings = settings_of(arguments)
    aside = restore_backup(settings, arguments.file)
    sys.stdout.write(f"{settings.state_dir} is as it was in {arguments.file}.\n")
    if aside is not None:
        sys.stdout.write(f"What was there before lies in {aside}; remove it at will.\n")
    return 0
