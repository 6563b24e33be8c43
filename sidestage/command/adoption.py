"""`sidestage adoption`: which sessions may ask you from afar."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from sidestage.command.client import Client, open_client, payload_of
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_json, add_state_dir, settings_of

_FIELDS: Final = "enabled excluded"
_STATUS: Final = f"{{ adoptionPolicy {{ {_FIELDS} }} }}"
_SET: Final = f"""mutation Set($input: SetAdoptionPolicyInput!) {{
  setAdoptionPolicy(input: $input) {{
    __typename
    ... on SetAdoptionPolicyPayload {{ policy {{ {_FIELDS} }} }}
    ... on UserError {{ code message }}
  }}
}}"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "adoption",
        help="say which sessions may ask you from afar",
        description="Sessions in an excluded folder are listed as ever, but make no "
        "requests and no offers. A change counts at once.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    status = actions.add_parser("status", help="show the policy")
    status.set_defaults(run=run_status)
    on = actions.add_parser("on", help="let sessions ask, but for excluded folders")
    on.set_defaults(run=run_on)
    off = actions.add_parser("off", help="let no session ask")
    off.set_defaults(run=run_off)
    exclude = actions.add_parser("exclude", help="leave a folder alone")
    exclude.set_defaults(run=run_exclude)
    include = actions.add_parser("include", help="leave a folder alone no more")
    include.set_defaults(run=run_include)
    for each in (exclude, include):
        each.add_argument("folder", help="the folder, with all that lies in it")
    for each in (status, on, off, exclude, include):
        add_json(each)
        add_state_dir(each)


def run_status(arguments: argparse.Namespace) -> int:
    """Show the policy."""
    with open_client(settings_of(arguments)) as client:
        policy = client.query(_STATUS)["adoptionPolicy"]
    return _print(policy, as_json=arguments.json)


def run_on(arguments: argparse.Namespace) -> int:
    """Let sessions ask."""
    return _set(arguments, {"enabled": True})


def run_off(arguments: argparse.Namespace) -> int:
    """Let no session ask."""
    return _set(arguments, {"enabled": False})


def run_exclude(arguments: argparse.Namespace) -> int:
    """Leave a folder alone."""
    with open_client(settings_of(arguments)) as client:
        excluded = client.query(_STATUS)["adoptionPolicy"]["excluded"]
        folder = str(Path(arguments.folder).absolute())
        policy = _change(client, {"excluded": [*excluded, folder]})
    return _print(policy, as_json=arguments.json)


def run_include(arguments: argparse.Namespace) -> int:
    """Leave a folder alone no more."""
    with open_client(settings_of(arguments)) as client:
        excluded = client.query(_STATUS)["adoptionPolicy"]["excluded"]
        folder = os.path.realpath(arguments.folder)
        if folder not in excluded:
            raise CommandFailed(f"{folder} is not excluded.")
        left = [each for each in excluded if each != folder]
        policy = _change(client, {"excluded": left})
    return _print(policy, as_json=arguments.json)


def _set(arguments: argparse.Namespace, given: dict[str, Any]) -> int:
    with open_client(settings_of(arguments)) as client:
        policy = _change(client, given)
    return _print(policy, as_json=arguments.json)


def _change(client: Client, given: dict[str, Any]) -> dict[str, Any]:
    data = client.query(_SET, {"input": given})
    payload = payload_of(data, "setAdoptionPolicy", "SetAdoptionPolicyPayload")
    policy: dict[str, Any] = payload["policy"]
    return policy


def _print(policy: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        json.dump(policy, sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
        return 0
    if not policy["enabled"]:
        sys.stdout.write("Off: no session asks from afar.\n")
    else:
        but = " but those in:" if policy["excluded"] else ""
        sys.stdout.write(f"On: every session may ask from afar{but or '.'}\n")
    for folder in policy["excluded"]:
        sys.stdout.write(f"  {folder}\n")
    return 0
