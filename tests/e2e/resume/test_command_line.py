"""Line 17: `sidestage resume` in a terminal, without any other client."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.pty_program import PtyProgram
from tests.e2e.resume.bench import ResumeBench, resumed_processes
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(180)]

DETACH = "\x1dd"
"""Ctrl-] d."""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ResumeBench]:
    with ResumeBench.open(tmp_path) as bench:
        yield bench


def sidestage(bench: ResumeBench, *arguments: str) -> PtyProgram:
    """Return `sidestage` with *arguments* in a PTY, with the size of the owner's."""
    return PtyProgram(
        [sys.executable, "-P", "-m", "sidestage", *arguments],
        directory=bench.claude.home,
        environment=bench.server.environment,
        cols=97,
        rows=33,
    )


def test_resume_attaches_this_terminal_to_the_new_one(bench: ResumeBench) -> None:
    """The earlier turns, a typed prompt, its reply; then detach, and attach again."""
    session = bench.say_headless("first words")
    with sidestage(bench, "resume", session.id) as terminal:
        terminal.wait_for("Stub answer to: first words")
        row = bench.wait_row(session.id, lambda row: row["state"] == "IDLE")
        [process] = resumed_processes(session)
        [ours] = bench.terminals()
        assert (ours["cols"], ours["rows"]) == (97, 33)
        assert row["terminal"]["id"] == ours["id"]
        terminal.send("and on")
        terminal.wait_for("and on")
        terminal.send("\r")
        terminal.wait_for("Stub answer to: and on")
        terminal.send(DETACH)
        assert terminal.wait_end() == 0
        assert "sidestage attach" in terminal.text
    assert process.is_running()
    with sidestage(bench, "attach", ours["id"]) as terminal:
        terminal.wait_for("Stub answer to: and on")
        terminal.send("/exit")
        terminal.wait_for("/exit")
        terminal.send("\r")
        assert terminal.wait_end() == 0
    wait_for(lambda: resumed_processes(session) == [], "the agent has ended")
    bench.wait_ended(session)
    assert b"Stub answer to: and on" in session.transcript.read_bytes()


def test_the_beginning_of_an_id_is_enough_and_a_refusal_is_said(
    bench: ResumeBench,
) -> None:
    """A live session is refused with the API's own sentence, and nothing starts."""
    session = bench.say_headless("first words")
    short = session.id.removeprefix("outside:")[:10]
    with bench.keyboard("--resume", session.conversation_id):
        bench.wait_row(session.id, lambda row: row["state"] == "IDLE")
        with sidestage(bench, "resume", short) as terminal:
            assert terminal.wait_end() == 1
            assert "This session is still running." in terminal.text
    assert bench.terminals() == []
    bench.wait_ended(session)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sidestage", "resume", "--detached", short],
        env=bench.server.environment,
        cwd=bench.claude.home,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    [ours] = bench.terminals()
    assert f"sidestage attach {ours['id']}" in done.stdout
    assert len(wait_for(lambda: resumed_processes(session), "the agent runs")) == 1
