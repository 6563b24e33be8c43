"""The host's own life: one a folder, spared by signals, replaced after its death."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidestage.errors import (
    HostUnavailable,
    InvalidInput,
    SettingsInvalid,
    TerminalLimitReached,
)
from sidestage.terminals.model import CreateTerminal, HostEvent, HostEventKind
from terminal_host.gateway.host_client import HostClient, open_host
from tests.e2e.terminal_host import raw_host
from tests.e2e.terminal_host.waiting import has_ended, until, until_exited
from tests.waiting import wait_for

NewTerminal = Callable[..., CreateTerminal]

STARTER = """
import asyncio, os, sys
from pathlib import Path
from sidestage.ids import TerminalId
from sidestage.terminals.model import CreateTerminal
from terminal_host.gateway.host_client import open_host

async def main():
    async with open_host(Path(sys.argv[1]), arguments=["--idle-seconds", "5"]) as host:
        await host.wait_connected(20)
        terminal = await host.create(CreateTerminal(
            terminal_id=TerminalId("terminal:survivor"), argv=("cat",),
            environment=dict(os.environ), directory=Path("/tmp"), cols=80, rows=24))
        print(terminal.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def run(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0
    )


async def next_event(host: HostClient, kind: HostEventKind) -> HostEvent:
    async with asyncio.timeout(30):
        async for event in host.watch():
            if event.kind is kind:
                return event
    raise AssertionError("the watch ended")


def written_pid(path: Path) -> int:
    return int(wait_for(lambda: path.exists() and path.read_text().strip(), str(path)))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGHUP])
async def test_terminals_survive_whoever_started_the_host(
    state_dir: Path, number: signal.Signals
) -> None:
    with run(sys.executable, "-c", STARTER, str(state_dir)) as starter:
        assert starter.stdout is not None
        pid = int(await asyncio.to_thread(starter.stdout.readline))
        os.killpg(starter.pid, number)  # like Ctrl-C, to the whole group
    async with open_host(state_dir, start=False) as host:
        terminals = (await next_event(host, HostEventKind.CONNECTED)).terminals
        assert [t.pid for t in terminals] == [pid]
        await host.shut_down()
        await next_event(host, HostEventKind.DISCONNECTED)
    assert has_ended(pid)


async def test_after_a_hosts_death_the_next_one_ends_what_it_left(
    state_dir: Path, new_terminal: NewTerminal, tmp_path: Path
) -> None:
    async with open_host(state_dir, arguments=["--idle-seconds", "5"]) as host:
        await host.wait_connected(20)
        script = "(setsid sleep 3600 & echo $! >pid); trap '' HUP; sleep 3600"
        request = new_terminal("sh", "-c", script)
        terminal = await host.create(request)
        stray = written_pid(tmp_path / "pid")
        watching = asyncio.create_task(next_event(host, HostEventKind.DISCONNECTED))
        await asyncio.wait([watching], timeout=0)
        raw_host.kill(raw_host.host_pid(state_dir))
        await watching
        assert (await next_event(host, HostEventKind.CONNECTED)).terminals == ()
        assert terminal.pid is not None
        assert has_ended(terminal.pid)
        assert has_ended(stray)
        assert list((state_dir / "terminals").glob("*/process.json")) == []
        # The id is free again, and the host that is new works.
        assert await host.create(request)
        await host.shut_down()


async def test_a_pid_that_was_given_out_anew_is_spared(
    state_dir: Path, new_terminal: NewTerminal
) -> None:
    """The file of a dead host names a pid that is some other process now."""
    folder = state_dir / "terminals" / "terminal:old"
    folder.mkdir(parents=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with run("sleep", "3600") as other:
        (folder / "process.json").write_text(
            f'{{"terminal_id": "terminal:old", "pid": {other.pid}, '
            f'"start_ticks": 1, "boot_id": "{boot}"}}'
        )
        with raw_host.running_host(state_dir):
            assert not folder.exists()
            assert other.poll() is None
        other.kill()


def test_a_second_host_leaves_the_folder_to_the_first(state_dir: Path) -> None:
    with raw_host.running_host(state_dir) as first:
        with raw_host.start(state_dir) as second:
            assert second.wait(20) == 0
        assert raw_host.host_pid(state_dir) == first.pid


def test_only_its_user_reaches_the_socket(state_dir: Path) -> None:
    with raw_host.running_host(state_dir):
        mode = (state_dir / "host.sock").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600


async def test_a_path_too_long_for_a_socket_is_refused_with_a_sentence(
    tmp_path: Path,
) -> None:
    long = tmp_path / ("x" * 100)
    with raw_host.start(long) as process:
        assert process.stderr is not None
        assert "Choose a shorter state folder" in process.stderr.read()
        assert process.wait(20) == 2
    with pytest.raises(SettingsInvalid, match="Choose a shorter state folder"):
        async with open_host(long):
            pass


def test_an_idle_host_leaves(state_dir: Path) -> None:
    with raw_host.start(state_dir, "--idle-seconds", "0.1") as process:
        assert process.wait(20) == 0
    assert not (state_dir / "host.sock").exists()


async def test_signals_of_the_keyboard_spare_the_host_and_term_ends_it_cleanly(
    state_dir: Path, new_terminal: NewTerminal
) -> None:
    with raw_host.running_host(state_dir) as process:
        async with open_host(state_dir, start=False) as host:
            await host.wait_connected(20)
            terminal = await host.create(new_terminal("cat"))
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                process.send_signal(number)
            assert len(await host.list_terminals()) == 1
            process.terminate()
            assert await asyncio.to_thread(process.wait, 15) == 0
        assert terminal.pid is not None
        assert has_ended(terminal.pid)


async def test_beyond_the_limit_no_program_starts(
    state_dir: Path, new_terminal: NewTerminal
) -> None:
    with raw_host.running_host(state_dir, "--running-limit", "1"):
        async with open_host(state_dir, start=False) as host:
            await host.wait_connected(20)
            first = new_terminal("cat")
            await host.create(first)
            with pytest.raises(TerminalLimitReached):
                await host.create(new_terminal("cat"))
            await host.end(first.terminal_id)
            await host.create(new_terminal("cat"))


async def test_a_draining_host_starts_nothing_and_keeps_what_runs(
    state_dir: Path, new_terminal: NewTerminal
) -> None:
    with raw_host.running_host(state_dir):
        async with open_host(state_dir, start=False) as host:
            await host.wait_connected(20)
            await host.create(new_terminal("cat"))
            await host.drain()
            with pytest.raises(HostUnavailable):
                await host.create(new_terminal("cat"))
            assert len(await host.list_terminals()) == 1


async def test_the_oldest_ended_terminals_are_forgotten(
    state_dir: Path, new_terminal: NewTerminal
) -> None:
    with raw_host.running_host(state_dir, "--ended-limit", "2"):
        async with open_host(state_dir, start=False) as host:
            await host.wait_connected(20)
            made = []
            for _ in range(4):
                request = new_terminal("true")
                made.append(request.terminal_id)
                await host.create(request)
                await until_exited(host, request.terminal_id)
            listed = [t.terminal_id for t in await host.list_terminals()]
            assert listed == made[-2:]


async def test_without_a_host_calls_fail_in_time(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terminal_host.gateway.host_client.CALL_SECONDS", 0.1)
    async with open_host(state_dir, start=False) as host:
        with pytest.raises(HostUnavailable):
            await host.wait_connected(0.1)


def test_a_host_that_speaks_other_versions_says_which(state_dir: Path) -> None:
    with raw_host.running_host(state_dir), raw_host.connect(state_dir) as connection:
        raw_host.send(connection, {"versions": [99], "role": "control"})
        answer = raw_host.receive(connection)
        assert answer is not None
        assert answer["versions"] == [2, 1]
        assert answer["error"]["code"] == "HOST_UNAVAILABLE"
        assert raw_host.receive(connection) is None


def test_frames_that_are_none_end_their_connection_alone(state_dir: Path) -> None:
    with raw_host.running_host(state_dir):
        for data in (
            b"\xff\xff\xff\xff",
            b"\0\0\0\x02[]",
            b"\0\0\0\x01{",
            b"\0\0\0\x02{}",
        ):
            with raw_host.connect(state_dir) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
        assert raw_host.host_pid(state_dir)


def test_wrong_fields_are_answered_with_what_is_wrong(state_dir: Path) -> None:
    with raw_host.running_host(state_dir), raw_host.connect(state_dir) as connection:
        raw_host.send(connection, {"versions": [1], "role": "control"})
        raw_host.receive(connection)
        requests: tuple[dict[str, Any], ...] = (
            {"op": "create", "request": {"terminal_id": "../../x"}},
            {"op": "create", "request": None},
            {"op": "resize", "terminal_id": "t", "cols": 0, "rows": 5},
            {"op": "no such operation"},
        )
        for number, request in enumerate(requests):
            raw_host.send(connection, {"id": number, **request})
            answer = raw_host.receive(connection)
            assert answer is not None
            assert answer["id"] == number
            assert answer["error"]["code"] in ("INVALID_REQUEST", "TERMINAL_NOT_FOUND")


async def test_twelve_programs_that_ignore_the_hang_up_stop_no_slower_than_one(
    state_dir: Path, new_terminal: NewTerminal
) -> None:
    with raw_host.running_host(state_dir) as process:
        async with open_host(state_dir, start=False) as host:
            await host.wait_connected(20)
            script = "trap '' HUP; echo ready; while :; do sleep 3600; done"
            made = [
                await host.create(new_terminal("sh", "-c", script)) for _ in range(12)
            ]
            for terminal in made:
                await until(
                    host, terminal.terminal_id, lambda t: t.last_output_at is not None
                )
            process.terminate()
            assert await asyncio.to_thread(process.wait, 8) == 0
    assert all(terminal.pid and has_ended(terminal.pid) for terminal in made)


async def test_a_request_above_the_limit_is_refused_before_it_is_sent(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    with pytest.raises(InvalidInput):
        await host.create(new_terminal("cat", LARGE="x" * (1 << 20)))
    assert await host.list_terminals() == ()
