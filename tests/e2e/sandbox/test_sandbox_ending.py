"""Ending a sandboxed terminal ends all it started, and nothing of another's."""

import json
import shutil
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from sidestage.ids import TerminalId
from sidestage.terminals.model import CreateTerminal
from terminal_host.gateway.host_client import HostClient, open_host
from tests.e2e.sandbox.bench import Bench
from tests.waiting import wait_for

pytestmark = pytest.mark.sandbox

CONNECT_SECONDS = 20.0
HOP = Path(__file__).with_name("hop.py")
DAEMON = (
    "import os, sys, time\n"
    "for _ in range(2):\n"
    "    if os.fork(): os._exit(0)\n"
    "    os.setsid()\n"
    "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
    "os.execve('/bin/sleep', ['sleep', '3600'], {variables})\n"
)
"""Leaves parent, session, terminal and environment behind."""


@pytest.fixture
async def host() -> AsyncGenerator[HostClient]:
    folder = Path(tempfile.mkdtemp(prefix="sst-"))  # a socket's path is short
    async with open_host(folder, arguments=["--idle-seconds", "5"]) as client:
        await client.wait_connected(CONNECT_SECONDS)
        yield client
        await client.shut_down()
    shutil.rmtree(folder, ignore_errors=True)  # the host leaves as we go


def terminal_with_daemon(
    bench: Bench, name: str, variables: str = "{}"
) -> CreateTerminal:
    """Return a terminal that leaves a daemon behind; a file *name* has its pid."""
    daemon = DAEMON.format(variables=variables)
    script = 'python3 -c "$1" "$2" </dev/null >/dev/null 2>&1; exec sleep 3600'
    request = bench.request(["sh", "-c", script, "sh", daemon, name])
    identity = TerminalId(f"terminal:{name}")
    environment = bench.environment({"SIDESTAGE_TERMINAL": identity})
    return replace(request, terminal_id=identity, environment=environment)


def daemon_of(bench: Bench, name: str) -> psutil.Process:
    written = bench.project / name
    text = wait_for(lambda: written.exists() and written.read_text(), "the daemon")
    return psutil.Process(int(text))


@pytest.mark.parametrize(
    "variables",
    ["{}", "{'SIDESTAGE_TERMINAL': 'terminal:older'}"],
    ids=["no mark", "another terminal's mark"],
)
async def test_a_daemon_that_left_everything_behind_ends_with_its_own_terminal(
    host: HostClient, bench: Bench, variables: str
) -> None:
    """Beside an older terminal nobody knew whose it was, so it stayed."""
    await host.create(terminal_with_daemon(bench, "older"))
    spared = daemon_of(bench, "older")
    ended = terminal_with_daemon(bench, "ended", variables)
    await host.create(ended)
    daemon = daemon_of(bench, "ended")
    await host.end(ended.terminal_id)
    assert not daemon.is_running()
    assert spared.is_running()
    await host.end(TerminalId("terminal:older"))
    assert not spared.is_running()


def hopping_terminal(bench: Bench, name: str, chains: int) -> CreateTerminal:
    """Return a shell's terminal with *chains* that hop; they write to a file *name*."""
    shutil.copy(HOP, bench.project / "hop.py")
    script = "(setsid python3 -I -S hop.py $1 60 $2 &) </dev/null; exec sleep 3600"
    request = bench.request(["sh", "-c", script, "sh", name, str(chains)])
    return replace(request, terminal_id=TerminalId(f"terminal:{name}"))


def hoppers() -> list[psutil.Process]:
    """Return the processes that hop now."""
    found = psutil.process_iter(["cmdline", "status"])
    return [one for one in found if "hop.py" in (one.info["cmdline"] or ())]


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.mark.parametrize("chains", [1, 8])
async def test_programs_that_fork_faster_than_they_are_found_end_too(
    host: HostClient, bench: Bench, chains: int
) -> None:
    """Closing killed processes that were gone already; the chain wrote on for good."""
    written = bench.project / "hops"
    request = hopping_terminal(bench, "hops", chains)
    await host.create(request)
    wait_for(lambda: size_of(written) > 500 * chains, "the chains hop")
    await host.remove(request.terminal_id)
    size = written.stat().st_size
    assert await host.list_terminals() == ()
    with pytest.raises(AssertionError, match="not within"):
        wait_for(lambda: written.stat().st_size > size, "a hop", seconds=1.0)
    assert hoppers() == []


SIGNAL_THREADS = """
import json, os
parent = os.getppid()
name = ".".join(("terminal_host", "host"))  # not to find this text in a command line
while name not in open(f"/proc/{parent}/cmdline").read():
    parent = int(open(f"/proc/{parent}/stat").read().rpartition(") ")[2].split()[1])
answers = []
for thread in os.listdir(f"/proc/{parent}/task"):
    try:
        os.kill(int(thread), 0)
        answers.append("reached")
    except OSError as error:
        answers.append(type(error).__name__)
open("answers.new", "w").write(json.dumps(answers))
os.rename("answers.new", "answers")
"""


async def test_the_thread_that_can_end_a_sandbox_cannot_be_signalled_from_it(
    host: HostClient, bench: Bench
) -> None:
    """It shares the sandbox's outer domain: with that alone, inside could kill us."""
    await host.create(bench.request(["python3", "-c", SIGNAL_THREADS]))
    written = bench.project / "answers"
    wait_for(written.exists, "the answers")
    answers = json.loads(written.read_text())
    assert len(answers) > 1
    assert len(answers) > 1
    assert set(answers) == {"PermissionError"}
