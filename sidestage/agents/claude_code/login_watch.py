"""Keeps the logins of running terminals in step with the owner's, as files change.

Only folders that hold a login are watched, not what is below them: a program inside can
make more folders than the user has watches, and below the owner's lie all transcripts.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.login import LOGIN_NAME
from sidestage.agents.claude_code.private_files import ClaudePrivateFiles
from sidestage.agents.watching import FolderWatch

_log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS: Final = 10.0
"""How often logins are looked at without a watch; one lasts for hours."""


async def watch_logins(files: ClaudePrivateFiles, config_dirs: Sequence[Path]) -> None:
    """Bring logins in step whenever one changes, until cancelled.

    *config_dirs* are the state folders in use (`~/.claude`, further accounts). Looks
    once at the start, for what changed while nobody watched.
    """
    files.terminals_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    folders = _LoginFolders(files.terminals_dir, frozenset(map(str, config_dirs)))
    watch = FolderWatch(
        plan=folders.find,
        is_structural=folders.may_change,
        on_health=_tell,
        poll_seconds=LOOK_AGAIN_SECONDS,
    )
    async with aclosing(watch.changes()) as changes:
        async for change in changes:
            if change.rescan or any(map(_is_login, change.paths)):
                await _sync(files)


@dataclass(frozen=True, slots=True)
class _LoginFolders:
    """The folders in which logins lie: each running terminal's, and the owner's."""

    terminals_dir: Path
    owner_names: frozenset[str]

    def find(self) -> frozenset[Path]:
        """Return the folders to watch, made or not; it blocks."""
        # Of a terminal in preparation the parent is watched until `config` is there.
        terminals = (folder / "config" for folder in self.terminals_dir.glob("*/"))
        return frozenset((self.terminals_dir, *terminals, *map(Path, self.owner_names)))

    def may_change(self, path: str) -> bool:
        """Tell whether a change of *path* may have made or ended such a folder."""
        # Of strings: a program inside can cause thousands of changes a second.
        parent = path.rpartition("/")[0]
        above = parent.rpartition("/")[0]
        return str(self.terminals_dir) in (parent, above) or path in self.owner_names


def _tell(trouble: str | None) -> None:
    if trouble is not None:
        _log.warning("Logins: %s", trouble)


def _is_login(path: str) -> bool:
    return path.endswith("/" + LOGIN_NAME)


async def _sync(files: ClaudePrivateFiles) -> None:
    try:
        await asyncio.to_thread(files.sync_logins)
    except OSError as error:
        # A full disk or a terminal that ended just now; the next change tries again.
        _log.warning("logins were not brought in step: %s", error.strerror)
