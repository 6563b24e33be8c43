"""`sidestage hooks`: whether agents tell Sidestage what happens, at once."""

import argparse
import json
import sys
from typing import Any, Final

from sidestage.command.client import Client, open_client, payload_of
from sidestage.command.options import add_json, add_state_dir, settings_of

_FIELDS: Final = "settingsFile state note"
_STATUS: Final = f"{{ hooks {{ {_FIELDS} }} }}"
_WORDS: Final = {
    "INSTALLED": "installed",
    "OUTDATED": "outdated",
    "ABSENT": "not installed",
    "UNREADABLE": "unreadable",
}


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "hooks",
        help="install, remove or show the hooks in your agents' settings",
        description="With hooks a session's state changes at once, and what an agent "
        "asks can be answered from afar. Your own hooks and settings stay as they are.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    status = actions.add_parser("status", help="say where they are installed")
    status.set_defaults(run=run_status)
    install = actions.add_parser("install", help="add them to your agents' settings")
    install.set_defaults(run=run_install)
    uninstall = actions.add_parser("uninstall", help="take them out again")
    uninstall.set_defaults(run=run_uninstall)
    for each in (status, install, uninstall):
        add_json(each)
        add_state_dir(each)


def run_status(arguments: argparse.Namespace) -> int:
    """Say where the hooks are installed."""
    with open_client(settings_of(arguments)) as client:
        rows = client.query(_STATUS)["hooks"]
    return _print(rows, as_json=arguments.json)


def run_install(arguments: argparse.Namespace) -> int:
    """Install the hooks."""
    with open_client(settings_of(arguments)) as client:
        rows = _change(client, "installHooks", "InstallHooksPayload")
    return _print(rows, as_json=arguments.json)


def run_uninstall(arguments: argparse.Namespace) -> int:
    """Take the hooks out."""
    with open_client(settings_of(arguments)) as client:
        rows = _change(client, "uninstallHooks", "UninstallHooksPayload")
    return _print(rows, as_json=arguments.json)


def _change(client: Client, field: str, typename: str) -> list[dict[str, Any]]:
    document = (
        f"mutation {{ {field}(input: {{}}) {{ __typename "
        f"... on {typename} {{ hooks {{ {_FIELDS} }} }} "
        "... on UserError { code message } } }"
    )
    payload = payload_of(client.query(document), field, typename)
    rows: list[dict[str, Any]] = payload["hooks"]
    return rows


def _print(rows: list[dict[str, Any]], *, as_json: bool) -> int:
    if as_json:
        json.dump(rows, sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
        return 0
    for row in rows:
        word = _WORDS.get(row["state"], row["state"])
        note = f" ({row['note']})" if row["note"] else ""
        sys.stdout.write(f"{row['settingsFile']}: {word}{note}\n")
    return 0
