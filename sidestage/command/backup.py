"""`sidestage backup`: one file with everything that Sidestage keeps."""

import argparse
import sys
from pathlib import Path

from sidestage.command.backups import write_backup
from sidestage.command.options import add_state_dir, settings_of
from sidestage.command.own_name import write_command


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "backup",
        help="write everything Sidestage keeps to one file",
        description="Writes the database and the files of the state folder to a new "
        "archive for you alone. The server may run. Transcripts are the agents' own "
        "files and are not in it.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the archive to make")
    add_state_dir(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the archive."""
    settings = settings_of(arguments)
    count = write_backup(settings, arguments.file)
    restore = write_command(settings, f"restore {arguments.file}")
    sys.stdout.write(
        f"{arguments.file} holds {count} files, tokens and keys among them: keep it "
        f"as you keep a password.\nTo put it back: {restore}\n"
    )
    return 0
