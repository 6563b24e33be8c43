"""What may be a project, and whether a project's folder is still the one registered.

A project's folder goes into a sandbox read-write, and what lies in it is in an agent's
hands. So it must not hold the home, our state, an agent's state, or the hidden folders
of the home where keys and tokens lie. Paths here are real paths: no link is left.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.errors import ProjectChanged, ProjectFolderMissing, ProjectTooWide

_CHANGED: Final = (
    "The folder at {path} is not the one that was registered. "
    "Remove the project and register it again if that is right."
)


MASKED_FOLDERS: Final = (
    "/sys",
    "/run",
    "/tmp",  # noqa: S108 - hidden, not used
    "/var/tmp",  # noqa: S108 - hidden, not used
    "/home",
    "/root",
    "/mnt",
    "/media",
)
"""What every sandbox hides besides the home: a read-only bind leaves every socket
connectable, and these are where they lie. A folder in one may be a project."""
_SYSTEM_FOLDERS: Final = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/sbin",
    "/usr",
    "/var",
)
_WHOLE_FOLDERS: Final = tuple(map(Path, (*MASKED_FOLDERS, *_SYSTEM_FOLDERS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The folders no project may contain or lie in; all real paths."""

    home: Path
    state_dir: Path
    agent_dirs: tuple[Path, ...] = ()
    """Agents' state folders, wherever they are (`CLAUDE_CONFIG_DIR`)."""

    @classmethod
    def of(
        cls, *, home: Path, state_dir: Path, agent_dirs: tuple[Path, ...] = ()
    ) -> "Bounds":
        """Return the bounds with every link resolved (reads the file system)."""
        return cls(
            home=home.resolve(),
            state_dir=state_dir.resolve(),
            agent_dirs=tuple(folder.resolve() for folder in agent_dirs),
        )

    def check(self, path: Path) -> None:
        """Return if the real *path* may be a project, else raise `ProjectTooWide`."""
        if path == Path(path.anchor):
            raise ProjectTooWide("The whole file system is no project.")
        if self.home.is_relative_to(path):
            raise ProjectTooWide("The home folder, or one above it, is no project.")
        if any(folder.is_relative_to(path) for folder in _WHOLE_FOLDERS):
            raise ProjectTooWide(
                "A folder of the system is no project; one in it may be."
            )
        if _touches(path, self.state_dir):
            raise ProjectTooWide(
                "A project may neither contain Sidestage's state folder nor lie in it."
            )
        if any(_touches(path, folder) for folder in self.agent_dirs):
            raise ProjectTooWide(
                "A project may neither contain an agent's state folder nor lie in it."
            )
        if self._lies_in_hidden_folder(path):
            raise ProjectTooWide(
                "A hidden folder of the home may hold keys and logins, "
                "so neither it nor a folder in it is a project."
            )

    def _lies_in_hidden_folder(self, path: Path) -> bool:
        """Tell whether *path* is, or lies in, a hidden folder directly in the home."""
        if not path.is_relative_to(self.home):
            return False
        return path.relative_to(self.home).parts[0].startswith(".")


def _touches(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder) or folder.is_relative_to(path)


@dataclass(frozen=True, slots=True)
class FolderIdentity:
    """What is at a path now."""

    real_path: str
    device: int
    inode: int
    is_folder: bool


def look_at_folder(path: str) -> FolderIdentity | None:
    """Return what is at *path*, links followed; None if nothing is (blocking)."""
    try:
        real = str(Path(path).resolve(strict=True))
        status = os.stat(real)  # noqa: PTH116 - one call, its errors in one place
    except (OSError, RuntimeError):  # RuntimeError: links in a circle (Python 3.11)
        return None
    return FolderIdentity(real, status.st_dev, status.st_ino, Path(real).is_dir())


def check_project(
    path: str,
    device: int,
    inode: int,
    *,
    look: Callable[[str], FolderIdentity | None] = look_at_folder,
) -> None:
    """Return if the folder registered at *path* is still there and the same one.

    A project swapped for a link to `~/.ssh` would be followed into the sandbox.
    Blocking. Raises `ProjectFolderMissing`, `ProjectChanged`.
    """
    found = look(path)
    if found is None or not found.is_folder:
        raise ProjectFolderMissing(f"There is no folder at {path} any more.")
    if (found.real_path, found.device, found.inode) != (path, device, inode):
        raise ProjectChanged(_CHANGED.format(path=path))
