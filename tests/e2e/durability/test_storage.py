"""A full or read-only disk, and the bounds of what is kept."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from sidestage.errors import TerminalNotRunning
from sidestage.terminals.model import CreateTerminal, TerminalState
from terminal_host.gateway.host_client import HostClient, open_host
from tests.e2e.durability.conftest import HOST_ARGUMENTS, Bench
from tests.e2e.terminal_host.conftest import CONNECT_SECONDS
from tests.waiting import wait_for

NewTerminal = Callable[..., CreateTerminal]
TALKS = "echo first; while read line; do echo again $line; done"


async def test_a_read_only_folder_spares_live_terminals_and_is_logged_once(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 6: once mended, an idle terminal's screen is written."""
    folder = bench.state_dir / "screens"
    folder.chmod(0o500)
    terminal = await bench.host.create(new_terminal("sh", "-c", TALKS))
    log = bench.state_dir / "host.log"
    await asyncio.to_thread(wait_for, lambda: _errors(log), "a line in the log")
    async with bench.served.connect(terminal) as client:
        for number in range(5):
            await client.type(b"%d\r" % number)
            await client.until_output(b"again %d" % number)
    assert bench.recorded(terminal.terminal_id) == b""
    folder.chmod(0o700)
    await bench.until_recorded(terminal.terminal_id, "first", "again 4")
    [line] = _errors(log)
    assert "Screens cannot be recorded" in line
    assert "Permission denied" in line


async def test_a_new_name_reaches_the_record_of_an_idle_terminal_and_the_next_host(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    terminal = await bench.host.create(new_terminal("cat"))
    await bench.host.rename(terminal.terminal_id, "another name")

    def is_recorded() -> bool:
        record = bench.record(terminal.terminal_id)
        return record is not None and record.meta.name == "another name"

    await asyncio.to_thread(wait_for, is_recorded, "a record with the name")
    [lost] = (await bench.crash()).values()
    assert lost.name == "another name"
    with pytest.raises(TerminalNotRunning):
        await bench.host.rename(terminal.terminal_id, "too late")


async def test_a_folder_that_cannot_be_read_keeps_no_host_from_starting(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 6."""
    folder = bench.state_dir / "screens"
    folder.chmod(0)
    try:
        # The new host sets the folder's mode right, since it is its owner's.
        assert await bench.crash() == {}
        assert await bench.host.create(new_terminal("cat"))
    finally:
        folder.chmod(0o700)


async def test_a_screen_within_two_seconds_of_each_change(
    bench: Bench, new_terminal: NewTerminal, state_dir: Path
) -> None:
    """durability, "When": with the time that hosts really have."""
    await bench.host.shut_down()
    async with open_host(state_dir, arguments=["--idle-seconds", "5"]) as host:
        await asyncio.to_thread(
            wait_for, lambda: not (state_dir / "host.sock").exists(), "the stop"
        )
        await host.wait_connected(CONNECT_SECONDS)
        terminal = await host.create(new_terminal("sh", "-c", TALKS))
        loop = asyncio.get_running_loop()
        async with bench.served.connect(terminal) as client:
            for number in range(2):
                await client.type(b"%d\r" % number)
                await client.until_output(b"again %d" % number)
                began = loop.time()
                await bench.until_recorded(terminal.terminal_id, f"again {number}")
                assert loop.time() - began < 2


class TestBounds:
    """durability 7."""

    @pytest.fixture
    async def host(self, state_dir: Path) -> AsyncGenerator[HostClient]:
        small = ["--records-limit", "2", "--record-bytes", str(32 * 1024)]
        async with open_host(state_dir, arguments=[*HOST_ARGUMENTS, *small]) as client:
            await client.wait_connected(CONNECT_SECONDS)
            yield client
            await client.shut_down()

    async def test_history_goes_first_and_no_stale_screen_remains(
        self, bench: Bench, new_terminal: NewTerminal
    ) -> None:
        script = (
            "seq 1 6000; echo long; read x; "
            # Every cell in another colour: more than the bound for a screen alone.
            "i=0; while [ $i -lt 1900 ]; do "
            "printf '\\033[38;2;%d;%d;9mX' $((i % 251)) $((i % 241)); i=$((i + 1)); "
            "done; sleep 1000"
        )
        terminal = await bench.host.create(new_terminal("sh", "-c", script))
        await bench.until_recorded(terminal.terminal_id, "long", "5999")
        record = bench.record(terminal.terminal_id)
        assert record is not None
        assert b"\r\n5001" not in record.screen
        assert len(record.screen) < 16 * 1024
        async with bench.served.connect(terminal) as client:
            await client.type(b"\r")
            path = bench.record_path(terminal.terminal_id)
            await asyncio.to_thread(wait_for, lambda: not path.exists(), "no record")
        assert await bench.crash() == {}

    async def test_of_more_records_than_kept_the_newest_stay(
        self, bench: Bench, new_terminal: NewTerminal
    ) -> None:
        made = []
        for number in range(4):
            script = f"echo number {number}; exec cat"
            terminal = await bench.host.create(new_terminal("sh", "-c", script))
            await bench.until_recorded(terminal.terminal_id, f"number {number}")
            made.append(terminal.terminal_id)
        listed = await bench.crash()
        assert sorted(listed) == sorted(made[-2:])
        # A new one takes the place of the older of the two, in the list as well.
        newest = await bench.host.create(new_terminal("sh", "-c", "echo new; cat"))
        await bench.until_recorded(newest.terminal_id, "new")
        path = bench.record_path(made[-2])
        await asyncio.to_thread(wait_for, lambda: not path.exists(), "one gone")
        states = {t.terminal_id: t.state for t in await bench.host.list_terminals()}
        assert states == {
            made[-1]: TerminalState.LOST,
            newest.terminal_id: TerminalState.RUNNING,
        }


def _errors(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if " ERROR " in line]
