"""A real `sidestage serve` in a process of its own, and clients of it.

    with RunningServer(environment=claude.environment()) as server:
        data = server.query("{ server { version } }")
        with server.follow("subscription { outsideSessionFeed { ... } }") as feed:
            feed.until(lambda message: message["kind"] == "DELTA")

The server gets only *environment*; its state folder is below the scratch home. When the
block ends the server is stopped, and the terminal host that it left with it.
"""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx
import pyte
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from sidestage.state import SOCKET_PATH_LIMIT_BYTES
from tests.waiting import wait_for

Json = dict[str, Any]
PATIENCE_SECONDS: Final = 30.0
HOST_SOCKETS: Final = ("host.sock", "host-v2.sock")
"""Where hosts listen: the second beside one of an older version."""
RESUME: Final = """mutation Resume($input: ResumeOutsideSessionInput!) {
  resumeOutsideSession(input: $input) {
    __typename
    ... on ResumeOutsideSessionPayload {
      terminal { id name state cols rows } ticket { secret socketPath }
    }
    ... on OutsideSessionResumed { openTerminal { id } }
    ... on UserError { code message }
  }
}"""
ROW: Final = """id name state directory waitingFor { kind label }
  terminal { id state } stateEvidence { source observedAt }
  conflict { since message }
  resume { available refusal { code message } }"""


class RunningServer:
    """The server; see the module's text."""

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        arguments: Sequence[str] = (),
        program: Sequence[str] = ("-P", "-m", "sidestage", "serve"),
        python: Path = Path(sys.executable),
    ) -> None:
        self.environment = dict(environment) | {
            name: value
            for name, value in os.environ.items()
            if name.startswith("COVERAGE_")
        }
        self.home = Path(self.environment["HOME"])
        self.state_dir = self._find_state_dir()
        self.log = self.home / "serve.log"
        self.url = ""
        self.patience_seconds = PATIENCE_SECONDS
        """How long an operation may take."""
        self._command = [str(python), *program, "--port", "0", *arguments]
        self._process: subprocess.Popen[str] | None = None

    def _find_state_dir(self) -> Path:
        own = self.home / ".local" / "state" / "sidestage"
        if len(os.fsencode(own / "control.sock")) <= SOCKET_PATH_LIMIT_BYTES:
            return own
        # The scratch home lies too deep for a Unix socket; so do some owners' homes.
        short = Path(tempfile.mkdtemp(prefix="sidestage-"))
        self.environment["SIDESTAGE_STATE_DIR"] = str(short)
        return short

    @property
    def token(self) -> str:
        """The admin token."""
        return (self.state_dir / "admin.token").read_text().strip()

    @property
    def pid(self) -> int:
        """The server's pid."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process exists."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server and wait until it says that it answers."""
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self.environment,
                cwd=self.home,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("http://"):
                self.url = line.strip()
                return
        self._process.stdout.close()
        self._process.wait(PATIENCE_SECONDS)
        raise AssertionError(f"the server did not start:\n{self.log.read_text()}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stop the server with a signal; return its exit status."""
        process = self._process
        assert process is not None
        process.send_signal(number)
        assert process.stdout is not None
        process.stdout.close()
        return process.wait(PATIENCE_SECONDS)

    def restart(self, number: int = signal.SIGTERM) -> None:
        """Stop the server and start it anew, on another port."""
        self.stop(number)
        self.start()

    def post(
        self,
        document: str,
        variables: Json | None = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send an operation; return the whole answer."""
        return httpx.post(
            f"{self.url}/graphql",
            json={"query": document, "variables": variables or {}},
            headers={"Authorization": f"Bearer {token or self.token}"}
            | dict(headers or {}),
            timeout=self.patience_seconds,
        )

    def query(self, document: str, variables: Json | None = None) -> Json:
        """Run an operation that must succeed; return its data."""
        answer: Json = self.post(document, variables).json()
        assert "errors" not in answer, answer
        data: Json = answer["data"]
        return data

    def register_project(self, folder: Path, **more: object) -> str:
        """Register *folder*; return the project's id."""
        data = self.query(
            """mutation Add($input: RegisterProjectInput!) {
              registerProject(input: $input) {
                ... on RegisterProjectPayload { project { id } }
                ... on UserError { code message } } }""",
            {"input": {"path": str(folder), **more}},
        )["registerProject"]
        assert "project" in data, data
        return str(data["project"]["id"])

    def rows(self) -> list[Json]:
        """Return the sessions as the list shows them now."""
        data = self.query(f"{{ outsideSessions(first: 100) {{ nodes {{ {ROW} }} }} }}")
        nodes: list[Json] = data["outsideSessions"]["nodes"]
        return nodes

    def resume(
        self,
        session_id: str,
        *,
        cols: int = 100,
        rows: int = 40,
        key: str | None = None,
    ) -> Json:
        """Ask for a resume; return the union's member, whichever it is."""
        given: Json = {"sessionId": session_id, "cols": cols, "rows": rows}
        if key is not None:
            given["idempotencyKey"] = key
        answer: Json = self.query(RESUME, {"input": given})["resumeOutsideSession"]
        return answer

    def close_terminal(self, terminal_id: str) -> Json:
        """Close a terminal; return the union's member."""
        data = self.query(
            """mutation Close($input: CloseTerminalInput!) {
              closeTerminal(input: $input) {
                __typename ... on UserError { code message } } }""",
            {"input": {"terminalId": terminal_id}},
        )
        answer: Json = data["closeTerminal"]
        return answer

    def issue_ticket(self, terminal_id: str, mode: str = "CONTROL") -> Json:
        """Return a fresh ticket for a terminal."""
        data = self.query(
            """mutation Ticket($input: IssueTerminalTicketInput!) {
              issueTerminalTicket(input: $input) {
                ... on IssueTerminalTicketPayload { ticket { secret socketPath } }
                ... on UserError { code message } } }""",
            {"input": {"terminalId": terminal_id, "mode": mode}},
        )["issueTerminalTicket"]
        assert "ticket" in data, data
        ticket: Json = data["ticket"]
        return ticket

    @contextmanager
    def follow(self, document: str, variables: Json | None = None) -> Iterator["Feed"]:
        """Subscribe; the feed ends with the block."""
        with connect(
            self.url.replace("http", "ws") + "/graphql",
            subprotocols=[Subprotocol("graphql-transport-ws")],
            max_size=2**24,
        ) as connection:
            feed = Feed(connection)
            feed.open(self.token, document, variables or {})
            yield feed

    @contextmanager
    def attach(
        self,
        ticket: Json,
        *,
        cols: int = 100,
        rows: int = 40,
        after: int | None = None,
    ) -> Iterator["TerminalClient"]:
        """Attach to a terminal by *ticket*; a client for the time of the block.

        *after* is where another client was cut off.
        """
        with connect(
            f"{self.url.replace('http', 'ws')}/{ticket['socketPath']}",
            subprotocols=[Subprotocol("sidestage.terminal.v1")],
            max_size=2**24,
        ) as connection:
            client = TerminalClient(connection, cols, rows)
            client.open(ticket["secret"], after=after)
            yield client

    def host_pid(self, socket_name: str = "host.sock") -> int | None:
        """Return the pid of the terminal host there, or None if none listens."""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.state_dir / socket_name))
            except OSError:
                return None
            raw = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return int(struct.unpack("3i", raw)[0])

    def _end_host(self, socket_name: str) -> None:
        host = self.host_pid(socket_name)
        if host is not None:
            os.kill(host, signal.SIGTERM)
            wait_for(lambda: self.host_pid(socket_name) is None, "the host ends")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_running:
            self.stop()
        for name in HOST_SOCKETS:
            self._end_host(name)
        if not self.state_dir.is_relative_to(self.home):
            shutil.rmtree(self.state_dir, ignore_errors=True)
        if error is not None and self.log.exists():
            sys.stderr.write(f"--- serve.log\n{self.log.read_text()[-8000:]}\n")


class Feed:
    """One subscription, as `docs/feeds.md` describes it."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.messages: list[Json] = []
        self.rows: dict[str, Json] = {}
        self.history: list[tuple[str, str]] = []
        """(row id, state) in the order in which they were told."""

    def open(self, token: str, document: str, variables: Json) -> None:
        """Greet and subscribe."""
        self._send({"type": "connection_init", "payload": {"token": token}})
        assert self._receive(PATIENCE_SECONDS)["type"] == "connection_ack"
        payload = {"query": document, "variables": variables}
        self._send({"id": "1", "type": "subscribe", "payload": payload})

    def next(self, seconds: float = PATIENCE_SECONDS) -> Json:
        """Return the next message of the feed; keeps `rows` up to date."""
        frame = self._receive(seconds)
        assert frame["type"] == "next", frame
        assert "errors" not in frame["payload"], frame
        message: Json = next(iter(frame["payload"]["data"].values()))
        self.messages.append(message)
        if message.get("kind") == "RESET":
            self.rows.clear()
        for row in message.get("upserts", ()):
            self.rows[row["id"]] = row
            self.history.append((row["id"], row.get("state", "")))
        for gone in message.get("removedIds", ()):
            self.rows.pop(gone, None)
        return message

    def until(
        self, holds: Callable[[], object], *, seconds: float = PATIENCE_SECONDS
    ) -> float:
        """Take messages in until *holds*; return how long that took, in seconds."""
        began = time.monotonic()
        while not holds():
            left = began + seconds - time.monotonic()
            if left <= 0:
                raise AssertionError(f"not within {seconds} s; rows: {self.rows}")
            with suppress(TimeoutError):
                self.next(left)
        return time.monotonic() - began

    def _send(self, message: Json) -> None:
        self._connection.send(json.dumps(message))

    def _receive(self, seconds: float) -> Json:
        deadline = time.monotonic() + seconds
        while True:
            frame: Json = json.loads(
                self._connection.recv(timeout=max(0.0, deadline - time.monotonic()))
            )
            if frame["type"] != "ping":
                return frame
            self._send({"type": "pong"})


class _Screen(pyte.Screen):
    """Ignores private SGR sequences, which pyte 0.8.2 fails on."""

    def select_graphic_rendition(self, *attrs: int, private: bool = False) -> None:
        if not private:
            super().select_graphic_rendition(*attrs)


class TerminalClient:
    """A client of the companion WebSocket with a screen, as its document says."""

    def __init__(self, connection: ClientConnection, cols: int, rows: int) -> None:
        self._connection = connection
        self._screen = _Screen(cols, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._repaint_left = 0
        self.offset = 0
        self.messages: list[Json] = []
        self.output = b""

    @property
    def text(self) -> str:
        """The screen's lines."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def open(self, secret: str, *, after: int | None = None) -> None:
        """Show the ticket."""
        message: Json = {"type": "attach", "ticket": secret}
        if after is not None:
            message["after"] = self.offset = after
        self.send_message(message)

    def send_message(self, message: Json) -> None:
        """Send a control message."""
        self._connection.send(json.dumps(message))

    def type(self, text: str) -> None:
        """Type *text*."""
        self._connection.send(text.encode())

    def wait_for(self, text: str, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Take frames in until the screen shows *text*."""
        self.until(lambda: text in self.text, f"{text!r} on the screen", seconds)

    def until(
        self, holds: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Take frames in until *holds*."""
        deadline = time.monotonic() + seconds
        while not holds():
            try:
                self._take(self._connection.recv(timeout=deadline - time.monotonic()))
            except (TimeoutError, ConnectionClosed) as error:
                raise AssertionError(
                    f"no {what}: {error!r}\n{self.messages}\n{self.text}"
                ) from error

    def until_closed(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Take frames in until the server closes; return its code."""
        deadline = time.monotonic() + seconds
        with suppress(ConnectionClosed):
            while True:
                self._take(self._connection.recv(timeout=deadline - time.monotonic()))
        assert self._connection.close_code is not None
        return self._connection.close_code

    def _take(self, frame: str | bytes) -> None:
        if isinstance(frame, str):
            message: Json = json.loads(frame)
            self.messages.append(message)
            if message["type"] == "ping":
                self.send_message({"type": "pong"})
            elif message["type"] == "repaint":
                self._screen.reset()
                self._screen.resize(message["rows"], message["cols"])
                self._repaint_left, self.offset = message["length"], message["offset"]
            elif message["type"] == "resized":
                self._screen.resize(message["rows"], message["cols"])
            return
        data = frame[8:]
        self._stream.feed(data)
        if self._repaint_left:
            self._repaint_left -= len(data)
            return
        self.output += data
        self.offset += len(data)
        self.send_message({"type": "ack", "offset": self.offset})
