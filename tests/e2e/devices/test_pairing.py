"""A device in JavaScript is paired with a real server, from the link to revocation.

`tests/e2e/envelopes/device.mjs` knows docs/handover-protocol.md and nothing of ours.
"""

import base64
import json
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from sidestage.envelopes.keys import PrivateKey
from tests.e2e.envelopes.javascript_device import JavaScriptDevice, open_device
from tests.e2e.running_server import RunningServer
from tests.waiting import wait_for

Json = dict[str, Any]
LINK = re.compile(r"http\S+/pair#1\.(\S{22})\.(\S{22})\.(\S{43})\.(\S+)")
ENVELOPE = """purpose hostId hostKeyId deviceId deviceKeyId subjectId sessionId
  messageId sealedAtMs expiresAtMs enc ciphertext"""
PAIR = f"""mutation Pair($input: PairDeviceInput!) {{
  pairDevice(input: $input) {{
    __typename
    ... on PairDevicePayload {{ state retryAfterMs envelope {{ {ENVELOPE} }} }}
    ... on UserError {{ code message }}
  }}
}}"""
FEED = "subscription { terminalFeed { kind } }"
CLOSED_WITHIN_SECONDS = 10.0


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    home = tmp_path_factory.mktemp("h")
    environment = {"HOME": str(home), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    with RunningServer(environment=environment) as running:
        yield running


@pytest.fixture
def device() -> Iterator[JavaScriptDevice]:
    with open_device() as device:
        yield device


@contextmanager
def pairing(server: RunningServer, *options: str) -> Iterator["Owner"]:
    """Run `sidestage pair` as the owner does, with a keyboard and a screen."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "sidestage", "pair", *options],
        env=server.environment,
        cwd=server.home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    owner = Owner(process)
    try:
        yield owner
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@dataclass
class Owner:
    """The person at the terminal."""

    process: "subprocess.Popen[str]"
    seen: str = ""

    def read_until(self, pattern: "re.Pattern[str]") -> "re.Match[str]":
        assert self.process.stdout is not None
        while not (match := pattern.search(self.seen)):
            text = self.process.stdout.readline()
            assert text, self.seen
            self.seen += text
        return match

    def type(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()


@dataclass
class App:
    """An app on a phone: the JavaScript device and what it keeps."""

    server: RunningServer
    device: JavaScriptDevice
    link: "re.Match[str]"
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    name: str = "Ada’s phone"

    @property
    def host_key(self) -> str:
        return base64.urlsafe_b64decode(self.link[3] + "=").hex()

    def request(self) -> Json:
        nonce = bytes(16)
        key = PrivateKey.from_secret(self.secret).public.raw
        claim = {
            "pairingId": self.link[1],
            "hostId": self.link[4],
            "hostKey": self.host_key,
            "deviceKey": key.hex(),
            "name": self.name,
            "platform": "test",
            "nonce": nonce.hex(),
        }
        secret = base64.urlsafe_b64decode(self.link[2] + "==").hex()
        proof = self.device.ask("prove", secret=secret, claim=claim)["proof"]
        return {
            "pairingId": self.link[1],
            "deviceKey": base64.b64encode(key).decode(),
            "name": self.name,
            "platform": "test",
            "nonce": base64.b64encode(nonce).decode(),
            "proof": base64.b64encode(bytes.fromhex(proof)).decode(),
        }

    def ask(self) -> Json:
        """Send the request without a token, as every device begins."""
        answer = httpx.post(
            f"{self.server.url}/graphql",
            json={"query": PAIR, "variables": {"input": self.request()}},
            timeout=30,
        ).json()
        assert "errors" not in answer, answer
        told: Json = answer["data"]["pairDevice"]
        return told

    def open(self, envelope: Json) -> Json:
        opened = self.device.ask(
            "open",
            secret=self.secret.hex(),
            hostKey=self.host_key,
            envelope=envelope,
        )
        content: Json = json.loads(opened["text"])
        return content

    def post(self, query: str, token: str) -> Json:
        answer: Json = self.server.post(query, token=token).json()
        return answer


def pair(
    server: RunningServer, device: JavaScriptDevice, *options: str
) -> tuple[App, str]:
    """Pair an app whole; return it and its token."""
    with pairing(server) as owner:
        app = App(server, device, owner.read_until(LINK))
        told = app.ask()
        assert told["state"] == "PENDING"
        owner.read_until(re.compile("wants in"))
        owner.type(app.open(told["envelope"])["code"])
        owner.read_until(re.compile("Paired"))
    token = app.open(app.ask()["envelope"])["token"]
    assert "errors" not in app.post("{ viewer { kind } }", token)
    return app, token


def test_a_device_is_paired_while_the_server_is_restarted_between_all_steps(
    server: RunningServer, device: JavaScriptDevice
) -> None:
    with pairing(server, "--name", "Kitchen") as owner:
        app = App(server, device, owner.read_until(LINK))
        told = app.ask()
        assert app.ask() == told  # a lost answer: the same bytes again
        code = app.open(told["envelope"])["code"]
        shown = owner.read_until(re.compile("'Kitchen' .*wants in: ([a-z, ]*)"))
        assert shown[1] == "view, read, answer, terminal"
        owner.type(code)
        owner.read_until(re.compile("Paired 'Kitchen'"))
    server.restart(signal.SIGKILL)
    done = app.ask()
    assert done["state"] == "DONE"
    server.restart(signal.SIGKILL)
    assert app.ask() == done
    given = app.open(done["envelope"])
    query = "{ viewer { kind device { id name state } } }"
    viewer = app.post(query, given["token"])["data"]["viewer"]
    assert viewer["kind"] == "DEVICE"
    assert viewer["device"] == {
        "id": given["deviceId"],
        "name": "Kitchen",
        "state": "ACTIVE",
    }
    server.restart(signal.SIGKILL)
    assert app.ask()["code"] == "PAIRING_CLOSED"
    assert app.post(query, given["token"])["data"]["viewer"] == viewer
    held = b"".join(path.read_bytes() for path in database_files(server))
    assert given["token"].encode() not in held
    assert base64.urlsafe_b64decode(given["token"][-43:] + "=") not in held
    assert given["token"] not in server.log.read_text()


def database_files(server: RunningServer) -> list[Path]:
    return list(server.state_dir.glob("sidestage.db*"))


def test_a_second_reader_of_the_link_keeps_both_out(
    server: RunningServer, device: JavaScriptDevice
) -> None:
    with pairing(server) as owner:
        app = App(server, device, owner.read_until(LINK))
        thief = App(server, device, app.link, name="Ada’s phone")
        told = app.ask()
        owner.read_until(re.compile("wants in"))
        assert thief.ask()["code"] == "PAIRING_REFUSED"
        owner.type(app.open(told["envelope"])["code"])
        owner.read_until(re.compile("Nobody was let in"))
    assert app.ask()["code"] == "PAIRING_REFUSED"
    assert server.query("{ devices { nodes { id } } }")["devices"]["nodes"] == []


def test_leaving_the_terminal_cancels_the_pairing(
    server: RunningServer, device: JavaScriptDevice
) -> None:
    with pairing(server) as owner:
        app = App(server, device, owner.read_until(LINK))
    assert app.ask()["code"] == "PAIRING_REFUSED"


def test_the_key_is_changed_and_the_device_follows(
    server: RunningServer, device: JavaScriptDevice
) -> None:
    app, token = pair(server, device)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sidestage", "keys", "rotate"],
        env=server.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "1 device(s)" in done.stdout
    query = f"""{{ server {{ hostKey }}
      viewer {{ device {{ hostKeyEnvelope {{ {ENVELOPE} }} }} }} }}"""
    data = app.post(query, token)["data"]
    opened = app.open(data["viewer"]["device"]["hostKeyEnvelope"])
    new = base64.urlsafe_b64decode(opened["hostKey"] + "=")
    assert base64.b64encode(new).decode() == data["server"]["hostKey"]
    assert new.hex() != app.host_key


def test_all_five_kinds_of_connection_of_a_revoked_device_are_closed(
    server: RunningServer, device: JavaScriptDevice
) -> None:
    app, token = pair(server, device)
    project = server.home / "project"
    project.mkdir()
    project_id = server.register_project(project)
    started = server.query(
        """mutation Start($input: StartTerminalInput!) { startTerminal(input: $input) {
          ... on StartTerminalPayload { terminal { id } }
          ... on UserError { message } } }""",
        {
            "input": {
                "template": "template:shell",
                "projectId": project_id,
                "cols": 80,
                "rows": 24,
            }
        },
    )["startTerminal"]
    assert "terminal" in started, started
    with ExitStack() as stack:
        socket = stack.enter_context(open_socket(server, token))
        sse = stack.enter_context(open_stream(server, token, "text/event-stream"))
        parts = stack.enter_context(open_stream(server, token, "multipart/mixed"))
        tickets = [
            issue_ticket(app, token, started["terminal"]["id"]) for _ in range(2)
        ]
        terminal = stack.enter_context(server.attach(tickets[0]))
        terminal.until(lambda: terminal.messages, "a first message")
        own = server.query("{ devices { nodes { id } } }")["devices"]["nodes"][0]["id"]
        revoke = """mutation Revoke($input: RevokeDeviceInput!) {
          revokeDevice(input: $input) { __typename } }"""
        server.query(revoke, {"input": {"deviceId": own}})
        assert close_code(socket) == 4401
        assert terminal.until_closed(CLOSED_WITHIN_SECONDS) == 4401
        for stream in (sse, parts):
            list(stream)  # ends, or the client's own time-out fails the test
    assert server.post("{ viewer { kind } }", token=token).status_code == 401
    with server.attach(tickets[1]) as late:
        assert late.until_closed(CLOSED_WITHIN_SECONDS) in (4401, 4403)
    close = 'mutation { closeTerminal(input: {terminalId: "%s"}) { __typename } }'
    server.query(close % started["terminal"]["id"])
    wait_for(
        lambda: (
            server.query("{ terminals { nodes { id } } }")["terminals"]["nodes"] == []
        ),
        "the terminal is gone",
    )


@contextmanager
def open_socket(server: RunningServer, token: str) -> Iterator[ClientConnection]:
    with connect(
        server.url.replace("http", "ws") + "/graphql",
        subprotocols=[Subprotocol("graphql-transport-ws")],
    ) as connection:
        greeting = {"type": "connection_init", "payload": {"token": token}}
        connection.send(json.dumps(greeting))
        assert json.loads(connection.recv(timeout=30))["type"] == "connection_ack"
        start = {"id": "1", "type": "subscribe", "payload": {"query": FEED}}
        connection.send(json.dumps(start))
        assert json.loads(connection.recv(timeout=30))["type"] == "next"
        yield connection


@contextmanager
def open_stream(
    server: RunningServer, token: str, media: str
) -> Iterator[Iterator[str]]:
    with httpx.stream(
        "POST",
        f"{server.url}/graphql",
        json={"query": FEED},
        headers={"Authorization": f"Bearer {token}", "Accept": media},
        timeout=CLOSED_WITHIN_SECONDS,
    ) as response:
        lines = response.iter_lines()
        while "terminalFeed" not in next(lines):
            pass
        yield lines


def issue_ticket(app: App, token: str, terminal_id: str) -> Json:
    query = """mutation { issueTerminalTicket(input: {terminalId: "%s"}) {
      ... on IssueTerminalTicketPayload { ticket { secret socketPath } } } }"""
    data = app.post(query % terminal_id, token)["data"]
    ticket: Json = data["issueTerminalTicket"]["ticket"]
    return ticket


def close_code(connection: ClientConnection) -> int:
    try:
        while True:
            connection.recv(timeout=CLOSED_WITHIN_SECONDS)
    except ConnectionClosed:
        assert connection.close_code is not None
        return connection.close_code
