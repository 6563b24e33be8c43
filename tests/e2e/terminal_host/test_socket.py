"""The companion WebSocket against a real host."""

from collections.abc import Callable

from sidestage.terminals.model import CreateTerminal
from terminal_host.gateway.host_client import HostClient
from tests.e2e.terminal_host.conftest import Served

NewTerminal = Callable[..., CreateTerminal]


async def test_what_is_typed_is_echoed(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal())
    async with served.connect(terminal) as client:
        await client.until_message("attached")
        await client.type(b"echo he''llo\r")
        await client.until_output(b"hello")


async def test_a_program_that_ended_before_anyone_came_shows_its_output_and_code(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal("sh", "-c", "echo gone; exit 3"))
    async with served.connect(terminal) as client:
        exited = await client.until_message("exit")
        assert exited["status"] == 3
        assert b"gone" in client.repaint + client.output
        assert await client.until_closed() == (1000, "The program has ended.")
