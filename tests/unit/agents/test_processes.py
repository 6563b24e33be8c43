import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidestage.agents import processes
from sidestage.agents.exits import ProcessExits
from sidestage.agents.processes import (
    AgentProcess,
    LinuxProcesses,
    StatFields,
    parse_stat,
)
from sidestage.sessions.model import Process
from tests.fakes.processes import FakeProcesses

PROGRAM = "sidestage-test"
PROGRAMS = frozenset({PROGRAM})
WAIT = "import sys; sys.stdin.read()"


@asynccontextmanager
async def child(
    *arguments: str, folder: Path, **variables: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program that waits until it is told to end."""
    process = await asyncio.create_subprocess_exec(
        *arguments,
        cwd=folder,
        env={"PATH": os.environ["PATH"], **variables},
        stdin=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def find_agent(pid: int) -> AgentProcess:
    """Return the agent once it has become the program it is to run."""
    table = LinuxProcesses()
    async with asyncio.timeout(5):
        while True:
            found = await asyncio.to_thread(table.list_agents, PROGRAMS)
            for agent in found:
                if agent.process.pid == pid:
                    return agent


def count_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def refuse(process: Process) -> None:
    raise AssertionError(process)


def script(folder: Path) -> Path:
    path = folder / PROGRAM
    path.write_text(f"#!{sys.executable}\n{WAIT}\n")
    path.chmod(0o755)
    return path


async def test_a_script_of_that_name_is_an_agent(tmp_path: Path) -> None:
    program = script(tmp_path)
    arguments = (str(program), "--resume", "some id")
    async with child(
        *arguments, folder=tmp_path, SIDESTAGE_TERMINAL="terminal:1", SECRET="no"
    ) as process:
        agent = await find_agent(process.pid)
        assert agent.directory == str(tmp_path)
        assert agent.arguments[-2:] == ("--resume", "some id")
        assert agent.parent_pid == os.getpid()
        assert 0 <= agent.age_seconds < 60
        assert agent.terminal_id == "terminal:1"
        assert "no" not in repr(agent)
        table = LinuxProcesses()
        assert table.find_start_ticks(process.pid) == agent.process.start_ticks


async def test_another_program_is_none(tmp_path: Path) -> None:
    async with child(sys.executable, "-c", WAIT, PROGRAM + "x", folder=tmp_path) as it:
        found = LinuxProcesses().list_agents(PROGRAMS)
        assert it.pid not in [agent.process.pid for agent in found]


def test_a_zombie_is_no_live_process() -> None:
    table = LinuxProcesses()
    pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", ""])
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # leaves the zombie
    assert ended is not None
    assert Path(f"/proc/{pid}").exists()
    assert table.find_start_ticks(pid) is None
    os.waitpid(pid, 0)


def test_our_own_domain_names_machine_and_namespace() -> None:
    system, _, namespace = LinuxProcesses().domain.split(":", 2)
    assert system == "linux"
    assert namespace == f"pid:[{Path('/proc/self/ns/pid').stat().st_ino}]"


async def test_an_end_is_told_at_once(tmp_path: Path) -> None:
    ended: asyncio.Queue[Process] = asyncio.Queue()
    exits = ProcessExits(LinuxProcesses(), ended.put_nowait)
    async with child(sys.executable, "-c", WAIT, folder=tmp_path) as process:
        run = Process(process.pid, "1")
        exits.watch_only([run])
        process.kill()
        async with asyncio.timeout(2):
            assert await ended.get() == run
        exits.watch_only([])
    exits.close()


async def test_a_process_that_is_gone_already_is_told_too() -> None:
    ended: asyncio.Queue[Process] = asyncio.Queue()
    exits = ProcessExits(LinuxProcesses(), ended.put_nowait)
    gone = Process(2**22 - 1, "1")
    exits.watch_only([gone])
    async with asyncio.timeout(2):
        assert await ended.get() == gone
    exits.close()


async def test_without_descriptors_the_watch_is_left_to_the_regular_look() -> None:
    exits = ProcessExits(FakeProcesses(), refuse)
    exits.watch_only([Process(1, "1")])
    assert exits._descriptors == {}
    exits.close()


async def test_who_is_not_watched_any_more_is_not_told(tmp_path: Path) -> None:
    exits = ProcessExits(LinuxProcesses(), refuse)
    async with child(sys.executable, "-c", WAIT, folder=tmp_path) as process:
        before = count_descriptors()
        exits.watch_only([Process(process.pid, "1")])
        exits.watch_only([])
        assert count_descriptors() == before
    exits.close()


def test_where_a_sandboxed_process_stands_means_nothing_out_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In its own mounts a program could stand in a folder of any name.

    One in a sandbox was called `claude` and stood in "another project", and that
    project's sessions could not be told to have ended.
    """
    own = f"/proc/{os.getpid()}"
    assert processes._directory(Path(own)) == str(Path.cwd())
    real = os.readlink

    def other_mounts(path: object) -> str:
        return "mnt:[1]" if str(path) == f"{own}/ns/mnt" else real(str(path))

    monkeypatch.setattr(os, "readlink", other_mounts)
    assert processes._directory(Path(own)) is None


def test_a_name_with_parentheses_does_not_shift_the_fields() -> None:
    line = b"42 (a) b (c) S 1 " + b"0 " * 17 + b"777 99"
    assert parse_stat(line) == StatFields(parent_pid=1, start_ticks="777")
    assert parse_stat(line.replace(b" S ", b" Z ")) is None


@pytest.mark.parametrize("line", [b"", b"1 (a) S", b"1 (a) S 1 2", b"1 a S"])
def test_a_line_cut_short_is_no_line(line: bytes) -> None:
    """It was an `IndexError`, which nobody expects."""
    with pytest.raises(ValueError, match="ends early"):
        parse_stat(line)


WORDS = st.sampled_from([b"1", b"22", b"(a)", b"((", b") (", b"S", b"Z", b"x", b"-1"])


@given(st.one_of(st.binary(), st.lists(WORDS, max_size=40).map(b" ".join)))
def test_any_line_is_read_or_refused(line: bytes) -> None:
    with suppress(ValueError):
        fields = parse_stat(line)
        assert fields is None or int(fields.start_ticks) >= 0
