"""The servers that `benchmarks/terminal.py` compares: this one and its peers."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import httpx
import psutil

from benchmarks.terminal_client import Door
from tests.e2e.running_server import RunningServer

SHELL: Final = "/bin/sh"
START_SECONDS: Final = 20.0
START: Final = """mutation Start($input: StartTerminalInput!) {
  startTerminal(input: $input) {
    ... on StartTerminalPayload { terminal { id } ticket { secret socketPath } }
    ... on UserError { code message }
  }
}"""
TERMINADO: Final = """
import sys, asyncio, terminado, tornado.web
class Alive(tornado.web.RequestHandler):
    def get(self):
        self.write({"status": "alive"})
async def main():
    manager = terminado.NamedTermManager(shell_command=[sys.argv[2]], max_terminals=99)
    tornado.web.Application([
        (r"/healthz", Alive),
        (r"/terminals/(\\w+)", terminado.TermSocket, {"term_manager": manager}),
    ]).listen(int(sys.argv[1]), "127.0.0.1")
    await asyncio.Event().wait()
asyncio.run(main())
"""


class Server(Protocol):
    """A running server of terminals."""

    name: str
    http_path: str
    """What answers a GET with next to no work."""
    shares: bool
    """Whether several clients can watch one terminal."""

    @property
    def port(self) -> int:
        """Where it listens on loopback."""

    def open(self, terminal: str, *, cols: int = 80, rows: int = 24) -> Door:
        """Return the door of the terminal of that name, started if it is a new one."""

    def processes(self) -> list[psutil.Process]:
        """Return the server's own processes, without the shells."""


@dataclass(slots=True)
class Sidestage:
    """A real `sidestage serve` with its terminal host."""

    running: RunningServer
    project_id: str
    name: str = "sidestage"
    http_path: str = "/healthz"
    shares: bool = True
    _terminals: dict[str, str] = field(default_factory=dict)

    @property
    def port(self) -> int:
        """The server's port."""
        return int(self.running.url.rpartition(":")[2])

    def open(self, terminal: str, *, cols: int = 80, rows: int = 24) -> Door:
        """Return the door of a terminal, with a fresh ticket."""
        if terminal not in self._terminals:
            ticket = self._start(terminal, cols, rows)
        else:
            ticket = self.running.issue_ticket(self._terminals[terminal])
        path = "/" + ticket["socketPath"].lstrip("/")
        return Door("sidestage", self.port, path, ticket["secret"])

    def processes(self) -> list[psutil.Process]:
        """Return `serve` and the host."""
        host = self.running.host_pid()
        assert host is not None
        return [psutil.Process(self.running.pid), psutil.Process(host)]

    def _start(self, terminal: str, cols: int, rows: int) -> dict[str, str]:
        given = {
            "projectId": self.project_id,
            "template": "template:shell",
            "cols": cols,
            "rows": rows,
        }
        answer = self.running.query(START, {"input": given})["startTerminal"]
        assert "terminal" in answer, answer
        self._terminals[terminal] = answer["terminal"]["id"]
        ticket: dict[str, str] = answer["ticket"]
        return ticket


@dataclass(slots=True)
class Peer:
    """A server in one process that starts a shell for each new path."""

    name: str
    kind: str
    port: int
    process: subprocess.Popen[bytes]
    path: str
    http_path: str
    shares: bool

    def open(self, terminal: str, *, cols: int = 80, rows: int = 24) -> Door:
        """Return the door of a terminal; ttyd starts one for each client."""
        assert (cols, rows) == (80, 24)
        return Door(self.kind, self.port, self.path.format(terminal))

    def processes(self) -> list[psutil.Process]:
        """Return the server."""
        return [psutil.Process(self.process.pid)]


@dataclass(slots=True)
class OneProcess:
    """This server's host and gateway in one process: what splitting them is to gain."""

    peer: Peer
    name: str = "one process"
    http_path: str = "/healthz"
    shares: bool = True

    @property
    def port(self) -> int:
        """The server's port."""
        return self.peer.port

    def open(self, terminal: str, *, cols: int = 80, rows: int = 24) -> Door:
        """Return the door of a terminal."""
        url = f"http://127.0.0.1:{self.port}/start/{terminal}"
        answer = httpx.post(url, params={"cols": cols, "rows": rows}).json()
        path = f"/terminals/{answer['id']}/socket"
        return Door("sidestage", self.port, path, answer["ticket"])

    def processes(self) -> list[psutil.Process]:
        """Return the server."""
        return self.peer.processes()


@contextmanager
def open_sidestage(folder: Path, *, sandbox: bool) -> Iterator[Sidestage]:
    """Serve with *folder* as the project until the block ends."""
    with tempfile.TemporaryDirectory(prefix="stb-", dir=folder.parent) as home:
        environment = {
            "HOME": home,
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "SHELL": SHELL,
            "SIDESTAGE_SANDBOX": str(sandbox).lower(),
            "SIDESTAGE_TERMINALS_LIMIT": "64",
        }
        with RunningServer(environment=environment) as running:
            yield Sidestage(running, running.register_project(folder))


@contextmanager
def open_one_process(folder: Path) -> Iterator[OneProcess]:
    """Run host and gateway in one process until the block ends."""
    port = _free_port()
    command = [sys.executable, "-m", "benchmarks.terminal_one_process"]
    with _run([*command, str(port), str(folder)], port) as process:
        yield OneProcess(Peer("", "sidestage", port, process, "", "", shares=True))


@contextmanager
def open_ttyd(program: Path) -> Iterator[Peer]:
    """Run ttyd until the block ends."""
    port = _free_port()
    # It cuts clients that are slow to answer its pings every 5 seconds.
    options = ["-P", "600", "-i", "lo", "-p", str(port), "-W"]
    with _run([str(program), *options, SHELL], port) as process:
        yield Peer("ttyd", "ttyd", port, process, "/ws", "/token", shares=False)


@contextmanager
def open_terminado(python: Path) -> Iterator[Peer]:
    """Run terminado, with the interpreter that has it, until the block ends."""
    port = _free_port()
    with _run([str(python), "-c", TERMINADO, str(port), SHELL], port) as process:
        path = "/terminals/{}"
        yield Peer(
            "terminado", "terminado", port, process, path, "/healthz", shares=True
        )


@contextmanager
def open_all(
    folder: Path, *, sandbox: bool, ttyd: Path | None, terminado: Path | None
) -> Iterator[list[Server]]:
    """Run this server and the peers that are there until the block ends."""
    with ExitStack() as stack:
        servers: list[Server] = [
            stack.enter_context(open_sidestage(folder, sandbox=sandbox)),
            stack.enter_context(open_one_process(folder)),
        ]
        if ttyd is not None:
            servers.append(stack.enter_context(open_ttyd(ttyd)))
        if terminado is not None:
            servers.append(stack.enter_context(open_terminado(terminado)))
        yield servers


@contextmanager
def _run(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"SHELL": SHELL},
    ) as process:
        try:
            _wait_listening(port)
            yield process
        finally:
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGTERM)
            process.wait()
            for child in children:
                if child.is_running():
                    child.kill()


def _wait_listening(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(json.dumps({"port": port}))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
