"""What terminals leave dead behind is reaped, however much it is, and nobody waits."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sidestage.terminals.model import CreateTerminal
from terminal_host.gateway.host_client import HostClient
from terminal_host.host import reaping
from tests.e2e.terminal_host import raw_host
from tests.e2e.terminal_host.conftest import Served
from tests.e2e.terminal_host.waiting import until_exited
from tests.waiting import wait_for

NewTerminal = Callable[..., CreateTerminal]

REAPED_SECONDS = 5.0
HOP = Path(__file__).parents[1] / "sandbox" / "hop.py"
BURST = """
import os, signal, sys
for _ in range({count} // 50):
    child = os.fork()
    if not child:
        os.setsid()
        for _ in range(50):
            if not os.fork():
                os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
open("done", "w").write("x")
signal.pause()
"""
"""Makes orphans that die at once: what is left of each is a zombie of the host."""


def zombies(host: int) -> int:
    """Return how many dead children *host* has not reaped."""
    count = 0
    for child in psutil.Process(host).children():
        try:
            count += child.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            continue
    return count


async def test_a_burst_of_orphans_leaves_no_zombie_and_holds_nobody_up(
    host: HostClient,
    served: Served,
    new_terminal: NewTerminal,
    state_dir: Path,
    tmp_path: Path,
) -> None:
    """Each cost a look into /proc, so they filled the machine's process table."""
    pid = await asyncio.to_thread(raw_host.host_pid, state_dir)
    shell = await host.create(new_terminal())
    script = BURST.format(count=5000)
    await host.create(new_terminal(sys.executable, "-I", "-S", "-c", script))
    async with served.connect(shell) as client:
        await client.until_message("attached")
        for number in range(20):
            await client.type(b"echo n''%d.\r" % number)
            await client.until_output(b"n%d." % number, deadline_seconds=1.0)
    done = tmp_path / "done"
    await asyncio.to_thread(wait_for, done.exists, "the burst is over")
    await asyncio.to_thread(
        wait_for, lambda: not zombies(pid), "no zombie", seconds=REAPED_SECONDS
    )
    log = (state_dir / "host.log").read_text()
    assert "Exception ignored" not in log


async def test_a_programs_status_is_known_among_a_thousand_others(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    script = BURST.format(count=2000).replace("signal.pause()", "sys.exit(7)")
    request = new_terminal(sys.executable, "-I", "-S", "-c", script)
    await host.create(request)
    ended = await until_exited(host, request.terminal_id)
    said = await host.screen_text(request.terminal_id, lines=20)
    assert (ended.exit_status, said) == (7, "")


async def test_without_a_sandbox_chains_of_forks_end_with_their_terminal_too(
    host: HostClient, new_terminal: NewTerminal, tmp_path: Path
) -> None:
    """What the table of processes showed was gone before it could be signalled."""
    written = tmp_path / "hops"
    script = f"(setsid {sys.executable} -I -S {HOP} {written} 60 4 &); sleep 3600"
    request = new_terminal("sh", "-c", script)
    await host.create(request)

    def size() -> int:
        return written.stat().st_size if written.exists() else 0

    await asyncio.to_thread(wait_for, lambda: size() > 1000, "the chains hop")
    await host.remove(request.terminal_id)
    ended = size()
    with pytest.raises(AssertionError, match="not within"):
        await asyncio.to_thread(wait_for, lambda: size() > ended, "a hop", seconds=1.0)


def dead_children(count: int) -> set[int]:
    """Return the pids of children of ours that have ended with status 3."""
    pids = set()
    for _ in range(count):
        child = subprocess.Popen(["/bin/sh", "-c", "exit 3"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        pids.add(child.pid)
        child.returncode = 3  # or it would complain that nobody waited for it
    return pids


def test_reaping_looks_nobody_up_and_does_so_much_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look into /proc for each dead child was slower than programs can fork."""
    monkeypatch.setattr(reaping, "find_stat", None)  # calling it would raise
    monkeypatch.setattr(reaping, "REAP_LIMIT", 4)
    dead = dead_children(6)
    found: dict[int, int] = {}
    # Hosts of other tests are children of this process too, and may have ended.
    while batch := reaping.reap_children():
        assert len(batch) <= 4
        found |= batch
    assert dead <= found.keys()
    assert {os.waitstatus_to_exitcode(found[pid]) for pid in dead} == {3}


def test_a_helpers_status_is_left_to_whoever_waits_for_it() -> None:
    with reaping.helper_children():
        (helper,) = dead_children(1)
        assert helper not in reaping.reap_children()
        assert os.waitpid(helper, 0)[1] >> 8 == 3


SIGNALS = """
import asyncio, os, signal
from terminal_host.host.__main__ import _handle_signals

async def main():
    stopping = asyncio.Event()
    _handle_signals(lambda: None, stopping.set)
    for _ in range(2000):
        os.kill(os.getpid(), signal.SIGCHLD)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(stopping.wait(), 10)

asyncio.run(main())
"""


def test_signals_by_the_thousand_print_nothing_and_hide_no_stop() -> None:
    """`host.log` grew by 250 kB of "Exception ignored"; a stop could get lost."""
    command = [sys.executable, "-c", SIGNALS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
