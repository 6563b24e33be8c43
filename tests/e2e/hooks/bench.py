"""The real Claude Code beside a server that writes down what its hooks are told.

def test_x(tmp_path: Path) -> None:
    with HookBench.open(tmp_path) as bench:
        bench.sidestage("hooks", "install")
        session = bench.resumes.say_headless("hello")
        bench.wait_events("Stop")
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from tests.e2e.real_claude import Json
from tests.e2e.resume.bench import ResumeBench
from tests.e2e.running_server import RunningServer
from tests.waiting import wait_for

SERVER: Final = Path(__file__).with_name("listening_server.py")


def make_server(*, environment: Mapping[str, str]) -> RunningServer:
    """Return the server that listens to hooks."""
    return RunningServer(environment=environment, program=("-P", str(SERVER)))


class HookBench:
    """What stands around hooks; see the module's text."""

    def __init__(self, resumes: ResumeBench) -> None:
        self.resumes = resumes
        self.claude = resumes.claude
        self.server = resumes.server
        self._decision = self.claude.home / "decision"
        os.mkfifo(self._decision)

    @classmethod
    @contextmanager
    def open(cls, root: Path) -> Iterator[Self]:
        """Run model and server while the block lasts; the project is registered."""
        with ResumeBench.open(root, make_server=make_server) as resumes:
            yield cls(resumes)

    def sidestage(self, *arguments: str) -> str:
        """Run the command line; return what it says."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "sidestage", *arguments],
            env=self.server.environment,
            cwd=self.claude.home,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done
        return done.stdout

    def events(self) -> list[Json]:
        """Return every event that the listener was told, in that order."""
        path = self.claude.home / "events.jsonl"
        if not path.exists():
            return []
        whole = path.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def wait_event(self, name: str, *, count: int = 1) -> Json:
        """Return the *count*th event of that name, once it was told."""

        def find() -> list[Json]:
            found = [it for it in self.events() if it["name"] == name]
            return found[count - 1 : count]

        [event] = wait_for(find, f"{name} is told")
        return event

    def decide(self, decision: Json) -> None:
        """Answer the hook that waits."""
        data = json.dumps(decision).encode()
        wait_for(lambda: self._write(data), "the listener waits for a decision")

    def counters(self) -> dict[str, int]:
        """Return what the server counts of hooks."""
        data = self.server.query("{ server { health { counters { name value } } } }")
        rows = data["server"]["health"]["counters"]
        return {row["name"]: int(row["value"]) for row in rows}

    def forge(self, path: Path, conversation_id: str, name: str = "Stop") -> None:
        """Send an event as a program of the owner's would that is no hook."""
        payload = json.dumps(
            {"session_id": conversation_id, "hook_event_name": name}
        ).encode()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            header = b'{"v":1,"kind":"event","length":%d}\n' % len(payload)
            connection.sendall(header + payload)
            assert connection.recv(100) == b'{"v":1,"kind":"taken"}\n'

    def _write(self, data: bytes) -> bool:
        """Write into the FIFO if somebody reads it; never wait for that."""
        try:
            descriptor = os.open(self._decision, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        with os.fdopen(descriptor, "wb") as pipe:
            pipe.write(data)
        return True
