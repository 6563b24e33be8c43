"""Bridges this terminal to one of the server's, for `resume` and `attach`."""

import asyncio
import shutil
import sys
from typing import Any, Final

from sidestage.command.client import open_socket
from sidestage.command.failure import CommandFailed
from sidestage.settings import Settings
from terminal_host.gateway.messages import SUBPROTOCOL

TICKET_FIELDS: Final = "ticket { secret mode socketPath }"
"""What an operation must select of a ticket to attach with it."""


def own_size() -> tuple[int, int]:
    """Return this terminal's columns and rows; raises `CommandFailed` without one."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandFailed("This needs a terminal: its keyboard and its screen.")
    size = shutil.get_terminal_size()
    return min(size.columns, 500), min(size.lines, 500)


def attach(settings: Settings, ticket: dict[str, Any]) -> int:
    """Bridge until the program ends or the owner detaches; return the exit status."""
    from terminal_host.gateway.local_attach import DETACH_KEY_NAME

    sys.stderr.write(f"Attached. {DETACH_KEY_NAME} detaches; the program goes on.\n")
    return asyncio.run(_attach(settings, ticket))


async def _attach(settings: Settings, ticket: dict[str, Any]) -> int:
    from terminal_host.gateway.local_attach import attach_here

    async with open_socket(settings, ticket["socketPath"], SUBPROTOCOL) as socket:
        return await attach_here(socket, ticket["secret"])
