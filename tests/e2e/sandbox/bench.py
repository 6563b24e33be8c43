"""A home with secrets, a project, a state folder, and programs sandboxed among them."""

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sidestage.ids import TerminalId
from sidestage.terminals.environment import child_environment
from sidestage.terminals.model import AgentFiles, CreateTerminal, SandboxProfile
from terminal_host.host.sandbox import BubblewrapConfiner
from tests.e2e.pty_program import PtyProgram

PROBE = Path(__file__).with_name("probe_program.py")
Try = tuple[str, str]


def require_ordinary_user() -> None:
    """Fail where the test would prove nothing: root is not confined."""
    if os.geteuid() == 0:
        raise AssertionError(
            "Run the sandbox's tests as an ordinary user, not as root."
        )


class Bench:
    """What stands around a sandbox, below *root*, and the way into it."""

    def __init__(self, root: Path) -> None:
        require_ordinary_user()
        self.root = root.resolve()
        self.home = self.root / "home"
        self.project = self.home / "work" / "project"
        self.state = self.home / ".local/state/sidestage"
        for folder in (self.project, self.state, self.home / ".ssh"):
            folder.mkdir(parents=True)
        (self.home / ".ssh/id_ed25519").write_text("secret")
        (self.state / "admin.token").write_text("secret")
        (self.state / "sidestage.db").write_text("secret")
        shutil.copy(PROBE, self.project / "probe.py")
        self.confiner = BubblewrapConfiner()

    def profile(self, **changes: Any) -> SandboxProfile:
        """Return the profile of a shell in the project, with *changes*."""
        values: dict[str, Any] = {
            "project": self.project,
            "project_read_only": False,
            "home": self.home,
            "state_dir": self.state,
            "program_dirs": (),
            "agent": None,
        }
        return SandboxProfile(**{**values, **changes})

    def request(
        self, argv: Sequence[str], profile: SandboxProfile | None = None
    ) -> CreateTerminal:
        """Return what the host would be asked for."""
        return CreateTerminal(
            terminal_id=TerminalId("terminal:bench"),
            argv=tuple(argv),
            environment=self.environment(),
            directory=self.project,
            cols=80,
            rows=24,
            sandbox=profile or self.profile(),
        )

    def environment(self, added: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the child's environment, from a server's that has little."""
        parent = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        return child_environment(parent, added=added or {})

    def run(
        self, argv: Sequence[str], profile: SandboxProfile | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run *argv* inside to its end, without a terminal."""
        request = self.request(argv, profile)
        with self.confiner.confine(request) as confined:
            return subprocess.run(
                confined.argv,
                pass_fds=confined.pass_fds,
                env=request.environment,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )

    @contextmanager
    def start(
        self, argv: Sequence[str], profile: SandboxProfile | None = None
    ) -> Iterator[PtyProgram]:
        """Run *argv* inside, in a PTY."""
        request = self.request(argv, profile)
        with self.confiner.confine(request) as confined:
            program = PtyProgram(
                confined.argv,
                directory=self.root,
                environment=request.environment,
                pass_fds=confined.pass_fds,
            )
        with program:
            yield program

    def try_inside(
        self, tries: Sequence[Try], profile: SandboxProfile | None = None
    ) -> dict[Try, int]:
        """Return the errno of each try made inside."""
        done = self.run(
            ["python3", str(self.project / "probe.py"), json.dumps(tries)], profile
        )
        assert done.returncode == 0, done.stderr
        return dict(zip(tries, json.loads(done.stdout), strict=True))

    def try_outside(self, tries: Sequence[Try]) -> dict[Try, int]:
        """Return the errno of each try made outside: the proof that a try can work."""
        done = subprocess.run(
            ["/usr/bin/python3", str(PROBE), json.dumps(tries)],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return dict(zip(tries, json.loads(done.stdout), strict=True))


@contextmanager
def listening_in(folder: Path, name: str) -> Iterator[None]:
    """Listen on a socket in *folder*, however long its path is; remove it after."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        with listening(f"/proc/self/fd/{descriptor}/{name}"):
            yield
    finally:
        (folder / name).unlink()
        os.close(descriptor)


@contextmanager
def listening(address: str) -> Iterator[str]:
    """Listen on the Unix socket *address* (a NUL in front makes it abstract)."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        yield address


@contextmanager
def counting(path: Path) -> Iterator[list[str]]:
    """Listen at *path*; the list grows by its name for each caller, who is hung up on.

    The list is complete for callers that have been told of the hang-up.
    """
    calls: list[str] = []

    def take(server: socket.socket) -> None:
        with suppress(OSError):  # it was shut down
            while True:
                caller, _ = server.accept()
                calls.append(path.name)
                caller.close()

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        taking = threading.Thread(target=take, args=(server,))
        taking.start()
        try:
            yield calls
        finally:
            server.shutdown(socket.SHUT_RDWR)
            taking.join()
            path.unlink()


def claude_files(bench: Bench) -> AgentFiles:
    """Lay out the agent's files of a terminal by hand, as the host gets them."""
    config = bench.home / ".claude"
    private = bench.state / "terminals/terminal:bench"
    for folder in ("config", "sessions", "hook"):
        (private / folder).mkdir(parents=True)
    (private / "claude.json").write_text("{}")
    transcripts = config / "projects/-project"
    transcripts.mkdir(parents=True)
    (config / "settings.json").write_text("{}")
    (config / "commands").mkdir()
    return AgentFiles(
        config_dir=config,
        transcripts=transcripts,
        private_dir=private,
        config_file=bench.home / ".claude.json",
        read_only=(config / "settings.json", config / "commands"),
    )
