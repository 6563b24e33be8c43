"""Bridges this terminal to one of the server's, for `resume` and `attach`."""

import asyncio
import sys
from typing import Any, Final

from sidestage.command.client import open_socket
from sidestage.command.failure import CommandFailed
from sidestage.settings import Settings
from sidestage.terminals.model import SIDE_LIMIT_CELLS
from terminal_host.gateway.local_attach import Outcome, attach_local, terminal_size
from terminal_host.gateway.messages import SUBPROTOCOL

TICKET_FIELDS: Final = "ticket { secret mode socketPath }"
"""What an operation must select of a ticket to attach with it."""
_TO_THE_LAST_LINE: Final = "\x1b[9999;1H"
LOST_STATUS: Final = 1
"""The exit status when the connection was lost rather than ended."""


def own_size() -> tuple[int, int]:
    """Return this terminal's columns and rows; raises `CommandFailed` without one."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandFailed("This needs a terminal: its keyboard and its screen.")
    cols, rows = terminal_size(sys.stdin.fileno())
    return min(cols, SIDE_LIMIT_CELLS), min(rows, SIDE_LIMIT_CELLS)


def attach(settings: Settings, ticket: dict[str, Any], terminal_id: str) -> int:
    """Bridge until the program ends or the owner detaches; return the exit status."""
    sys.stderr.write("Attached. Ctrl-] d detaches; the program goes on.\r\n")
    outcome = asyncio.run(_attach(settings, ticket))
    # Below whatever the program left on the screen.
    sys.stderr.write(f"{_TO_THE_LAST_LINE}\n{_say(outcome, terminal_id)}\n")
    if outcome.detached:
        return 0
    return LOST_STATUS if outcome.exit_status is None else outcome.exit_status


async def _attach(settings: Settings, ticket: dict[str, Any]) -> Outcome:
    async with open_socket(settings, ticket["socketPath"], SUBPROTOCOL) as socket:
        return await attach_local(socket, ticket["secret"])


def _say(outcome: Outcome, terminal_id: str) -> str:
    if outcome.detached:
        return f"Detached. Come back with: sidestage attach {terminal_id}"
    if outcome.exit_status is not None:
        return f"The program has ended with status {outcome.exit_status}."
    reason = outcome.reason or "The connection was lost."
    return f"{reason} Try: sidestage attach {terminal_id}"
