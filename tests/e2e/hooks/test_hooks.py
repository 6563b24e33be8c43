"""Hooks and handover, lines 1 to 5 and 10, with the real Claude Code."""

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.hooks.bench import HookBench
from tests.e2e.resume.bench import say
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(240)]

ALLOW = {"behavior": "allow"}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[HookBench]:
    with HookBench.open(tmp_path) as bench:
        yield bench


def names(bench: HookBench) -> list[str]:
    return [event["name"] for event in bench.events()]


def test_installed_twice_each_event_comes_once_and_in_order(bench: HookBench) -> None:
    settings = bench.claude.config_dir / "settings.json"
    before = settings.read_bytes()
    bench.sidestage("hooks", "install")
    assert "installed" in bench.sidestage("hooks", "install")
    assert "Installed in" in bench.sidestage("doctor")
    session = bench.resumes.say_headless("stub:bash(true)", "--allowedTools", "Bash")
    bench.wait_event("SessionEnd")
    assert names(bench) == [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ]
    assert {event["session"] for event in bench.events()} == {session.id}
    assert bench.counters()["hook_events_taken"] == 6
    bench.sidestage("hooks", "uninstall")
    assert settings.read_bytes() == before


def test_without_a_server_the_agent_works_and_its_events_are_applied_later(
    bench: HookBench,
) -> None:
    bench.sidestage("hooks", "install")
    known = bench.resumes.say_headless("first words")
    bench.wait_event("SessionEnd")
    told = len(bench.events())
    bench.server.stop()
    began = time.monotonic()
    bench.resumes.run_claude(
        "-p", "--resume", known.conversation_id, "on", directory=bench.resumes.project
    )
    with_hooks = time.monotonic() - began
    spool = bench.server.state_dir / "spool"
    assert len(list(spool.iterdir())) == 4
    bench.server.start()
    wait_for(lambda: len(bench.events()) == told + 4, "the spool is applied")
    late = bench.events()[told:]
    assert [event["name"] for event in late] == [
        "SessionStart",
        "UserPromptSubmit",
        "Stop",
        "SessionEnd",
    ]
    assert all(event["spooled"] and event["session"] == known.id for event in late)
    assert list(spool.iterdir()) == []
    # The same without hooks; four hooks may take a second in all.
    bench.sidestage("hooks", "uninstall")
    began = time.monotonic()
    bench.resumes.run_claude(
        "-p", "--resume", known.conversation_id, "on", directory=bench.resumes.project
    )
    assert with_hooks - (time.monotonic() - began) < 1.0


def test_a_permission_hook_waits_and_a_decision_makes_the_tool_run(
    bench: HookBench,
) -> None:
    bench.sidestage("hooks", "install")
    project = bench.resumes.project
    with bench.resumes.keyboard("stub:bash(touch allowed.txt)") as terminal:
        terminal.wait_for("Do you want to proceed")
        event = bench.wait_event("PermissionRequest")
        assert event["claim"] is not None
        row = bench.resumes.wait_row(
            event["session"], lambda row: row["state"] == "ASKING"
        )
        assert row["waitingFor"]["kind"] == "PERMISSION"
        assert not (project / "allowed.txt").exists()
        bench.decide(ALLOW)
        wait_for((project / "allowed.txt").exists, "the tool ran")
        assert terminal.wait_gone("Do you want to proceed")
        bench.wait_event("Stop")


def test_a_waiting_hook_comes_back_after_a_restart(bench: HookBench) -> None:
    bench.sidestage("hooks", "install")
    project = bench.resumes.project
    with bench.resumes.keyboard("stub:bash(touch later.txt)") as terminal:
        terminal.wait_for("Do you want to proceed")
        first = bench.wait_event("PermissionRequest")
        bench.server.stop()
        bench.server.start()
        second = bench.wait_event("PermissionRequest", count=2)
        assert second == first
        bench.decide(ALLOW)
        wait_for((project / "later.txt").exists, "the tool ran")


def test_answered_at_the_keyboard_the_hook_holds_nothing_up(bench: HookBench) -> None:
    bench.sidestage("hooks", "install")
    project = bench.resumes.project
    with bench.resumes.keyboard("stub:bash(touch typed.txt)") as terminal:
        terminal.wait_for("Do you want to proceed")
        bench.wait_event("PermissionRequest")
        terminal.answer("1", dialog="Do you want to proceed")
        wait_for((project / "typed.txt").exists, "the tool ran")
        bench.wait_event("Stop")


def test_a_terminal_of_ours_has_the_hooks_by_its_own_socket_once(
    bench: HookBench,
) -> None:
    """Also where they are installed besides, and after a restart of the server."""
    bench.sidestage("hooks", "install")
    session = bench.resumes.say_headless("first words")
    bench.wait_event("SessionEnd")
    told = len(bench.events())
    terminal = bench.server.resume(session.id)["terminal"]
    bench.resumes.wait_row(session.id, lambda row: row["state"] == "IDLE")
    with bench.server.attach(bench.server.issue_ticket(terminal["id"])) as client:
        say(client, session, "and on")
        wait_for(lambda: "Stop" in names(bench)[told:], "the turn ended")
        bench.server.restart()
    before = len(bench.events())
    with bench.server.attach(bench.server.issue_ticket(terminal["id"])) as client:
        say(client, session, "once more")
        wait_for(lambda: "Stop" in names(bench)[before:], "the turn ended")
    inside = bench.events()[told:]
    assert [event["name"] for event in inside] == [
        "SessionStart",
        "UserPromptSubmit",
        "Stop",
        "UserPromptSubmit",
        "Stop",
    ]
    assert {event["terminal"] for event in inside} == {terminal["id"]}
    assert {event["session"] for event in inside} == {session.id}
    assert not any(event["spooled"] for event in inside)
    # That socket is this session's alone.
    own = bench.server.state_dir / "terminals" / terminal["id"] / "hook" / "hook.sock"
    short = bench.claude.root / "own.sock"
    short.symlink_to(own)
    other = bench.resumes.say_headless("other words")
    seen = len(bench.events())
    bench.forge(short, other.conversation_id)
    wait_for(lambda: bench.counters()["hook_events_unattributed"] == 1, "it is dropped")
    assert len(bench.events()) == seen
    bench.server.close_terminal(terminal["id"])


def test_a_permission_hook_in_a_terminal_of_ours_is_decided_too(
    bench: HookBench,
) -> None:
    session = bench.resumes.say_headless("first words")
    terminal = bench.server.resume(session.id)["terminal"]
    bench.resumes.wait_row(session.id, lambda row: row["state"] == "IDLE")
    with bench.server.attach(bench.server.issue_ticket(terminal["id"])) as client:
        say(client, session, "stub:bash(touch inside.txt)")
        event = bench.wait_event("PermissionRequest")
        assert event["terminal"] == terminal["id"]
        bench.decide(ALLOW)
        wait_for((bench.resumes.project / "inside.txt").exists, "the tool ran")
    bench.server.close_terminal(terminal["id"])


def test_who_is_no_child_of_the_agent_forges_in_vain(bench: HookBench) -> None:
    bench.sidestage("hooks", "install")
    shared = bench.server.state_dir / "hook.sock"
    script = bench.resumes.project / "forge.py"
    script.write_text(_FORGE)
    own_id = str(uuid.uuid4())
    prompt = f"stub:bash(python3 forge.py {shared} {own_id})"
    with bench.resumes.keyboard("--session-id", own_id, prompt) as terminal:
        terminal.wait_for("Do you want to proceed")
        event = bench.wait_event("PermissionRequest")
        # A program that never was the agent's child.
        bench.forge(shared, own_id, "SessionEnd")
        wait_for(
            lambda: bench.counters()["hook_events_unattributed"] == 1, "it is dropped"
        )
        # A child of the agent that left its parents.
        terminal.answer("1", dialog="Do you want to proceed")
        wait_for(
            lambda: bench.counters()["hook_events_unattributed"] == 2, "it is dropped"
        )
        bench.wait_event("Stop")
        assert "SessionEnd" not in names(bench)
        assert bench.resumes.row(event["session"])["state"] != "ENDED"


_FORGE = """\
import json, os, select, socket, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
while os.getppid() not in (1, 0) and open(f"/proc/{os.getppid()}/comm").read() in (
    "python3\\n", "sh\\n", "bash\\n", "claude\\n", "claude.exe\\n"
):
    try:
        select.select([os.pidfd_open(os.getppid())], [], [])  # its end hands us on
    except ProcessLookupError:
        pass
event = {"session_id": sys.argv[2], "hook_event_name": "SessionEnd"}
payload = json.dumps(event).encode()
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    header = b'{"v":1,"kind":"event","length":%d}\\n' % len(payload)
    connection.sendall(header + payload)
    connection.recv(100)
"""


def test_a_sub_agents_events_are_told_as_such(bench: HookBench) -> None:
    bench.sidestage("hooks", "install")
    with bench.resumes.keyboard("stub:agent(look around)") as terminal:
        terminal.wait_for("has reported")
        bench.wait_event("SubagentStop")
        bench.wait_event("Stop")
    events = bench.events()
    assert {it["name"] for it in events if it["subagent"]} >= {"SubagentStop"}
    assert not any(it["subagent"] for it in events if it["name"] == "Stop")


def test_a_hook_program_that_is_gone_is_silence(bench: HookBench) -> None:
    """An uninstalled Sidestage must not speak in every turn of the agent."""
    bench.sidestage("hooks", "install")
    settings = bench.claude.config_dir / "settings.json"
    text = settings.read_text()
    program = json.loads(text)["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert "sidestage_hook.py" in program
    settings.write_text(text.replace("sidestage_hook.py", "gone.py"))
    with bench.resumes.keyboard("hello") as terminal:
        terminal.wait_for("Stub answer")
        bench.resumes.wait_idle()
        assert "hook" not in terminal.text
    assert bench.events() == []
