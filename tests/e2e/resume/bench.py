"""The real Claude Code, a server beside it, and what the tests of a resume ask them.

    def test_x(tmp_path: Path) -> None:
        with ResumeBench.open(tmp_path) as bench:
            session = bench.begin_and_exit("first words")
            started = bench.server.resume(session.id)

`bench.claude` is the CLI in its scratch home, `bench.project` a registered folder
in it.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, Self

import psutil

from sidestage.agents.claude_code.joining import AGENT_NAME
from sidestage.ids import session_id
from sidestage.state import read_machine_secret
from tests.e2e.pty_program import PtyProgram
from tests.e2e.real_claude import Json, RealClaude
from tests.e2e.running_server import ROW, RunningServer, TerminalClient
from tests.waiting import wait_for

FEED: Final = f"""subscription {{ outsideSessionFeed {{
  kind cursor more removedIds upserts {{ {ROW} }}
}} }}"""
FAULTY_SERVER: Final = Path(__file__).with_name("faulty_server.py")
HEADLESS_SECONDS: Final = 60
"""One headless run takes about a second on an idle machine."""
PRESS_LIMIT: Final = 30
"""How often a key is pressed again, once a second."""
SECOND: Final = 10.0
"""What an owner is promised within a second, on a loaded machine."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session by its row's id, and where its transcript lies."""

    id: str
    transcript: Path

    @property
    def conversation_id(self) -> str:
        """The CLI's own id."""
        return self.transcript.stem


class MakeServer(Protocol):
    """Makes a server that is not started yet."""

    def __call__(self, *, environment: Mapping[str, str]) -> RunningServer: ...


class ResumeBench:
    """What stands around a resume; see the module's text."""

    def __init__(self, claude: RealClaude, server: RunningServer) -> None:
        self.claude = claude
        self.server = server
        self.project = claude.home / "my_proj.v2"
        self.project_id = ""
        self.faults = claude.home / "faults"

    @classmethod
    @contextmanager
    def open(
        cls,
        root: Path,
        *,
        read_only: bool = False,
        faulty: bool = False,
        variables: Mapping[str, str] = MappingProxyType({}),
        make_server: "MakeServer | None" = None,
    ) -> Iterator[Self]:
        """Run model and server while the block lasts; the project is registered.

        A *faulty* server has the faults of `faulty_server.py`; *variables* come into
        the server's environment; *make_server* makes it.
        """
        with RealClaude.create(root) as claude:
            claude.make_project("my_proj.v2")
            (claude.home / "faults").mkdir()
            environment = claude.environment(**variables)
            server = (make_server or RunningServer)(environment=environment)
            if faulty:
                program = ("-P", str(FAULTY_SERVER))
                server = RunningServer(environment=environment, program=program)
            with server:
                bench = cls(claude, server)
                bench.project_id = server.register_project(
                    bench.project, readOnly=read_only
                )
                yield bench

    # Sessions.

    def begin_and_exit(self, prompt: str = "first words") -> Conversation:
        """Begin a session by hand, prompt it, end it with `/exit`."""
        before = set(self.claude.transcripts())
        with self.claude.start(prompt, directory=self.project) as terminal:
            terminal.wait_for("Stub answer")
            self.wait_idle()
            terminal.send("/exit\r")
            assert terminal.wait_end() == 0
        return self.conversation_of(self._only_new(before))

    def say_headless(
        self, *arguments: str, directory: Path | None = None
    ) -> Conversation:
        """Begin (or, with `--resume`, go on with) a session that ends at once."""
        before = set(self.claude.transcripts())
        self.run_claude("-p", *arguments, directory=directory or self.project)
        return self.conversation_of(self._only_new(before))

    def run_claude(self, *arguments: str, directory: Path) -> None:
        """Run the CLI to its end, outside of any terminal."""
        done = subprocess.run(
            [str(self.claude.program), *arguments],
            cwd=directory,
            env=self.claude.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HEADLESS_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done

    def conversation_of(self, transcript: Path) -> Conversation:
        """Return the session whose transcript is *transcript*, once it is ended."""
        conversation = Conversation(self.row_id(transcript.stem), transcript)
        self.wait_ended(conversation)
        return conversation

    def row_id(self, conversation_id: str) -> str:
        """Return the id of a conversation's row."""
        secret = read_machine_secret(self.server.state_dir)
        return session_id(AGENT_NAME, conversation_id, machine_secret=secret)

    def wait_ended(self, conversation: Conversation) -> None:
        """Wait until the list shows the session as ended."""
        self.wait_row(
            conversation.id,
            lambda row: row["state"] == "ENDED" and row["directory"] is not None,
        )

    def wait_row(self, session_id: str, holds: Callable[[Json], object]) -> Json:
        """Return the session's row once it *holds*; it is told by push."""
        with self.server.follow(FEED) as feed:
            feed.until(
                lambda: (row := feed.rows.get(session_id)) is not None and holds(row)
            )
            return feed.rows[session_id]

    def _only_new(self, before: set[Path]) -> Path:
        [new] = set(self.claude.transcripts()) - before
        return new

    def find_row(self, session_id: str) -> Json | None:
        """Return the session's row as the list shows it now, or None."""
        rows = {row["id"]: row for row in self.server.rows()}
        return rows.get(session_id)

    def row(self, session_id: str) -> Json:
        """Return the session's row as the list shows it now."""
        row = self.find_row(session_id)
        assert row is not None
        return row

    def wait_idle(self) -> None:
        """Wait until the one session at a keyboard waits for a prompt."""
        wait_for(
            lambda: [it.get("status") for it in self.claude.registry()] == ["idle"],
            "the outside session is idle",
        )

    @contextmanager
    def keyboard(self, *arguments: str) -> Iterator[PtyProgram]:
        """Run the CLI in the project as a person would."""
        with self.claude.start(*arguments, directory=self.project) as terminal:
            yield terminal

    def terminals(self) -> list[Json]:
        """Return the terminals of the server."""
        data = self.server.query(
            "{ terminals(first: 50) { nodes { id state name endReason exitStatus "
            "readOnly cols rows } } }"
        )
        nodes: list[Json] = data["terminals"]["nodes"]
        return nodes

    # Faults.

    def kill_at(self, step: str) -> None:
        """Let the server die at *step* of the next start."""
        (self.faults / f"{step}.kill").touch()

    @contextmanager
    def hold_at(self, step: str) -> Iterator["Hold"]:
        """Let the next start wait at *step*, until released or the block ends."""
        hold = Hold(self.faults / f"{step}.hold")
        try:
            yield hold
        finally:
            hold.release()


class Hold:
    """A start that waits; see `ResumeBench.hold_at`."""

    def __init__(self, fifo: Path) -> None:
        self._fifo = fifo
        os.mkfifo(fifo)

    def wait_reached(self) -> None:
        """Wait until a start stands at the step."""
        self._writer = wait_for(self._open, "a start is held", seconds=60)

    def release(self) -> None:
        """Let it go on; later starts are not held. Releasing twice is fine."""
        self._fifo.unlink(missing_ok=True)
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    _writer: "_Writer | None" = None

    def _open(self) -> "_Writer | None":
        try:
            # Fails as long as nobody reads, which is what a held start does.
            return _Writer(os.open(self._fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return None


class _Writer:
    """The writing end of a FIFO."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        """Close it: the reader sees the end."""
        os.close(self._descriptor)


def say(client: TerminalClient, session: Conversation, prompt: str) -> None:
    """Type *prompt*, then press Enter until the transcript has it.

    While the CLI still asks its terminal what it can do, an Enter may get lost.
    """
    text = json.dumps(prompt)[1:-1].encode()
    client.type(prompt)
    for _ in range(PRESS_LIMIT):
        client.type("\r")
        with suppress(AssertionError):
            client.until(
                lambda: text in session.transcript.read_bytes(), "the prompt", 1.0
            )
        if text in session.transcript.read_bytes():
            return
    raise AssertionError(f"the prompt stays:\n{client.text}")


def find_processes(*words: str) -> list[psutil.Process]:
    """Return the CLI's processes with *words* among their arguments, in this order.

    Bubblewrap and the launcher have the command in a descriptor, not in arguments;
    where they do name it, they are not counted: only `claude` itself is, and not what
    it has forked, which bears its arguments until it executes another program.
    """
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            arguments = process.cmdline()
            if _runs_claude(arguments) and _stand_in_order(words, arguments):
                found[process.pid] = process
    return [it for it in found.values() if _parent_of(it) not in found]


def _parent_of(process: psutil.Process) -> int:
    try:
        return int(process.ppid())
    except psutil.Error:
        return 0


def _runs_claude(arguments: Sequence[str]) -> bool:
    return bool(arguments) and arguments[0].rpartition("/")[2] == "claude"


def _stand_in_order(words: Sequence[str], arguments: Sequence[str]) -> bool:
    places = range(len(arguments) - len(words) + 1)
    return any(tuple(arguments[i : i + len(words)]) == tuple(words) for i in places)


def resumed_processes(conversation: Conversation) -> list[psutil.Process]:
    """Return the processes that run `claude --resume <conversation>`."""
    return find_processes("--resume", conversation.conversation_id)
