"""Attaches to a terminal and leaves again, many times, to see what stays behind.

    python benchmarks/attach_cycles.py --cycles 1000

Runs a real server with a scratch home, as an ordinary user. After some cycles to warm
up, descriptors and memory of server and terminal host are read, and again at the end.
Exits with 1 if a descriptor stays or memory grows beyond `GROWTH_LIMIT_BYTES`.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.durability.shells import environment, start_shell
from tests.e2e.running_server import RunningServer
from tests.waiting import wait_for

WARM_UP_CYCLES = 30
GROWTH_LIMIT_BYTES = 4 << 20
"""Allocators keep pages; 1,000 clients that leaked 4 KiB each would show."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=1000)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as home,
        RunningServer(environment=environment(Path(home))) as server,
    ):
        return measure(server, options.cycles)


def measure(server: RunningServer, cycles: int) -> int:
    """Print what the cycles left behind; return the exit status."""
    project = server.home / "project"
    project.mkdir()
    started = start_shell(server, server.register_project(project))
    terminal_id = started["terminal"]["id"]
    attach(server, terminal_id, WARM_UP_CYCLES)
    host = wait_for(server.host_pid, "the host")
    assert host is not None
    processes = {"serve": server.pid, "host": host}
    before = {name: (files(pid), resident(pid)) for name, pid in processes.items()}
    began = time.monotonic()
    attach(server, terminal_id, cycles)
    print(f"{cycles} cycles in {time.monotonic() - began:.1f} s")
    return max(compare(name, pid, *before[name]) for name, pid in processes.items())


def attach(server: RunningServer, terminal_id: str, cycles: int) -> None:
    """Attach, see the prompt's screen, leave."""
    for _ in range(cycles):
        with server.attach(server.issue_ticket(terminal_id)) as client:
            client.until(lambda: client.messages[-1:] != [], "a message")


def compare(name: str, pid: int, files_before: int, bytes_before: int) -> int:
    """Print one process's figures; return 1 if they are not back."""
    wait_for(lambda: files(pid) <= files_before, f"the descriptors of {name}")
    grown = resident(pid) - bytes_before
    print(
        f"{name:6} descriptors {files_before} -> {files(pid)}, memory {grown:+} bytes"
    )
    return int(grown > GROWTH_LIMIT_BYTES)


def files(pid: int) -> int:
    """Return how many descriptors a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def resident(pid: int) -> int:
    """Return how much memory a process holds, in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
