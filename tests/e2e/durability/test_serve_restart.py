"""The server dies, stops or is replaced, and so does its host: what clients see."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

import sidestage
from terminal_host.host.ended_screen import LOST_NOTICE
from tests.e2e.durability.shells import (
    FEED,
    ROWS,
    environment,
    start_shell,
    terminals,
)
from tests.e2e.running_server import Json, RunningServer, TerminalClient
from tests.e2e.terminal_host import raw_host
from tests.e2e.terminal_host.waiting import has_ended
from tests.waiting import wait_for

CHECKOUT = Path(sidestage.__file__).parents[1]
PACKAGES = ("api", "resolvers", "terminal_host", "sidestage")
STOP_LIMIT_SECONDS = 10
COUNT = "i=0; while :; do echo line $i end; i=$((i+1)); sleep 0.01; done\r"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("h")


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[RunningServer]:
    with RunningServer(environment=environment(home)) as running:
        yield running


@pytest.fixture(scope="module")
def project(server: RunningServer, home: Path) -> str:
    return add_project(server, home)


def add_project(server: RunningServer, home: Path) -> str:
    folder = home / "project"
    folder.mkdir()
    return server.register_project(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_restarted_server_continues_every_terminal_without_a_gap(
    server: RunningServer, project: str, number: signal.Signals
) -> None:
    """durability 3: no byte lost or doubled."""
    counts_on(server, project, lambda: server.restart(number))


def test_an_upgrade_under_a_running_host_of_the_version_before(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """durability 3: the package is replaced; the host speaks one version less."""
    home, installed = (tmp_path_factory.mktemp(name) for name in ("u", "installed"))
    python = make_installation(installed)
    make_older(installed)
    with RunningServer(environment=environment(home), python=python) as server:
        project = add_project(server, home)

        def upgrade() -> None:
            server.stop()
            install(installed)
            server.start()

        counts_on(server, project, upgrade)


def test_an_older_host_keeps_its_terminals_while_a_new_one_takes_new_ones(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home, installed = (tmp_path_factory.mktemp(name) for name in ("d", "installed"))
    python = make_installation(installed)
    make_older(installed)
    with RunningServer(environment=environment(home), python=python) as server:
        project = add_project(server, home)
        old = start_shell(server, project)
        older_pid = server.host_pid()
        server.stop()
        install(installed)
        server.start()
        new = start_shell(server, project)
        newer_pid = server.host_pid("host-v2.sock")
        assert newer_pid not in (None, older_pid)
        assert {row["state"] for row in terminals(server).values()} == {"RUNNING"}
        says(server, old, "older")
        says(server, new, "newer")
        # Both hosts are found by the next server, too.
        server.restart()
        assert {row["state"] for row in terminals(server).values()} == {"RUNNING"}
        says(server, old, "still")
        server.close_terminal(old["terminal"]["id"])
        wait_for(lambda: server.host_pid() is None, "the older host ends")
        says(server, new, "alone")
        server.restart(signal.SIGKILL)
        assert server.host_pid("host-v2.sock") == newer_pid
        says(server, new, "again")
        server.close_terminal(new["terminal"]["id"])


def test_what_an_older_host_ran_is_lost_when_it_dies_and_nothing_else_is(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home, installed = (tmp_path_factory.mktemp(name) for name in ("k", "installed"))
    python = make_installation(installed)
    make_older(installed)
    with RunningServer(environment=environment(home), python=python) as server:
        project = add_project(server, home)
        old = start_shell(server, project)["terminal"]["id"]
        server.stop()
        install(installed)
        server.start()
        new = start_shell(server, project)
        older_pid = server.host_pid()
        assert older_pid is not None
        raw_host.kill(older_pid)
        # Not with its screen, which nobody answers for at first.
        wait_for(lambda: states(server)[old] == "LOST", "it is lost")
        assert states(server)[new["terminal"]["id"]] == "RUNNING"
        says(server, new, "alive")


def states(server: RunningServer) -> dict[str, str]:
    """Return the state of each terminal."""
    nodes = server.query("{ terminals(first: 50) { nodes { id state } } }")
    return {node["id"]: node["state"] for node in nodes["terminals"]["nodes"]}


def says(server: RunningServer, started: Json, word: str) -> None:
    """Check that a terminal's shell takes input and shows output."""
    ticket = server.issue_ticket(started["terminal"]["id"])
    with server.attach(ticket) as client:
        client.type(f"echo '{word}' it is\r")
        client.until(lambda: f"{word} it is".encode() in client.output, word)


def counts_on(server: RunningServer, project: str, restart: Callable[[], None]) -> None:
    """Restart under a client that watches a program count; every line comes once."""
    started = start_shell(server, project)
    with server.attach(started["ticket"]) as client:
        client.type(COUNT)
        client.until(lambda: b"line 30 end" in client.output, "some lines")
        pid = server.host_pid()
        restart()
        client.until_closed()
        before = client
    terminal_id = started["terminal"]["id"]
    ticket = server.issue_ticket(terminal_id)
    with server.attach(ticket, after=before.offset) as client:
        more = int(last_line(before)) + 100
        client.until(lambda: b"line %d end" % more in client.output, "more lines")
        kinds = {message["type"] for message in client.messages}
        assert not kinds & {"gap", "repaint"}
        lines = re.findall(rb"line (\d+) end\r\n", before.output + client.output)
        assert [int(line) for line in lines] == list(range(len(lines)))
    assert server.host_pid() == pid
    assert terminals(server)[terminal_id]["state"] == "RUNNING"
    server.close_terminal(terminal_id)


def last_line(client: TerminalClient) -> bytes:
    found: list[bytes] = re.findall(rb"line (\d+) end", client.output)
    return found[-1]


def test_a_stop_with_twenty_clients_attached_ends_in_time_and_spares_terminals(
    server: RunningServer, project: str
) -> None:
    """durability 18; a service manager that waited in vain killed the last screens."""
    started = start_shell(server, project)
    terminal_id = started["terminal"]["id"]
    with ExitStack() as stack:
        clients = [
            stack.enter_context(server.attach(server.issue_ticket(terminal_id)))
            for _ in range(20)
        ]
        clients[0].type(COUNT)
        for client in clients:
            client.wait_for("line 1 end")
        # They read on meanwhile: who does not cannot be told why it is closed.
        threads = stack.enter_context(ThreadPoolExecutor(len(clients)))
        codes = [threads.submit(client.until_closed) for client in clients]
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < STOP_LIMIT_SECONDS
        assert [code.result() for code in codes] == [1012] * 20
    server.start()
    assert terminals(server)[terminal_id]["state"] == "RUNNING"


def test_a_host_that_is_killed_loses_its_rows_by_feed_and_serve_goes_on(
    server: RunningServer, project: str, home: Path
) -> None:
    """durability 21: and what it had started is ended by the next host."""
    started = start_shell(server, project)
    terminal_id = started["terminal"]["id"]
    with server.attach(started["ticket"]) as client:
        client.type(
            "setsid -f sh -c 'echo $$ >pid; exec sleep 3600'; echo 'mar''ker'\r"
        )
        client.wait_for("marker")
        stray = int(wait_for(lambda: read(home / "project" / "pid"), "the stray's pid"))
        wait_for(lambda: recorded(server, terminal_id, b"marker"), "the record")
        with server.follow(FEED) as feed:
            feed.until(lambda: terminal_id in feed.rows)
            kill_host(server)
            feed.until(lambda: feed.rows[terminal_id]["state"] == "LOST")
            assert feed.rows[terminal_id]["endedAt"]
            assert feed.rows[terminal_id]["exitStatus"] is None
        assert client.until_closed() == 1012
    wait_for(lambda: has_ended(stray), "the stray is ended")
    assert start_shell(server, project)["terminal"]["state"] == "RUNNING"
    shows_and_closes(server, terminal_id)


def test_after_a_reboot_every_terminal_is_lost_with_its_screen(
    server: RunningServer, project: str
) -> None:
    """durability 1, 8: server and host are gone at once."""
    started = start_shell(server, project)
    terminal_id = started["terminal"]["id"]
    with server.attach(started["ticket"]) as client:
        client.type("echo 'mar''ker'\r")
        client.wait_for("marker")
    wait_for(lambda: recorded(server, terminal_id, b"marker"), "the record")
    kill_host(server)
    server.stop(signal.SIGKILL)
    server.start()
    wait_for(lambda: terminals(server)[terminal_id]["state"] == "LOST", "the row")
    shows_and_closes(server, terminal_id)
    kill_host(server)
    wait_for(lambda: server.host_pid() is not None, "the next host")
    assert terminal_id not in terminals(server)


def test_a_lost_terminal_without_a_record_is_a_row_without_a_screen(
    server: RunningServer, project: str
) -> None:
    """durability 4, 8: a damaged record counts as absent; the row can be closed."""
    terminal_id = start_shell(server, project)["terminal"]["id"]
    path = server.state_dir / "screens" / f"{terminal_id}.screen"
    wait_for(path.exists, "the record")
    with server.follow(FEED) as feed:
        feed.until(lambda: terminal_id in feed.rows)
        host = server.host_pid()
        assert host is not None
        os.kill(host, signal.SIGSTOP)  # so that it writes no other
        path.write_bytes(b"damaged")
        os.kill(host, signal.SIGKILL)
        feed.until(lambda: feed.rows[terminal_id]["state"] == "LOST")
    assert terminals(server)[terminal_id]["screen"] is None
    with server.attach(server.issue_ticket(terminal_id)) as client:
        assert client.until_closed() == 4404
    assert server.close_terminal(terminal_id)["__typename"] == "CloseTerminalPayload"
    assert not path.exists()


def shows_and_closes(server: RunningServer, terminal_id: str) -> None:
    """A LOST terminal shows its screen to clients and queries; closing ends that."""
    assert "marker" in terminals(server)[terminal_id]["screen"]
    with server.attach(server.issue_ticket(terminal_id, "VIEW")) as client:
        client.wait_for("Close it to start again.")
        assert client.messages[0]["state"] == "LOST"
        assert client.text.splitlines()[ROWS - 1].strip() == LOST_NOTICE
        assert "marker" in client.text.splitlines()
        answer = server.close_terminal(terminal_id)
        assert answer["__typename"] == "CloseTerminalPayload", answer
        assert client.until_closed() == 4404
    assert terminal_id not in terminals(server)
    assert not (server.state_dir / "screens" / f"{terminal_id}.screen").exists()


def kill_host(server: RunningServer) -> None:
    host = server.host_pid()
    assert host is not None
    os.kill(host, signal.SIGKILL)
    wait_for(lambda: server.host_pid() != host, "the host is gone")


def recorded(server: RunningServer, terminal_id: str, text: bytes) -> bool:
    path = server.state_dir / "screens" / f"{terminal_id}.screen"
    return path.exists() and text in path.read_bytes()


def read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def make_installation(root: Path) -> Path:
    """Install the packages as files of their own; return the interpreter."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(root)], check=True
    )
    [site] = root.glob("lib/python*/site-packages")
    here = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(here) + "\n")
    install(root)
    return root / "bin" / "python"


def install(root: Path) -> None:
    """Put the packages of this checkout in the place of those that are there."""
    [site] = root.glob("lib/python*/site-packages")
    for name in PACKAGES:
        shutil.rmtree(site / name, ignore_errors=True)
        shutil.copytree(CHECKOUT / name, site / name)
    shutil.copy(CHECKOUT / "schema.graphql", site / "api" / "schema.graphql")


def make_older(root: Path) -> None:
    """Make the installed host one of protocol version 1."""
    [site] = root.glob("lib/python*/site-packages")
    for name, new, old in (
        ("wire.py", "PROTOCOL_VERSION: Final = 2", "PROTOCOL_VERSION: Final = 1"),
        ("wire.py", "SPOKEN_VERSIONS: Final = (2, 1)", "SPOKEN_VERSIONS: Final = (1,)"),
        ("host_messages.py", '        "lost": attached.lost,\n', ""),
    ):
        path = site / "terminal_host" / name
        text = path.read_text()
        assert text.count(new) == 1, (name, new)
        path.write_text(text.replace(new, old))
