"""Discovery of Claude Code's sessions: everything wired, running until closed."""

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.board import SessionBoard
from sidestage.agents.claude_code.live import RegistryFolder
from sidestage.agents.claude_code.registry import is_registry_file
from sidestage.agents.claude_code.scanning import (
    is_transcript_name,
    list_project_folders,
)
from sidestage.agents.claude_code.transcripts import ClaudeTranscripts
from sidestage.agents.processes import LinuxProcesses, ProcessTable
from sidestage.agents.watching import FolderWatch, Notifier, open_notifier
from sidestage.ids import HostId, SessionId, TerminalId
from sidestage.projects.model import Projects
from sidestage.sessions.index import NoTranscriptStore, TranscriptStore

LOOK_SECONDS: Final = 5.0
"""How often processes are looked at without any event: 5 ms of work each."""
RESCAN_SECONDS: Final = 60.0
"""How often every file is looked at again, for what a watch may have missed."""
SAVE_SECONDS: Final = 5.0
"""How often changed index rows are written; what is not is folded again."""
RESTART_SECONDS: Final = 1.0
"""Between a bug's log line and the next try, so that the log is not flooded."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Discovery:
    """Sessions and transcripts of some config dirs. Made by `open_discovery`."""

    sessions: SessionBoard
    transcripts: ClaudeTranscripts
    config_dirs: tuple[Path, ...]
    watch: FolderWatch = field(repr=False)

    def add_terminal(
        self,
        terminal_id: TerminalId,
        folder: Path,
        *,
        config_dir: Path | None = None,
        directory: str | None = None,
        session_id: SessionId | None = None,
    ) -> None:
        """Read the private registry *folder* of a terminal that starts in *directory*.

        An entry there speaks only for the terminal's own session. *session_id* is what
        the terminal's agent was started on.
        """
        home = config_dir or self.config_dirs[0]
        self.sessions.add_terminal(
            terminal_id,
            RegistryFolder(folder, home, terminal_id, directory),
            session_id,
        )
        self.watch.refresh()

    def remove_terminal(self, terminal_id: TerminalId) -> None:
        """Stop reading a terminal's private registry folder."""
        self.sessions.remove_terminal(terminal_id)
        self.watch.refresh()


@asynccontextmanager
async def open_discovery(
    *,
    config_dirs: Iterable[Path],
    machine_secret: bytes,
    host_id: HostId,
    projects: Projects,
    store: TranscriptStore | None = None,
    table: ProcessTable | None = None,
    notifier: Callable[[list[str]], Notifier] = open_notifier,
) -> AsyncGenerator[Discovery]:
    """Discover the sessions of *config_dirs* until the block ends.

    The list is complete when the block begins; what needs whole transcripts (tokens)
    comes in the background. Folders that do not exist are waited for.
    """
    homes = tuple(dict.fromkeys(config_dirs))
    board = SessionBoard(
        config_dirs=homes,
        machine_secret=machine_secret,
        host_id=host_id,
        projects=projects,
        store=store or NoTranscriptStore(),
        table=table or LinuxProcesses(),
    )
    watch = FolderWatch(
        plan=lambda: _plan(homes, board.registry_folders()),
        is_structural=lambda path: _is_structural(
            path, homes, board.registry_folders()
        ),
        on_health=lambda note: _note_health(board, note),
        open_notifier=notifier,
    )
    feeder = Feeder(board, watch, homes, projects, projects.feed.seq)
    await board.open()
    tasks = [
        asyncio.create_task(_keep_going(name, work))
        for name, work in feeder.works().items()
    ]
    try:
        yield Discovery(
            board, ClaudeTranscripts(board.library, board.find), homes, watch
        )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        board.close()
        await board.library.save()


@dataclass(slots=True)
class Feeder:
    """Brings what changes on the machine to the board."""

    board: SessionBoard
    watch: FolderWatch
    homes: tuple[Path, ...]
    projects: Projects
    projects_seq: int
    """The projects' changes up to here are in the rows."""

    def works(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return what has to run beside each other, each until cancelled."""
        return {
            "watching files": self.follow_files,
            "watching projects": self.follow_projects,
            "looking at processes": self.look_regularly,
            "looking at files": self.rescan_regularly,
            "resolving folders": self.board.resolve_folders,
            "indexing": self.board.library.index,
            "saving the index": self.save_regularly,
        }

    async def follow_files(self) -> None:
        """Take in each change of a file."""
        async with aclosing(self.watch.changes()) as stream:
            async for changes in stream:
                if changes.rescan:
                    await self.board.rescan()
                else:
                    await self.take(changes.paths)

    async def take(self, paths: Iterable[str]) -> None:
        """Take in changes of the files at *paths*."""
        registry_folders = {
            str(folder.path) for folder in self.board.registry_folders()
        }
        projects = {str(home / "projects"): home for home in self.homes}
        registry: list[str] = []
        transcripts: list[tuple[str, Path]] = []
        for path in paths:
            folder, _, name = path.rpartition("/")
            if folder in registry_folders and is_registry_file(name):
                registry.append(path)
            home = projects.get(folder.rpartition("/")[0])
            if home is not None and is_transcript_name(name):
                transcripts.append((path, home))
        if registry:
            await self.board.read_registry(registry)
        if transcripts:
            await self.board.read_transcripts(transcripts)

    async def follow_projects(self) -> None:
        """Compute the rows anew when a project is added, changed or removed."""
        while True:
            await self.projects.feed.wait_beyond(self.projects_seq)
            self.projects_seq = self.projects.feed.seq
            self.board.recompute_all()

    async def look_regularly(self) -> None:
        """Look at processes and registry, as a backstop for events."""
        while True:
            await pause(LOOK_SECONDS)
            await self.board.read_registry()
            await self.board.look_for_agents()

    async def rescan_regularly(self) -> None:
        """Look at all files, as a backstop for events."""
        while True:
            await pause(RESCAN_SECONDS)
            await self.board.rescan()
            await self.board.recheck_folders()

    async def save_regularly(self) -> None:
        """Write changed index rows."""
        while True:
            await pause(SAVE_SECONDS)
            await self.board.library.save()


async def pause(seconds: float) -> None:
    """Wait between two regular looks; there is no event to wait for."""
    await asyncio.sleep(seconds)


async def _keep_going(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run *work* until cancelled; after a bug in it, say so and start it again."""
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 the top of a task: discovery goes on
            # Not the error's own text: a path in it names a conversation.
            where = "".join(traceback.format_tb(error.__traceback__))
            _log.error("%s failed: %s\n%s", name, type(error).__name__, where)
        await pause(RESTART_SECONDS)


def _note_health(board: SessionBoard, note: str | None) -> None:
    board.is_watching = note is None
    board.watch_notes = () if note is None else (note,)


def _plan(
    homes: Iterable[Path], registry_folders: Iterable[RegistryFolder]
) -> frozenset[Path]:
    """Return the folders to watch. Blocks."""
    folders = {folder.path for folder in registry_folders}
    for home in homes:
        projects = home / "projects"
        folders |= {home, projects, *list_project_folders(projects)}
    return frozenset(folders)


def _is_structural(
    path: str, homes: Iterable[Path], registry_folders: Iterable[RegistryFolder]
) -> bool:
    """Tell whether a change at *path* may make or take away a folder to watch."""
    changed = Path(path)
    if any(changed.parent == home / "projects" for home in homes):
        return True
    targets = [home / "projects" for home in homes]
    targets += [folder.path for folder in registry_folders]
    return any(changed == target or changed in target.parents for target in targets)
