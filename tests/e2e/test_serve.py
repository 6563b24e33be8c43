"""`sidestage serve` and the command line as an owner meets them."""

import json
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.e2e.agents.scripted_claude import ScriptedClaude
from tests.e2e.pty_program import PtyProgram
from tests.e2e.real_claude import READY
from tests.e2e.running_server import Feed, RunningServer
from tests.waiting import wait_for

STOP_LIMIT_SECONDS = 10
CONVERSATION = "11111111-0000-4000-8000-000000000000"
FEED = "subscription { outsideSessionFeed { kind upserts { id } removedIds } }"


def make_environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("h")


@pytest.fixture
def server(home: Path) -> Iterator[RunningServer]:
    with RunningServer(environment=make_environment(home)) as running:
        yield running


def sidestage(
    server: RunningServer, *arguments: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line as the owner of *server*."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "sidestage", *arguments],
        env=server.environment | more,
        cwd=server.home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_state_folder_and_the_token_are_the_owners_alone(
    server: RunningServer,
) -> None:
    assert stat.S_IMODE(server.state_dir.stat().st_mode) == 0o700
    for name in ("admin.token", "machine-secret", "sidestage.db", "control.sock"):
        mode = stat.S_IMODE((server.state_dir / name).stat().st_mode)
        assert mode == 0o600, name
    answer = server.post("{ server { version } }")
    assert answer.status_code == 200


def test_a_second_server_on_the_same_folder_is_refused(server: RunningServer) -> None:
    done = sidestage(server, "serve", "--port", "0")
    assert done.returncode == 1
    assert "Another Sidestage server runs on" in done.stderr


def test_a_port_that_is_taken_is_told(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "sidestage", "serve", "--port", str(port)],
            env=make_environment(home),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 is taken" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("fault", ["damaged", "held", "read-only"])
def test_a_database_that_cannot_be_used_is_told_in_a_sentence(
    home: Path, fault: str
) -> None:
    """The start ended in a traceback that named no file and nothing to do."""
    state = home / "state"
    state.mkdir(mode=0o700)
    environment = make_environment(home) | {"SIDESTAGE_STATE_DIR": str(state)}
    path = state / "sidestage.db"
    other = sqlite3.connect(path, isolation_level=None)
    if fault == "damaged":
        path.write_bytes(b"no database" * 1000)
    elif fault == "held":
        other.execute("BEGIN EXCLUSIVE")
    else:
        path.chmod(0o400)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sidestage", "serve", "--port", "0"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    other.close()
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert str(path) in done.stderr
    words = {"damaged": "move it away", "held": "Close that", "read-only": "belong to"}
    assert words[fault] in done.stderr


def test_an_address_beyond_loopback_needs_a_word(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sidestage", "serve", "--host", "0.0.0.0"],
        env=make_environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "insecure_bind" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_ends_in_time_with_clients_attached_and_tells_each(
    server: RunningServer, number: int
) -> None:
    with ExitStack() as stack:
        sockets = []
        for _ in range(20):
            socket_ = stack.enter_context(
                connect(
                    server.url.replace("http", "ws") + "/graphql",
                    subprotocols=[Subprotocol("graphql-transport-ws")],
                )
            )
            feed = Feed(socket_)
            feed.open(server.token, FEED, {})
            feed.next()
            sockets.append(socket_)
        began = time.monotonic()
        assert server.stop(number) == 0
        assert time.monotonic() - began < STOP_LIMIT_SECONDS
        for socket_ in sockets:
            assert close_code(socket_) == 1012


def test_a_rotated_token_closes_what_it_opened(server: RunningServer) -> None:
    old = server.token
    with connect(
        server.url.replace("http", "ws") + "/graphql",
        subprotocols=[Subprotocol("graphql-transport-ws")],
    ) as socket_:
        feed = Feed(socket_)
        feed.open(old, FEED, {})
        feed.next()
        assert sidestage(server, "token", "rotate").returncode == 0
        assert close_code(socket_) == 4401
    assert server.token != old
    answer = server.post("{ outsideSessions { nodes { id } } }", token=old)
    assert answer.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
    assert server.query("{ outsideSessions { nodes { id } } }")


def test_a_narrow_token_sees_states_and_nothing_else(server: RunningServer) -> None:
    made = sidestage(server, "token", "create", "wall")
    token = made.stdout.strip()
    seen = server.post("{ outsideSessions { nodes { name state } } }", token=token)
    assert "errors" not in seen.json()
    refused = server.post("{ auditLog { nodes { action } } }", token=token)
    assert refused.json()["errors"][0]["extensions"]["code"] == "PERMISSION_DENIED"
    listed = json.loads(sidestage(server, "token", "list", "--json").stdout)
    [wall] = [each for each in listed if each["name"] == "wall"]
    assert sidestage(server, "token", "revoke", wall["id"]).returncode == 0
    assert sidestage(server, "token", "revoke", wall["id"]).returncode == 1
    gone = server.post("{ outsideSessions { nodes { id } } }", token=token)
    assert gone.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


def test_an_agent_cannot_widen_its_own_rights(server: RunningServer) -> None:
    """By accident, that is: an agent that helpfully tries is told to ask its owner."""
    assert sidestage(server, "sessions", CLAUDECODE="1").returncode == 0
    for arguments in (
        ("token", "create", "mine"),
        ("token", "rotate"),
        ("projects", "add", str(server.home)),
    ):
        done = sidestage(server, *arguments, CLAUDECODE="1")
        assert done.returncode == 1, arguments
        assert done.stderr.strip(), arguments
    [only] = json.loads(sidestage(server, "token", "list", "--json").stdout)
    assert only["name"] == "admin"


def test_the_network_cannot_reach_the_life_of_tokens(server: RunningServer) -> None:
    answer = httpx.post(
        f"{server.url}/control/tokens",
        json={"name": "x", "scopes": ["VIEW"]},
        headers={"Authorization": f"Bearer {server.token}"},
    )
    assert answer.status_code == 403


def test_projects_are_added_listed_and_removed(server: RunningServer) -> None:
    folder = server.home / "code é"
    folder.mkdir()
    assert sidestage(server, "projects", "add", str(folder)).returncode == 0
    again = sidestage(server, "projects", "add", str(folder))
    assert again.returncode == 1
    assert "That folder is the project" in again.stderr
    [listed] = json.loads(sidestage(server, "projects", "list", "--json").stdout)
    assert listed["path"] == str(folder)
    assert sidestage(server, "projects", "remove", str(folder)).returncode == 0
    assert json.loads(sidestage(server, "projects", "list", "--json").stdout) == []


def test_watching_prints_each_change(server: RunningServer) -> None:
    watching = subprocess.Popen(
        [sys.executable, "-P", "-m", "sidestage", "sessions", "--watch", "--json"],
        env=server.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    with watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        assert first["kind"] == "SNAPSHOT"
        write_session(server.home)
        second = json.loads(watching.stdout.readline())
        assert [row["name"] for row in second["upserts"]] == ["hello"]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 130


def test_watching_goes_on_over_a_restart_and_says_that_it_waits(
    server: RunningServer, home: Path
) -> None:
    """A restart of the server ended it, and an empty list printed nothing at all."""
    said, printed = home / "said", home / "printed"
    with said.open("w") as errors, printed.open("w") as output:
        watching = subprocess.Popen(
            [sys.executable, "-P", "-m", "sidestage", "sessions", "--watch"],
            env=server.environment,
            stdout=output,
            stderr=errors,
        )
    with watching:
        wait_for(lambda: "Watching" in said.read_text(), "it says that it watches")
        write_session(server.home)
        wait_for(lambda: "hello" in printed.read_text(), "the session is told")
        server.stop()
        wait_for(lambda: "Waiting for it" in said.read_text(), "it waits")
        (
            server.home / ".claude" / "projects" / "-srv-p" / f"{CONVERSATION}.jsonl"
        ).unlink()
        server.start()
        wait_for(lambda: "gone" in printed.read_text(), "what changed meanwhile")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 130
    first, second = printed.read_text().splitlines()
    assert first.split()[1:4] == ["ended", "hello", "/srv/p"]
    assert second.split()[1:4] == ["gone", "hello", "/srv/p"]
    assert said.read_text().count("Waiting for it") == 1


def test_doctor_sees_with_the_servers_eyes(server: RunningServer, home: Path) -> None:
    """It looked on its own shell's PATH and called a server well that had no agent."""
    program = home / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 2.1.328\n")
    program.chmod(0o755)
    path = f"{program.parent}:/usr/bin:/bin"

    def claude() -> str:
        told = json.loads(sidestage(server, "doctor", "--json", PATH=path).stdout)
        [finding] = [each for each in told if each["name"] == "claude"]
        return str(finding["verdict"])

    assert claude() == "warning"
    # An agent may look too.
    as_agent = sidestage(server, "doctor", CLAUDECODE="1")
    assert "as the server sees it" in as_agent.stdout
    server.stop()
    assert claude() == "ok"


def test_the_network_cannot_ask_for_the_checks(server: RunningServer) -> None:
    answer = httpx.get(
        f"{server.url}/control/checks",
        headers={"Authorization": f"Bearer {server.token}"},
    )
    assert answer.status_code == 403


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[tuple[RunningServer, Path, str]]:
    """A server without a sandbox, a folder, and an ended session in it."""
    claude = ScriptedClaude(tmp_path)
    folder = claude.make_project("project")
    with claude.start(directory=folder) as program:
        program.wait_for(READY)
        program.send("hello\r")
        wait_for(claude.transcripts, "a transcript")
        program.send("/exit\r")
        program.wait_end()
    environment = claude.environment()
    with RunningServer(environment=environment, arguments=["--no-sandbox"]) as server:
        [row] = server.rows()
        yield server, folder, str(row["id"]).removeprefix("outside:")[:8]


def test_a_session_is_resumed_watched_and_closed_by_the_id_that_is_listed(
    ended: tuple[RunningServer, Path, str],
) -> None:
    """Each refusal left one alone, and nothing listed or closed terminals."""
    server, folder, session = ended
    refused = sidestage(server, "resume", "--detached", session)
    assert f"sidestage projects add {folder}" in refused.stderr
    assert sidestage(server, "projects", "add", str(folder)).returncode == 0
    assert sidestage(server, "resume", "--detached", session).returncode == 0
    refused = sidestage(server, "resume", "--detached", session)
    [row] = json.loads(sidestage(server, "terminals", "--json").stdout)
    assert f"sidestage attach {row['id']}" in refused.stderr
    wait_for(lambda: server.rows()[0]["terminal"], "the session is linked")
    look_on_and_detach(server, session, row["id"])
    assert sidestage(server, "terminals", "close", session).returncode == 0
    assert "No terminals." in sidestage(server, "terminals").stdout


def look_on_and_detach(server: RunningServer, session: str, terminal_id: str) -> None:
    """Type while looking on: the first key ended it."""
    with PtyProgram(
        [sys.executable, "-P", "-m", "sidestage", "attach", "--view", session],
        directory=server.home,
        environment=server.environment,
    ) as view:
        view.wait_for(READY)
        view.send("never passed on")
        with server.attach(server.issue_ticket(terminal_id)) as other:
            other.type("typed by another\r")
            view.wait_for("typed by another")
            assert "never passed on" not in other.text
        view.send("\x1dd")
        assert view.wait_end() == 0
        assert "Detached." in view.text


def test_what_is_known_survives_a_restart(server: RunningServer) -> None:
    write_session(server.home)
    wait_for(lambda: len(server.rows()) == 1, "the session is listed")
    known = ("id", "name", "state", "directory")
    before = [[row[key] for key in known] for row in server.rows()]
    server.restart(signal.SIGKILL)
    assert [[row[key] for key in known] for row in server.rows()] == before


def close_code(socket_: ClientConnection) -> int | None:
    """Take in what is left; return the code with which the server closed."""
    with suppress(ConnectionClosed):
        while True:
            socket_.recv(timeout=STOP_LIMIT_SECONDS)
    return socket_.close_code


def write_session(home: Path) -> None:
    """Write a transcript as Claude Code does, with one prompt."""
    folder = home / ".claude" / "projects" / "-srv-p"
    folder.mkdir(parents=True)
    record = {
        "type": "user",
        "uuid": "11111111-0000-4000-8000-000000000001",
        "parentUuid": None,
        "sessionId": CONVERSATION,
        "cwd": "/srv/p",
        "timestamp": "2026-11-30T12:00:00.000Z",
        "version": "2.1.328",
        "isSidechain": False,
        "userType": "external",
        "entrypoint": "cli",
        "origin": {"kind": "human"},
        "message": {"role": "user", "content": "hello"},
    }
    (folder / f"{CONVERSATION}.jsonl").write_text(json.dumps(record) + "\n")
