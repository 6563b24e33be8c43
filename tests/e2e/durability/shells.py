"""Shells on a running server, started as a client does."""

from pathlib import Path
from typing import Any, Final

from tests.e2e.running_server import RunningServer

Json = dict[str, Any]
COLS, ROWS = 100, 40
FEED: Final = """subscription { terminalFeed {
  kind cursor more removedIds upserts { id state exitStatus endedAt }
} }"""
_START: Final = """mutation Start($input: StartTerminalInput!) {
  startTerminal(input: $input) {
    ... on StartTerminalPayload {
      terminal { id state } ticket { secret socketPath } }
    ... on UserError { code message } } }"""


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a server without sandbox: that is tested elsewhere."""
    return {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": "/usr/bin:/bin",
        "SHELL": "/bin/bash",
        "SIDESTAGE_SANDBOX": "false",
    }


def start_shell(server: RunningServer, project: str) -> Json:
    """Start a shell; return its terminal and ticket."""
    given = {
        "projectId": project,
        "template": "template:shell",
        "cols": COLS,
        "rows": ROWS,
    }
    started: Json = server.query(_START, {"input": given})["startTerminal"]
    assert "terminal" in started, started
    return started


def terminals(server: RunningServer) -> dict[str, Json]:
    """Return the terminals by id."""
    data = server.query(
        "{ terminals(first: 50) { nodes { id state exitStatus screen(lines: 60) } } }"
    )
    return {node["id"]: node for node in data["terminals"]["nodes"]}
