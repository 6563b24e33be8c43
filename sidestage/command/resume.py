"""`sidestage resume`: go on with an ended session, in this terminal."""

import argparse
import json
import sys
import uuid
from typing import Any, Final

from sidestage.command.attaching import TICKET_FIELDS, attach, own_size
from sidestage.command.client import Client, open_client, payload_of
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_json, add_state_dir, settings_of
from sidestage.command.sessions import list_sessions
from sidestage.ids import is_session_id

DETACHED_SIZE: Final = (80, 24)
"""The size of a terminal that nobody looks at yet: that of a VT100."""

_RESUME: Final = (
    """mutation Resume($input: ResumeOutsideSessionInput!) {
  resumeOutsideSession(input: $input) {
    __typename
    ... on ResumeOutsideSessionPayload { terminal { id name } """
    + TICKET_FIELDS
    + """ }
    ... on UserError { code message }
  }
}"""
)


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "resume",
        help="go on with an ended session, in this terminal",
        description="Starts the session's agent in a sandboxed terminal of the server "
        "and attaches this one to it.",
    )
    parser.add_argument(
        "session",
        help="its id as `sidestage sessions` shows it, or the beginning of it",
    )
    parser.add_argument(
        "--detached",
        action="store_true",
        help="start it and do not attach; `sidestage attach` does so later",
    )
    add_json(parser)
    add_state_dir(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Resume the session, then attach this terminal to it."""
    settings = settings_of(arguments)
    detached = arguments.detached or arguments.json
    cols, rows = DETACHED_SIZE if detached else own_size()
    with open_client(settings) as client:
        given = {
            "sessionId": find_session(client, arguments.session),
            "cols": cols,
            "rows": rows,
            "idempotencyKey": str(uuid.uuid4()),
        }
        data = client.query(_RESUME, {"input": given})
    payload = payload_of(data, "resumeOutsideSession", "ResumeOutsideSessionPayload")
    if detached:
        _say(payload["terminal"], as_json=arguments.json)
        return 0
    return attach(settings, payload["ticket"], payload["terminal"]["id"])


def find_session(client: Client, named: str) -> str:
    """Return the id of the session whose id begins with *named*."""
    wanted = named if named.startswith("outside:") else f"outside:{named}"
    if is_session_id(wanted):
        return wanted
    found = [
        row["id"] for row in list_sessions(client, {}) if row["id"].startswith(wanted)
    ]
    if len(found) == 1:
        return str(found[0])
    if not found:
        raise CommandFailed(f"No session's id begins with {wanted}.")
    raise CommandFailed(f"{len(found)} sessions' ids begin with {wanted}. Say more.")


def _say(terminal: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        json.dump(terminal, sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
        return
    sys.stdout.write(
        f"{terminal['name']!r} runs. Attach with: sidestage attach {terminal['id']}\n"
    )
