"""`sidestage resume`: go on with an ended session, in this terminal."""

import argparse
import json
import shlex
import sys
import uuid
from typing import Any, Final

from sidestage.command.attaching import KEYS, TICKET_FIELDS, attach, own_size
from sidestage.command.client import Client, open_client, payload_of
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_json, add_state_dir, settings_of
from sidestage.command.picking import begins
from sidestage.command.sessions import list_sessions
from sidestage.command.table import cell
from sidestage.ids import is_session_id

_WITHOUT_A_TERMINAL: Final = "`--detached` starts the session without one."
DETACHED_SIZE: Final = (80, 24)
"""The size of a terminal that nobody looks at yet: that of a VT100."""

_RESUME: Final = (
    """mutation Resume($input: ResumeOutsideSessionInput!) {
  resumeOutsideSession(input: $input) {
    __typename
    ... on ResumeOutsideSessionPayload { terminal { id name } """
    + TICKET_FIELDS
    + """ }
    ... on OutsideSessionResumed { openTerminal { id } }
    ... on UserError { code message }
  }
}"""
)
_FOLDER: Final = """query Folder($id: ID!) {
  node(id: $id) { ... on OutsideSession { directory project { id } } }
}"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "resume",
        help="go on with an ended session, in this terminal",
        description="Starts the session's agent in a sandboxed terminal of the server "
        "and attaches this one to it.",
        epilog=KEYS,
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
    cols, rows = DETACHED_SIZE if detached else own_size(_WITHOUT_A_TERMINAL)
    with open_client(settings) as client:
        session_id = find_session(client, arguments.session)
        given = {
            "sessionId": session_id,
            "cols": cols,
            "rows": rows,
            "idempotencyKey": str(uuid.uuid4()),
        }
        data = client.query(_RESUME, {"input": given})
        payload = _payload(client, data, session_id)
    if detached:
        _say(client, payload["terminal"], as_json=arguments.json)
        return 0
    return attach(settings, payload["ticket"], payload["terminal"]["id"])


def find_session(client: Client, named: str) -> str:
    """Return the id of the session whose id begins with *named*."""
    wanted = named if named.startswith("outside:") else f"outside:{named}"
    if is_session_id(wanted):
        return wanted
    found = [row for row in list_sessions(client, {}) if begins(row["id"], named)]
    if len(found) == 1:
        return str(found[0]["id"])
    if not found:
        raise CommandFailed(
            f"No session's id begins with {wanted}. Ids are those of "
            f"`{client.write('sessions')}`; the id that an agent itself shows is "
            "another one."
        )
    raise CommandFailed(f"{len(found)} sessions' ids begin with {wanted}. Say more.")


def _payload(client: Client, data: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Return the payload; raise `CommandFailed` with what to do about a refusal."""
    try:
        return payload_of(data, "resumeOutsideSession", "ResumeOutsideSessionPayload")
    except CommandFailed as error:
        hint = _hint(client, data["resumeOutsideSession"], session_id)
        raise CommandFailed(f"{error}{hint}") from error


def _hint(client: Client, refused: dict[str, Any], session_id: str) -> str:
    if refused["__typename"] == "OutsideSessionResumed" and refused["openTerminal"]:
        terminal_id = refused["openTerminal"]["id"]
        return f" Attach with: {client.write(f'attach {terminal_id}')}"
    if refused["__typename"] == "OutsideResumeUnavailable":
        row = client.query(_FOLDER, {"id": session_id})["node"]
        if row and row["project"] is None and row["directory"]:
            adding = client.write(f"projects add {shlex.quote(row['directory'])}")
            folder = cell(row["directory"]).plain
            return f" Its folder is {folder}. Register it with: {cell(adding).plain}"
    return ""


def _say(client: Client, terminal: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        json.dump(terminal, sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
        return
    again = client.write(f"attach {terminal['id']}")
    name = cell(terminal["name"]).plain
    sys.stdout.write(f"{name!r} runs. Attach with: {again}\n")
