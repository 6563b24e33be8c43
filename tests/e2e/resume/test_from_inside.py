"""Lines 13 and 16a: what a resumed agent can reach from inside its terminal.

One probe a wall stands in `tests/e2e/sandbox`; here the agent of a running server tries
it all by its own Bash tool, with the server's real token, database and sockets.
"""

import errno
import json
import os
import shutil
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.e2e.real_claude import Json
from tests.e2e.resume.bench import (
    PRESS_LIMIT,
    Conversation,
    ResumeBench,
    resumed_processes,
    say,
)
from tests.e2e.running_server import TerminalClient
from tests.e2e.sandbox.bench import PROBE, listening
from tests.fakes.logins import make_login
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(180)]

DIALOG = "Do you want to proceed"
LOGIN = make_login(2)
WRITE_AS_THE_CLI_DOES = textwrap.dedent(
    """
    import json, os, pathlib
    home = pathlib.Path.home()
    login = home / '.claude/.credentials.json'
    fresh = login.with_name('.credentials.json.tmp.1')
    fresh.write_text(%r)
    fresh.replace(login)
    config = home / '.claude.json'
    known = json.loads(config.read_text())
    known['oauthAccount'] = {'emailAddress': 'other@example.org'}
    config.write_text(json.dumps(known))
    """
)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ResumeBench]:
    with ResumeBench.open(tmp_path) as bench:
        yield bench


@contextmanager
def resumed(bench: ResumeBench, session: Conversation) -> Iterator[TerminalClient]:
    """Resume the session and attach to it."""
    started = bench.server.resume(session.id)
    assert started["__typename"] == "ResumeOutsideSessionPayload", started
    with bench.server.attach(started["ticket"]) as client:
        client.wait_for("Stub answer to: first words")
        bench.wait_row(session.id, lambda row: row["state"] == "IDLE")
        yield client


def run_inside(
    client: TerminalClient, session: Conversation, command: str, *, until: Path
) -> None:
    """Let the agent run *command* by its Bash tool; a person allows it."""
    say(client, session, f"stub:bash({command})")
    allow(client)
    wait_for(until.exists, f"{command} has run", seconds=60)


def allow(client: TerminalClient) -> None:
    """Approve the open permission dialog.

    The CLI ignores keys in a dialog's first moment; a person presses again.
    """
    client.wait_for(DIALOG)
    for _ in range(PRESS_LIMIT):
        client.type("1")
        with suppress(AssertionError):
            client.until(lambda: DIALOG not in client.text, "closed dialog", 1.0)
            return
    raise AssertionError(f"the dialog stays:\n{client.text}")


def test_the_agent_reaches_neither_sidestage_nor_what_later_sessions_run(
    bench: ResumeBench,
) -> None:
    """Line 16a: token, database, every socket, the bus, settings, hooks."""
    session = bench.say_headless("first words")
    settings = (bench.claude.config_dir / "settings.json").read_bytes()
    (bench.project / ".claude").mkdir()
    (bench.project / ".claude/settings.json").write_text("{}")
    shutil.copy(PROBE, bench.project / "probe.py")
    with ExitStack() as stack:
        expected = walls(bench, stack)
        tries = [list(one) for one in expected]
        (bench.project / "tries.json").write_text(json.dumps(tries))
        out = bench.project / "out.json"
        with resumed(bench, session) as client:
            run_inside(
                client,
                session,
                'python3 probe.py "$(cat tries.json)" > new.json; mv new.json out.json',
                until=out,
            )
        seen = dict(zip(expected, json.loads(out.read_text()), strict=True))
    assert seen == expected
    assert (bench.project / ".claude/settings.json").read_text() == "{}"
    assert (bench.claude.config_dir / "settings.json").read_bytes() == settings


def walls(bench: ResumeBench, stack: ExitStack) -> dict[tuple[str, str], int]:
    """Return each try and how it must fail; what is tried to reach is there."""
    state, home = bench.server.state_dir, bench.claude.home
    gone = [
        ("read", state / "admin.token"),
        ("read", state / "machine-secret"),
        ("read", state / "sidestage.db"),
        ("connect", state / "host.sock"),
        ("connect", state / "control.sock"),
    ]
    for _, path in gone:
        wait_for(path.exists, f"{path} is there")
    for name in ("agent.sock", "docker.sock"):
        stack.enter_context(listening(f"{home}/{name}"))
    sockets = (
        home / "agent.sock",
        home / "docker.sock",
        Path(f"/run/user/{os.getuid()}/bus"),
        Path("/run/docker.sock"),
        Path("/run/dbus/system_bus_socket"),
    )
    gone += [("connect", path) for path in sockets]
    return {
        **{(kind, str(path)): errno.ENOENT for kind, path in gone},
        ("write", str(home / ".claude/settings.json")): errno.EROFS,
        ("write", str(bench.project / ".claude/settings.json")): errno.EROFS,
        ("make", str(bench.project / ".claude/settings.local.json")): errno.EROFS,
        ("signal", str(bench.server.pid)): errno.EPERM,
        ("signal", str(bench.server.host_pid())): errno.EPERM,
        ("make", str(bench.project / "a-file")): 0,
    }


def test_a_login_comes_out_and_an_account_does_not_and_nothing_is_lost(
    bench: ResumeBench,
) -> None:
    """Line 16a: credentials refreshed inside are there; other accounts are not."""
    login = bench.claude.config_dir / ".credentials.json"
    login.write_text(make_login(1))
    session = bench.say_headless("first words")
    script = bench.project / "as_the_cli.py"
    script.write_text(WRITE_AS_THE_CLI_DOES % LOGIN)
    done = bench.project / "done"
    with resumed(bench, session) as client:
        run_inside(client, session, "python3 as_the_cli.py && touch done", until=done)
        before = outside_change(bench)
        client.wait_for("Done.")
        client.type("/exit\r")
        client.until(
            lambda: any(it["type"] == "exit" for it in client.messages), "the exit"
        )
    bench.wait_ended(session)
    wait_for(
        lambda: list((bench.server.state_dir / "terminals").glob("*")) == [],
        "the private files are merged back",
    )
    assert login.read_text() == LOGIN
    assert login.stat().st_mode & 0o777 == 0o600
    after = bench.claude.read_config()
    assert "oauthAccount" not in after
    assert after["fromOutside"] == {"kept": True}
    own = str(bench.project)
    assert after["projects"][own]["lastSessionId"] == session.conversation_id
    # Everything but the counters of this one project is as the outside left it.
    for config in (before, after):
        entry = config["projects"][own]
        for name in [name for name in entry if name.startswith("last")]:
            del entry[name]
    assert after == before


def outside_change(bench: ResumeBench) -> Json:
    """Change the configuration as an outside CLI does meanwhile; return it."""
    elsewhere = bench.claude.make_project("elsewhere")
    bench.run_claude("-p", "meanwhile", directory=elsewhere)
    config = bench.claude.read_config()
    config["fromOutside"] = {"kept": True}
    fresh = bench.claude.config_file.with_name(".claude.json.tmp")
    fresh.write_text(json.dumps(config))
    fresh.replace(bench.claude.config_file)
    return config


def test_a_read_only_project_is_resumed_read_only(tmp_path: Path) -> None:
    """Line 13: a write in the project fails inside the terminal."""
    with ResumeBench.open(tmp_path, read_only=True) as bench:
        session = bench.say_headless("first words")
        with resumed(bench, session) as client:
            say(client, session, "stub:bash(touch made.txt)")
            allow(client)
            wait_for(
                lambda: b"Read-only file system" in session.transcript.read_bytes(),
                "the tool is told that it cannot write",
            )
        assert not (bench.project / "made.txt").exists()
        [terminal] = bench.terminals()
        assert terminal["readOnly"] is True
        assert len(resumed_processes(session)) == 1
