"""Options that several subcommands share."""

import argparse

from sidestage.settings import Settings, read_settings


def add_state_dir(
    parser: argparse.ArgumentParser, *, default: str | None = None
) -> None:
    """Add `--state-dir`: which server is meant."""
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        default=default,
        help="the server's state folder (default: $SIDESTAGE_STATE_DIR, else "
        "$XDG_STATE_HOME/sidestage, else ~/.local/state/sidestage)",
    )


def add_json(parser: argparse.ArgumentParser, *, default: bool | str = False) -> None:
    """Add `--json`: output for scripts."""
    parser.add_argument(
        "--json", action="store_true", default=default, help="print JSON, for scripts"
    )


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Read the settings for a subcommand that has `--state-dir`."""
    return read_settings({"state_dir": arguments.state_dir})


def count(text: str) -> int:
    """Parse a number of things that may be 0, for argparse."""
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
