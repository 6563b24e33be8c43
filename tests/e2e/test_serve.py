"""`sidestage serve` and the command line as an owner meets them."""

import json
import signal
import socket
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

from tests.e2e.running_server import Feed, RunningServer
from tests.waiting import wait_for

STOP_LIMIT_SECONDS = 10
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
    assert f"Port {port} on 127.0.0.1 cannot be had" in done.stderr
    assert "Traceback" not in done.stderr


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
        "sessionId": "11111111-0000-4000-8000-000000000000",
        "cwd": "/srv/p",
        "timestamp": "2026-11-30T12:00:00.000Z",
        "version": "2.1.328",
        "isSidechain": False,
        "userType": "external",
        "entrypoint": "cli",
        "origin": {"kind": "human"},
        "message": {"role": "user", "content": "hello"},
    }
    name = f"{record['sessionId']}.jsonl"
    (folder / name).write_text(json.dumps(record) + "\n")
