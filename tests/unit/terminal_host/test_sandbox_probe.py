"""Where a sandbox cannot be had, a sentence says what to do."""

import os
import platform
from pathlib import Path

import pytest

from sidestage.errors import AgentNotFound, SandboxUnavailable
from sidestage.ids import TerminalId
from sidestage.terminals.model import CreateTerminal, SandboxProfile
from terminal_host.host import confine, sandbox_probe
from terminal_host.host.sandbox import BubblewrapConfiner
from terminal_host.host.sandbox_probe import SandboxProbe


def ask(argv: str, *, sandbox: SandboxProfile | None) -> CreateTerminal:
    return CreateTerminal(
        terminal_id=TerminalId("terminal:1"),
        argv=(argv, "--flag"),
        environment={"PATH": "/usr/bin:/bin"},
        directory=Path("/"),
        cols=80,
        rows=24,
        sandbox=sandbox,
    )


PROFILE = SandboxProfile(
    project=Path("/usr"),
    project_read_only=True,
    home=Path("/tmp/home"),
    state_dir=Path("/tmp/state"),
    program_dirs=(),
    agent=None,
)


def test_without_bubblewrap_it_says_what_to_install() -> None:
    assert sandbox_probe.find_obstacle("no-such-bwrap", allow_root=True) == (
        "Install bubblewrap (Debian, Ubuntu, Fedora, Arch: the package `bubblewrap`)."
    )


def test_root_is_refused_unless_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    refusal = sandbox_probe.find_obstacle("sh", allow_root=False)
    assert refusal == "Run Sidestage as an ordinary user: root cannot be confined."
    assert sandbox_probe.find_obstacle("sh", allow_root=True) is None


def test_another_platform_is_told_what_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    refusal = sandbox_probe.find_obstacle("sh", allow_root=True)
    assert refusal is not None
    assert "need Linux on x86-64 or ARM64" in refusal
    assert "riscv64" in refusal


@pytest.mark.parametrize(
    ("version", "refused"),
    [("0.4.1", True), (None, True), ("0.5.0", False), ("0.8", False), ("1.0", False)],
)
def test_an_old_bubblewrap_is_refused(version: str | None, refused: bool) -> None:
    refusal = sandbox_probe.refuse_version(version)
    assert (refusal is not None) is refused
    assert refusal is None or refusal.startswith("Install bubblewrap 0.5 or newer; ")


@pytest.mark.parametrize(
    "message",
    [
        "bwrap: No permissions to create a new namespace, likely because ...\n",
        "bwrap: setting up uid map: Permission denied\n",
        "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n",
    ],
)
def test_forbidden_user_namespaces_are_told_from_other_failures(message: str) -> None:
    told = sandbox_probe.explain_failure(message)
    assert told.startswith("This machine forbids user namespaces")
    assert told.endswith(message.strip())


def test_a_container_without_its_own_proc_is_told_how_to_allow_it() -> None:
    told = sandbox_probe.explain_failure(
        "bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n"
    )
    assert "systempaths=unconfined" in told


def test_any_other_failure_is_quoted() -> None:
    told = sandbox_probe.explain_failure("first\nbwrap: no such thing\n")
    assert told == (
        "The trial of the sandbox failed. bubblewrap said: bwrap: no such thing"
    )
    assert sandbox_probe.explain_failure("").endswith("said: nothing")


def test_signals_are_confined_from_the_sixth_landlock_on() -> None:
    assert not SandboxProbe(None, "0.8.0", 5).signals_confined
    assert SandboxProbe(None, "0.8.0", 6).signals_confined


def test_a_refusal_is_asked_for_anew_each_time(tmp_path: Path) -> None:
    """A machine that was mended must not need a restart of the host."""
    program = tmp_path / "bwrap"
    confiner = BubblewrapConfiner(program=str(program), allow_root=True)
    assert confiner.probe().refusal == sandbox_probe.INSTALL
    program.write_text("#!/bin/sh\necho 'bubblewrap 0.1.0'\n")
    program.chmod(0o755)
    assert "version 0.1.0 was found" in str(confiner.probe().refusal)


def test_it_is_never_run_bare_when_a_sandbox_was_asked_for() -> None:
    confiner = BubblewrapConfiner(program="no-such-bwrap", allow_root=True)
    with (
        pytest.raises(SandboxUnavailable, match="Install bubblewrap"),
        confiner.confine(ask("sh", sandbox=PROFILE)),
    ):
        pass


def test_without_a_profile_the_program_runs_as_it_is() -> None:
    confiner = BubblewrapConfiner(program="no-such-bwrap")
    with confiner.confine(ask("sh", sandbox=None)) as confined:
        assert confined.argv == ("/usr/bin/sh", "--flag")
        assert confined.pass_fds == ()
        assert not confined.report.enabled


def test_a_program_that_is_not_on_the_path_is_named() -> None:
    confiner = BubblewrapConfiner()
    with (
        pytest.raises(AgentNotFound, match="no-such-agent"),
        confiner.confine(ask("no-such-agent", sandbox=None)),
    ):
        pass


def test_the_launcher_reads_a_command_that_is_in_no_argument_list() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"/bin/x\0a b\0\xff\0")
    os.close(writer)
    assert confine.read_command(reader) == ["/bin/x", "a b", "\udcff"]


def test_a_launcher_that_cannot_read_its_command_says_so_and_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader, writer = os.pipe()
    os.close(writer)
    os.close(reader)
    assert confine.main([str(reader), "-"]) == 126
    assert "sidestage: the sandbox did not start: " in capsys.readouterr().err


def test_a_trial_that_does_not_start_is_no_answer() -> None:
    assert sandbox_probe.run_trial(["/no/such/program"]) is None
    assert sandbox_probe.find_version("/no/such/program") is None
