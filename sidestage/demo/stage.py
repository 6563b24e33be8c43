"""The scratch home of a demonstration, and the agents that act in it.

Agents run in PTYs of ours, as if in terminals of a person's: for Sidestage they are
outside sessions. All of it ends, and the folder goes, when the block ends.
"""

import asyncio
import json
import os
import shutil
import signal
import tempfile
import termios
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.demo.agent import install_scripted_agent
from sidestage.demo.scenes import DIALOG_TESTS, FOLDERS, SCENES, Scene, read_script
from sidestage.errors import StateFolderUnsafe
from sidestage.state import SOCKET_PATH_LIMIT_BYTES

FOLDER_PREFIX: Final = "sidestage-demo-"
READ_BYTES: Final = 65_536
LOOK_SECONDS: Final = 0.25
"""Between two looks at what an agent's registry file says: the file is all a person's
stand-in can see of it."""
TYPING_SECONDS: Final = 0.4
"""From a prompt to Enter: an agent takes both at once for a paste."""
ENDING_SECONDS: Final = 3.0
"""What an agent gets to leave before it is killed."""
COLUMNS: Final = 100
ROWS: Final = 40


@dataclass(frozen=True, slots=True)
class Stage:
    """A scratch home with the scripted agent installed."""

    root: Path

    @property
    def home(self) -> Path:
        """The home of agents and server."""
        return self.root / "home"

    @property
    def state_dir(self) -> Path:
        """The server's state folder."""
        return self.root / "state"

    @property
    def programs(self) -> Path:
        """The folder with `claude`."""
        return self.home / ".local" / "bin"

    def environment(self) -> dict[str, str]:
        """Return the whole environment of server and agents."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self.programs}:{os.environ.get('PATH', os.defpath)}",
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SIDESTAGE_STATE_DIR": str(self.state_dir),
        }

    def folder(self, name: str) -> Path:
        """Return a project's folder."""
        return self.home / name

    def build(self) -> None:
        """Make folders, trust and programs. Blocking."""
        self.home.mkdir(mode=0o700)
        install_scripted_agent(self.programs, script=read_script())
        for name in FOLDERS:
            folder = self.folder(name)
            folder.mkdir()
            tests = folder / "run-tests"
            tests.write_text(DIALOG_TESTS)
            tests.chmod(0o755)
        trust = {
            str(self.folder(name).resolve()): {"hasTrustDialogAccepted": True}
            for name in FOLDERS
        }
        (self.home / ".claude").mkdir(mode=0o700)
        (self.home / ".claude.json").write_text(json.dumps({"projects": trust}))


@asynccontextmanager
async def open_stage() -> AsyncGenerator[Stage]:
    """Make a stage in a fresh folder; it is removed when the block ends.

    Raises `StateFolderUnsafe` if the folder lies too deep for Unix sockets.
    """
    root = await asyncio.to_thread(tempfile.mkdtemp, prefix=FOLDER_PREFIX)
    stage = Stage(Path(root))
    try:
        _check_depth(stage.state_dir / "control.sock")
        await asyncio.to_thread(stage.build)
        yield stage
    finally:
        await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)


def _check_depth(socket: Path) -> None:
    if len(os.fsencode(socket)) > SOCKET_PATH_LIMIT_BYTES:
        raise StateFolderUnsafe(
            f"The folder for temporary files, {tempfile.gettempdir()}, has too long a "
            "path for Unix sockets. Set TMPDIR to a shorter one."
        )


async def act(stage: Stage) -> None:
    """Let every scene play until cancelled; then no agent of theirs runs."""
    async with asyncio.TaskGroup() as tasks:
        for scene in SCENES:
            tasks.create_task(_play(stage, scene), name=scene.prompts[0])


async def _play(stage: Stage, scene: Scene) -> None:
    await asyncio.sleep(scene.starts_after)
    while True:
        async with _open_agent(stage, scene) as agent:
            await agent.go_through(scene)
        if not scene.repeats:
            return
        await asyncio.sleep(scene.pause)


class Agent:
    """One agent in a PTY, and the hands that type to it."""

    def __init__(
        self, process: asyncio.subprocess.Process, terminal: int, registry: Path
    ) -> None:
        self._process = process
        self._terminal = terminal
        self._registry = registry
        asyncio.get_running_loop().add_reader(terminal, self._drain)

    async def go_through(self, scene: Scene) -> None:
        """Type the prompts, each when the agent is idle; stay or leave as it says."""
        while True:
            for prompt in scene.prompts:
                await self._until_idle(scene)
                await self._type(prompt)
                await self._until_idle(scene)
                await asyncio.sleep(scene.pause)
            if scene.leaves_after is not None:
                await asyncio.sleep(scene.leaves_after)
                await self._type("/exit")
                return
            if not scene.repeats:
                await asyncio.Event().wait()

    async def _type(self, text: str) -> None:
        os.write(self._terminal, text.encode())
        await asyncio.sleep(TYPING_SECONDS)
        os.write(self._terminal, b"\r")
        await asyncio.sleep(TYPING_SECONDS)

    async def _until_idle(self, scene: Scene) -> None:
        waited = 0.0
        while (status := self._status()) != "idle":
            await asyncio.sleep(LOOK_SECONDS)
            waited = waited + LOOK_SECONDS if status == "waiting" else 0.0
            if scene.patience is not None and waited >= scene.patience:
                os.write(self._terminal, scene.key.encode())
                waited = 0.0

    def _status(self) -> str | None:
        try:
            entry: Mapping[str, str] = json.loads(self._registry.read_text())
        except (OSError, ValueError):
            return None  # it is starting, or writing just now
        return entry.get("status")

    def _drain(self) -> None:
        try:
            data = os.read(self._terminal, READ_BYTES)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._terminal)

    async def end(self) -> None:
        """End the agent, and reap it."""
        asyncio.get_running_loop().remove_reader(self._terminal)
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGHUP)
        try:
            async with asyncio.timeout(ENDING_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        finally:
            os.close(self._terminal)


@asynccontextmanager
async def _open_agent(stage: Stage, scene: Scene) -> AsyncGenerator[Agent]:
    mode = () if scene.mode is None else ("--permission-mode", scene.mode)
    terminal, inner = os.openpty()
    termios.tcsetwinsize(inner, (ROWS, COLUMNS))
    os.set_blocking(terminal, False)
    try:
        process = await asyncio.create_subprocess_exec(
            stage.programs / "claude",
            *mode,
            cwd=stage.folder(scene.folder),
            env=stage.environment(),
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
    finally:
        os.close(inner)
    registry = stage.home / ".claude" / "sessions" / f"{process.pid}.json"
    agent = Agent(process, terminal, registry)
    try:
        yield agent
    finally:
        await agent.end()
