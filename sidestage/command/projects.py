"""`sidestage projects`: the folders in which terminals may be started."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from sidestage.command.client import Client, open_client, payload_of
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_json, add_state_dir, settings_of
from sidestage.command.picking import matching, only
from sidestage.command.table import Column, Shrink, cell, print_table

PAGE_ROWS: Final = 100
COLUMNS: Final = (
    Column("NAME", Shrink.END),
    Column("FOLDER", Shrink.START),
    Column("ACCESS"),
)

_LIST: Final = """query Projects($first: Int!, $after: String) {
  projects(first: $first, after: $after) {
    nodes { id name path readOnly templates { id title } }
    pageInfo { hasNextPage endCursor }
  }
}"""
_ADD: Final = """mutation Add($input: RegisterProjectInput!) {
  registerProject(input: $input) {
    __typename
    ... on RegisterProjectPayload { project { id name path readOnly } }
    ... on UserError { code message }
  }
}"""
_REMOVE: Final = """mutation Remove($input: RemoveProjectInput!) {
  removeProject(input: $input) {
    __typename
    ... on RemoveProjectPayload { project { id path } }
    ... on UserError { code message }
  }
}"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "projects",
        help="list, add or remove project folders",
        description="A session can be resumed when its folder lies in a project.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list the projects")
    listing.set_defaults(run=run_list)
    adding = actions.add_parser("add", help="register a folder")
    adding.add_argument("folder", nargs="?", default=".", help="default: this folder")
    adding.add_argument("--name", help="default: the folder's name")
    adding.add_argument(
        "--read-only", action="store_true", help="terminals may read it only"
    )
    adding.set_defaults(run=run_add)
    removing = actions.add_parser("remove", help="forget a project; its folder stays")
    removing.add_argument("project", help="its folder, its name, or its id")
    removing.set_defaults(run=run_remove)
    for each in (listing, adding, removing):
        add_json(each)
        add_state_dir(each)


def run_list(arguments: argparse.Namespace) -> int:
    """List the projects."""
    with open_client(settings_of(arguments)) as client:
        rows = _list_projects(client)
    if arguments.json:
        return _print_json(rows)
    if not rows:
        adding = client.write("projects add FOLDER")
        sys.stdout.write(f"No projects yet. Add one with `{adding}`.\n")
        return 0
    print_table(COLUMNS, [_cells(row) for row in rows])
    return 0


def _cells(row: dict[str, Any]) -> tuple[Text, ...]:
    access = "read-only" if row["readOnly"] else "read-write"
    return cell(row["name"]), cell(row["path"]), Text(access)


def run_add(arguments: argparse.Namespace) -> int:
    """Register a folder."""
    given: dict[str, Any] = {
        "path": str(Path(arguments.folder).absolute()),
        "readOnly": arguments.read_only,
    }
    if arguments.name is not None:
        given["name"] = arguments.name
    with open_client(settings_of(arguments)) as client:
        data = client.query(_ADD, {"input": given})
    try:
        payload = payload_of(data, "registerProject", "RegisterProjectPayload")
    except CommandFailed as error:
        # The folder that was meant: a relative path depends on where one stands.
        raise CommandFailed(f"{given['path']}: {error}") from error
    project = payload["project"]
    if arguments.json:
        return _print_json(project)
    sys.stdout.write(f"{project['path']} is now the project {project['name']!r}.\n")
    return 0


def run_remove(arguments: argparse.Namespace) -> int:
    """Forget a project."""
    with open_client(settings_of(arguments)) as client:
        project_id = _find_project(client, arguments.project)
        data = client.query(_REMOVE, {"input": {"projectId": project_id}})
    removed = payload_of(data, "removeProject", "RemoveProjectPayload")
    if arguments.json:
        return _print_json(removed["project"])
    path = removed["project"]["path"]
    sys.stdout.write(f"{path} is no project any more; the folder stays.\n")
    return 0


def _list_projects(client: Client) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    after = None
    while True:
        data = client.query(_LIST, {"first": PAGE_ROWS, "after": after})
        page = data["projects"]
        rows.extend(page["nodes"])
        if not page["pageInfo"]["hasNextPage"]:
            return rows
        after = page["pageInfo"]["endCursor"]


def _find_project(client: Client, named: str) -> str:
    rows = _list_projects(client)
    path = str(Path(named).resolve())
    found = [row for row in rows if row["path"] == path] or matching(rows, named)
    listing = client.write("projects list")
    return str(only(found, named, kind="project", listing=listing)["id"])


def _print_json(value: object) -> int:
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")
    return 0
