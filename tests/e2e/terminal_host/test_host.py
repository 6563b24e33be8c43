"""The host process: starting, listing, ending."""

from collections.abc import Callable

import pytest

from sidestage.errors import AgentNotFound
from sidestage.terminals.model import CreateTerminal, HostEventKind, TerminalState
from terminal_host.gateway.host_client import HostClient

NewTerminal = Callable[..., CreateTerminal]


async def ended(host: HostClient, request: CreateTerminal) -> int | None:
    """Wait until the program has ended; return its exit status."""
    async for event in host.watch():
        for terminal in event.terminals:
            if terminal.terminal_id == request.terminal_id and (
                terminal.state is TerminalState.EXITED
            ):
                return terminal.exit_status
    raise AssertionError("the watch ended")


async def test_creating_twice_starts_one_program(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    request = new_terminal("cat")
    first = await host.create(request)
    second = await host.create(request)
    assert first.pid == second.pid
    assert [t.terminal_id for t in await host.list_terminals()] == [request.terminal_id]


async def test_a_missing_program_is_a_typed_error(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    with pytest.raises(AgentNotFound):
        await host.create(new_terminal("no-such-program"))
    assert await host.list_terminals() == ()


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
async def test_the_exit_status_is_the_code_or_128_and_the_signal(
    host: HostClient, new_terminal: NewTerminal, command: str, status: int
) -> None:
    request = new_terminal("sh", "-c", command)
    await host.create(request)
    assert await ended(host, request) == status


async def test_a_watch_begins_with_the_whole_list(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    request = new_terminal("cat")
    await host.create(request)
    async for event in host.watch():
        assert event.kind is HostEventKind.CONNECTED
        assert [t.terminal_id for t in event.terminals] == [request.terminal_id]
        break
