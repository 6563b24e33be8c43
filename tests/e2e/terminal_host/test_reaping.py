"""What terminals leave dead behind is reaped, however much it is, and nobody waits."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sidestage.terminals.model import CreateTerminal
from terminal_host.gateway.host_client import HostClient
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
