"""A sandboxed program has a whole terminal, and ends with it."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from sidestage.errors import AgentNotFound, SandboxUnavailable
from tests.e2e.sandbox.bench import Bench
from tests.waiting import wait_for

pytestmark = pytest.mark.sandbox


def test_job_control_works_inside(bench: Bench) -> None:
    with bench.start(["bash", "--norc", "-i"]) as terminal:
        terminal.send("PS1=; echo; (echo job; exec sleep 100)\r")
        terminal.wait_for("^job|\njob")
        terminal.send("\x1a")  # Ctrl-Z stops the job, not the shell
        terminal.wait_for("Stopped")
        terminal.send("kill %1; echo back=$?\r")
        terminal.wait_for("back=0")
        terminal.send("exit 7\r")
        assert terminal.wait_end() == 7


def test_a_resize_reaches_the_program(bench: Bench) -> None:
    script = "trap 'stty size' WINCH; echo ready; while :; do read -t 1 x; done"
    with bench.start(["bash", "-c", script]) as terminal:
        terminal.wait_for("ready")
        terminal.resize(cols=93, rows=31)
        terminal.wait_for("31 93")


def test_ctrl_c_interrupts_the_program_and_not_the_sandbox(bench: Bench) -> None:
    """Bubblewrap's outer process is in the foreground group too, and died of it."""
    script = "trap 'echo caught; exit 3' INT; echo ready; while :; do read -t 1 x; done"
    with bench.start(["bash", "-c", script]) as terminal:
        terminal.wait_for("ready")
        terminal.send("\x03")
        terminal.wait_for("caught")
        assert terminal.wait_end() == 3


def test_the_status_of_a_killed_program_is_told(bench: Bench) -> None:
    assert bench.run(["sh", "-c", "kill -9 $$"]).returncode == 128 + signal.SIGKILL


def test_the_program_ends_with_the_sandbox(bench: Bench) -> None:
    with bench.start(["sh", "-c", "echo pid=$$; exec sleep 100"]) as terminal:
        inside = int(terminal.wait_for(r"pid=\d+").removeprefix("pid="))
        # The pid namespace is shared: what the program calls itself is what it is.
        name = Path(f"/proc/{inside}/comm")
        wait_for(lambda: name.read_text() == "sleep\n", "the program runs")
        os.kill(terminal.pid, signal.SIGKILL)
        wait_for(lambda: not psutil.pid_exists(inside), "the program ends")


def test_signals_among_the_sandbox_s_own_processes_work(bench: Bench) -> None:
    done = bench.run(["bash", "-c", "sleep 100 & kill $!; wait $!; echo $?"])
    assert done.stdout == f"{128 + signal.SIGTERM}\n"


def test_a_program_that_is_not_there_is_told_before_anything_starts(
    bench: Bench,
) -> None:
    with pytest.raises(AgentNotFound, match="no-such-agent"):
        bench.run(["no-such-agent"])


def test_a_program_folder_that_holds_the_home_is_refused(bench: Bench) -> None:
    for folder in (bench.home, bench.root, bench.state.parent):
        with pytest.raises(SandboxUnavailable, match="holds private files"):
            bench.run(["true"], bench.profile(program_dirs=(folder,)))


def test_programs_installed_in_the_home_run_through_their_links(bench: Bench) -> None:
    versions = bench.home / ".local/share/tool/versions"
    links = bench.home / ".local/bin"
    for folder in (versions, links):
        folder.mkdir(parents=True)
    (versions / "1.0").write_text("#!/bin/sh\necho it runs\n")
    (versions / "1.0").chmod(0o755)
    (links / "tool").symlink_to(versions / "1.0")
    profile = bench.profile(program_dirs=(links, versions))
    assert bench.run([str(links / "tool")], profile).stdout == "it runs\n"


def test_git_knows_the_owner_s_name_and_nothing_else(bench: Bench) -> None:
    (bench.home / ".gitconfig").write_text("[credential]\n\thelper = store\n")
    profile = bench.profile(git_config="[user]\n\tname = Ada\n")
    script = "GIT_CONFIG_GLOBAL=/run/sidestage-gitconfig git config --global --list"
    assert bench.run(["sh", "-c", script], profile).stdout == "user.name=Ada\n"
