"""Options that several subcommands share."""

import argparse

from sidestage.settings import Settings, read_settings


def add_state_dir(parser: argparse.ArgumentParser) -> None:
    """Add `--state-dir`: which server is meant."""
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        help="the server's state folder (default: $SIDESTAGE_STATE_DIR, else "
        "~/.local/state/sidestage)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`: output for scripts."""
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Read the settings for a subcommand that has `--state-dir`."""
    return read_settings({"state_dir": arguments.state_dir})
