"""Waiting for what a host tells."""

import asyncio
from collections.abc import Callable

from sidestage.ids import TerminalId
from sidestage.terminals.model import HostTerminal, TerminalState
from terminal_host.gateway.host_client import HostClient

DEADLINE_SECONDS = 30.0


async def until(
    host: HostClient, terminal_id: TerminalId, condition: Callable[[HostTerminal], bool]
) -> HostTerminal:
    """Return the terminal once *condition* holds for it."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for event in host.watch():
            for terminal in event.terminals:
                if terminal.terminal_id == terminal_id and condition(terminal):
                    return terminal
    raise AssertionError("the watch ended")


async def until_exited(host: HostClient, terminal_id: TerminalId) -> HostTerminal:
    """Return the terminal once its program has ended."""
    return await until(host, terminal_id, lambda t: t.state is TerminalState.EXITED)


def has_ended(pid: int) -> bool:
    """Tell whether there is no such process any more, or only its zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123  # no path to keep
            return file.read().rpartition(") ")[2][0] in "ZX"
    except FileNotFoundError:
        return True
