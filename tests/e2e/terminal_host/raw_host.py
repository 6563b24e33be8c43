"""A host process started by hand, and frames spoken to it by hand."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.waiting import wait_for


def start(state_dir: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a host; its owner waits for it."""
    command = [sys.executable, "-P", "-m", "terminal_host.host"]
    return subprocess.Popen(
        [*command, "--state-dir", str(state_dir), *arguments],
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


@contextmanager
def running_host(state_dir: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """Run a host until the block ends."""
    with start(state_dir, *arguments) as process:
        try:
            wait_for(lambda: _listens(state_dir), "the host listens")
            yield process
        finally:
            process.terminate()
            process.wait(15)


def host_pid(state_dir: Path) -> int:
    """Return the pid of the host that listens."""
    with connect(state_dir) as connection:
        send(connection, {"versions": [1], "role": "control"})
        greeting = receive(connection)
    assert greeting is not None
    return int(greeting["pid"])


def kill(pid: int) -> None:
    """Kill a host as a power cut would."""
    os.kill(pid, signal.SIGKILL)


def connect(state_dir: Path) -> socket.socket:
    """Connect without greeting."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(20)
    try:
        connection.connect(str(state_dir / "host.sock"))
    except OSError:
        connection.close()
        raise
    return connection


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send one frame."""
    body = json.dumps(message).encode()
    connection.sendall(len(body).to_bytes(4, "big") + body)


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Return one frame, or None at the end."""
    length = _read(connection, 4)
    if len(length) < 4:
        return None
    message: dict[str, Any] = json.loads(
        _read(connection, int.from_bytes(length, "big"))
    )
    return message


def _listens(state_dir: Path) -> bool:
    try:
        connect(state_dir).close()
    except OSError:
        return False
    return True


def _read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (piece := connection.recv(count - len(data))):
        data += piece
    return data
