"""The real Claude Code with hooks, a server, and devices that answer its questions.

def test_x(tmp_path: Path) -> None:
    with HandoverBench.open(tmp_path) as bench:
        device = bench.pair()
        with bench.asking() as asked:
            device.answer(asked.offer(device), "The second one")
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from tests.e2e.handover.device import PythonDevice
from tests.e2e.pty_program import PtyProgram
from tests.e2e.real_claude import Json, RealClaude
from tests.e2e.resume.bench import ResumeBench
from tests.e2e.running_server import RunningServer
from tests.waiting import wait_for

QUESTION: Final = "Which one would you like me to implement?"
FAULTY_SERVER: Final = Path(__file__).with_name("faulty_server.py")


class HandoverBench(ResumeBench):
    """What stands around a handover; see the module's text."""

    @classmethod
    @contextmanager
    def open_with_hooks(cls, root: Path, *, faulty: bool = False) -> Iterator[Self]:
        """Run model and server while the block lasts; hooks are installed."""
        with RealClaude.create(root) as claude:
            claude.make_project("my_proj.v2")
            (claude.home / "faults").mkdir()
            environment = claude.environment()
            server = RunningServer(environment=environment)
            if faulty:
                program = ("-P", str(FAULTY_SERVER))
                server = RunningServer(environment=environment, program=program)
            claude.write_settings({"permissions": {"defaultMode": "default"}})
            with server:
                install_hooks(server)
                bench = cls(claude, server)
                bench.project_id = server.register_project(bench.project)
                yield bench

    def pair(self, **more: Any) -> PythonDevice:
        """Pair a new device."""
        return PythonDevice.pair(self.server, **more)

    @contextmanager
    def asking(self, prompt: str = "stub:question", *more: str) -> Iterator["Asking"]:
        """Run a session at a keyboard whose turn ends in a question."""
        before = set(self.claude.transcripts())
        with self.keyboard(*more, prompt) as terminal:
            terminal.wait_for(r"\?")
            wait_for(lambda: set(self.claude.transcripts()) - before, "its transcript")
            transcript = self._only_new(before)
            yield Asking(self, terminal, transcript, self.row_id(transcript.stem))


@dataclass
class Asking:
    """A session at a keyboard that asks."""

    bench: HandoverBench
    terminal: PtyProgram
    transcript: Path
    session_id: str

    def wait_turn_recorded(self) -> None:
        """Wait until the CLI has written all there is of the turn."""
        wait_for(
            lambda: b"turn_duration" in self.transcript.read_bytes(), "the turn's end"
        )
        self.bench.wait_idle()

    def offer(self, device: PythonDevice) -> Json:
        """Return its open offer, once there is one."""
        return device.wait_offer(
            lambda offer: (
                offer["state"] in ("PENDING", "ANSWERING")
                and offer["session"]["id"] == self.session_id
            )
        )


def install_hooks(server: RunningServer) -> None:
    """Install our hooks as an owner does.

    A command of the tests' own once lacked the installed one's guard: in a sandbox that
    hid the checkout, Python ended with status 2, by which the CLI blocks the prompt.
    """
    subprocess.run(
        [sys.executable, "-P", "-m", "sidestage", "hooks", "install"],
        env=server.environment,
        cwd=server.home,
        check=True,
        timeout=60,
    )


def wait_state(device: PythonDevice, offer: Json, *states: str) -> Json:
    """Return the offer once it is in one of *states*."""
    return device.wait_offer(
        lambda now: now["id"] == offer["id"] and now["state"] in states
    )


def prompts(transcript: Path) -> list[str]:
    """Return what a person typed, as the transcript's own lines hold it."""
    return [
        record["message"]["content"]
        for record in records(transcript)
        if record["type"] == "user" and isinstance(record["message"]["content"], str)
    ]


def transcript_of(bench: ResumeBench, session_id: str) -> Path:
    """Return the transcript of a listed session."""
    [found] = [
        it for it in bench.claude.transcripts() if bench.row_id(it.stem) == session_id
    ]
    assert records(found)
    return found


def records(transcript: Path) -> Sequence[Json]:
    """Return the records of a transcript."""
    return [json.loads(line) for line in transcript.read_text().splitlines()]
