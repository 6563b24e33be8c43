"""Line 12: what is missing is named; once it is there, a retry works."""

from pathlib import Path

import pytest

from tests.e2e.real_claude import find_claude
from tests.e2e.resume.bench import Conversation, ResumeBench, resumed_processes

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(180)]


def test_a_missing_agent_is_named_and_found_once_it_is_installed(
    tmp_path: Path,
) -> None:
    """The program was looked for only when the server started."""
    programs = tmp_path / "home" / ".local" / "bin"
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    with ResumeBench.open(tmp_path, variables=environment) as bench:
        session = bench.say_headless("first words")
        answer = bench.server.resume(session.id, key="same")
        assert answer["__typename"] == "AgentNotFound", answer
        assert "Install it" in answer["message"]
        assert_nothing_started(bench, session)
        programs.mkdir(parents=True)
        (programs / "claude").symlink_to(bench.claude.program)
        assert_it_works_now(bench, session)


def test_a_missing_sandbox_is_named_and_found_once_it_is_installed(
    tmp_path: Path,
) -> None:
    """Never bare instead: refused, with what to install."""
    programs = tmp_path / "home" / "bin"
    claude = find_claude().parent
    with ResumeBench.open(
        tmp_path, variables={"PATH": f"{claude}:{programs}"}
    ) as bench:
        session = bench.say_headless("first words")
        answer = bench.server.resume(session.id, key="same")
        assert answer["__typename"] == "SandboxUnavailable", answer
        assert "Install bubblewrap" in answer["message"]
        assert_nothing_started(bench, session)
        programs.mkdir()
        (programs / "bwrap").symlink_to("/usr/bin/bwrap")
        assert_it_works_now(bench, session)


def assert_nothing_started(bench: ResumeBench, session: Conversation) -> None:
    assert bench.terminals() == []
    assert resumed_processes(session) == []
    assert bench.row(session.id)["resume"]["available"] is True
    assert list((bench.server.state_dir / "terminals").glob("*")) == []


def assert_it_works_now(bench: ResumeBench, session: Conversation) -> None:
    started = bench.server.resume(session.id, key="same")
    assert started["__typename"] == "ResumeOutsideSessionPayload", started
    with bench.server.attach(started["ticket"]) as client:
        client.wait_for("Stub answer to: first words")
    assert len(resumed_processes(session)) == 1
