import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from sidestage.agents import attribution
from sidestage.agents.attribution import runs_inside_agent


@pytest.fixture(autouse=True)
def no_agent_above(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may be an agent itself."""
    monkeypatch.setattr(attribution, "AGENT_PROGRAMS", frozenset())


def nobody(_: int) -> bool:
    return False


@contextmanager
def child(**environment: str) -> Iterator[int]:
    """A process that waits, in a clean environment."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "print(flush=True); input()"],
        env={"PATH": "/usr/bin"} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        # Its environment is in place only once it runs: exec closes the pipe that
        # Popen waits for a moment earlier.
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def test_an_ordinary_process_is_the_owners() -> None:
    with child() as pid:
        assert not runs_inside_agent(pid, is_registered=nobody)


@pytest.mark.parametrize("name", ["CLAUDECODE", "CODEX_SANDBOX"])
def test_an_agents_environment_tells(name: str) -> None:
    with child(**{name: "1"}) as pid:
        assert runs_inside_agent(pid, is_registered=nobody)


def test_a_parents_name_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    own = psutil.Process().name()
    monkeypatch.setattr(attribution, "AGENT_PROGRAMS", frozenset({own}))
    with child() as pid:
        assert runs_inside_agent(pid, is_registered=nobody)


def test_a_registered_parent_tells() -> None:
    with child() as pid:
        assert runs_inside_agent(pid, is_registered=lambda it: it == os.getpid())


def test_a_process_that_is_gone_is_not_an_agents() -> None:
    with child() as pid:
        pass
    assert not runs_inside_agent(pid, is_registered=nobody)
