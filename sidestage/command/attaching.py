"""Bridges this terminal to one of the server's, for `resume` and `attach`."""

import asyncio
import sys
from typing import Any, Final

from sidestage.command.client import open_socket
from sidestage.command.failure import CommandFailed
from sidestage.command.own_name import write_command
from sidestage.settings import Settings
from sidestage.terminals.model import SIDE_LIMIT_CELLS
from terminal_host.gateway.local_attach import Outcome, attach_local, terminal_size
from terminal_host.gateway.messages import SUBPROTOCOL

TICKET_FIELDS: Final = "ticket { secret mode socketPath }"
"""What an operation must select of a ticket to attach with it."""
KEYS: Final = (
    "Press Ctrl-] and then d to detach: the program goes on, and `attach` comes back. "
    "Ctrl-] twice types one."
)
_TO_THE_LAST_LINE: Final = "\x1b[9999;1H"
LOST_STATUS: Final = 1
"""The exit status when the connection was lost rather than ended."""


def own_size(otherwise: str = "") -> tuple[int, int]:
    """Return this terminal's columns and rows.

    Raises `CommandFailed` without one; *otherwise* is the sentence on what to do then.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        sentence = "This needs a terminal: its keyboard and its screen."
        raise CommandFailed(f"{sentence} {otherwise}".rstrip())
    cols, rows = terminal_size(sys.stdin.fileno())
    return min(cols, SIDE_LIMIT_CELLS), min(rows, SIDE_LIMIT_CELLS)


def attach(
    settings: Settings,
    ticket: dict[str, Any],
    terminal_id: str,
    *,
    view: bool = False,
) -> int:
    """Bridge until the program ends or the owner detaches; return the exit status.

    With *view*, as the ticket then says too, keys are not passed on.
    """
    begun = "Attached to look on." if view else "Attached."
    sys.stderr.write(f"{begun} Ctrl-] d detaches; the program goes on.\r\n")
    outcome = asyncio.run(_attach(settings, ticket, view=view))
    # Below whatever the program left on the screen.
    again = write_command(settings, f"attach {terminal_id}")
    sys.stderr.write(f"{_TO_THE_LAST_LINE}\n{say_outcome(outcome, again)}\n")
    if outcome.detached:
        return 0
    return LOST_STATUS if outcome.exit_status is None else outcome.exit_status


async def _attach(settings: Settings, ticket: dict[str, Any], *, view: bool) -> Outcome:
    async with open_socket(settings, ticket["socketPath"], SUBPROTOCOL) as socket:
        return await attach_local(socket, ticket["secret"], view=view)


def say_outcome(outcome: Outcome, again: str) -> str:
    """Say how an attachment ended; *again* is the command that comes back."""
    if outcome.detached:
        return f"Detached. Come back with: {again}"
    if outcome.exit_status is not None:
        return f"The program has ended with status {outcome.exit_status}."
    reason = outcome.reason or "The connection was lost."
    return f"{reason} Wait a moment, then: {again}"
