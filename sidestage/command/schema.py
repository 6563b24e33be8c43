"""`sidestage schema`: the GraphQL schema, as text."""

import argparse
import sys
from importlib.resources import files
from pathlib import Path


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "schema",
        help="print the GraphQL schema",
        description="Print the schema of this version, for code generators.",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    del arguments
    sys.stdout.write(read_schema())
    return 0


def read_schema() -> str:
    """Return the text of `schema.graphql`, from the package or the checkout."""
    packaged = files("api").joinpath("schema.graphql")
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    checkout = Path(__file__).resolve().parents[2] / "schema.graphql"
    return checkout.read_text(encoding="utf-8")
