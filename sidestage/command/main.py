"""The command line: its subcommands, their help, and how they fail."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from sidestage import __version__
from sidestage.command.failure import CommandFailed
from sidestage.errors import SidestageError

_SUBCOMMANDS: Final = (
    "serve",
    "open",
    "sessions",
    "resume",
    "attach",
    "terminals",
    "projects",
    "hooks",
    "adoption",
    "pair",
    "devices",
    "keys",
    "token",
    "doctor",
    "service",
    "backup",
    "restore",
    "schema",
    "demo",
)
INTERRUPTED_STATUS: Final = 130
"""What shells give a program that SIGINT ended: 128 + 2."""


class _Parser(argparse.ArgumentParser):
    """A parser that answers a wrong option with the subcommand's own usage.

    argparse hands what a subcommand did not know up to the whole command's parser.
    """

    def parse_known_args(  # type: ignore[override]  # overloads in the parent
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = _Parser(
        prog="sidestage",
        description="See and answer the coding agents you left running.",
        epilog="Start with `sidestage serve`; `sidestage doctor` says what is missing.",
    )
    parser.add_argument(
        "--version", action="version", version=f"%(prog)s {__version__}"
    )
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in _SUBCOMMANDS:
        import_module(f"sidestage.command.{name}").register(subparsers)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Run one subcommand; return the exit status."""
    parsed = make_parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except (CommandFailed, SidestageError) as error:
        sys.stderr.write(f"sidestage: {error}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        # The reader of a pipe left (`sidestage sessions | head`): nothing to tell.
        sys.stdout = None
        return 0
