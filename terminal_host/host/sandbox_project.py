"""Which folders of a project go into its sandbox, and how they are held meanwhile.

A project is in agents' hands, also while a sandbox for it is being made: a program in
one terminal can swap `.git` for a link to `~/.ssh` just as another terminal starts, and
bubblewrap follows links. So each folder is opened first, without following a link, and
bubblewrap gets the open folder (`--bind-fd`) instead of a path that may change.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sidestage.errors import ProjectChanged, ProjectFolderMissing
from sidestage.terminals.model import SandboxProfile


@dataclass(frozen=True, slots=True)
class ProjectMount:
    """One folder of a project, mounted at its own path."""

    folder: Path
    writable: bool
    descriptor: int | None = None
    """The folder, held open; None mounts what the path leads to."""

    def options(self) -> tuple[str, str, str]:
        """Return bubblewrap's words for it."""
        kind = "--bind" if self.writable else "--ro-bind"
        if self.descriptor is None:
            return (kind, str(self.folder), str(self.folder))
        return (f"{kind}-fd", str(self.descriptor), str(self.folder))


def list_mounts(profile: SandboxProfile) -> tuple[ProjectMount, ...]:
    """Return what to mount of the project, in order.

    Binding a *file* inside read-only would protect nothing: the agent renames its
    parent and makes a new one. A mount point itself cannot be renamed (EBUSY): hence
    whole folders, and `.git` on itself so that its hooks stay where they are. A link
    is never mounted.
    """
    project = ProjectMount(profile.project, not profile.project_read_only)
    if profile.project_read_only:
        return (project,)
    git = profile.project / ".git"
    further = (
        ProjectMount(profile.project / ".claude", writable=False),
        ProjectMount(git, writable=True),
        *((ProjectMount(git / "hooks", writable=False),) if _is_folder(git) else ()),
    )
    return (project, *(mount for mount in further if _is_folder(mount.folder)))


def hold_mounts(profile: SandboxProfile, stack: ExitStack) -> tuple[ProjectMount, ...]:
    """Return the mounts, their folders held open by descriptors that *stack* closes.

    Raises `ProjectFolderMissing`, or `ProjectChanged` when a link leads to the project
    now. Another folder that became a link meanwhile is left out.
    """
    return tuple(_hold(list_mounts(profile), stack))


def _hold(mounts: tuple[ProjectMount, ...], stack: ExitStack) -> Iterator[ProjectMount]:
    for index, mount in enumerate(mounts):
        descriptor = _open_folder(mount.folder)
        if descriptor is not None:
            stack.callback(os.close, descriptor)
            # What is held must be what the path said, not what a link on it led to.
            if os.readlink(f"/proc/self/fd/{descriptor}") == str(mount.folder):  # noqa: PTH115 - no path
                os.set_inheritable(descriptor, True)  # noqa: FBT003 - its signature
                yield ProjectMount(mount.folder, mount.writable, descriptor)
                continue
        if index == 0:
            _refuse(mount.folder)


def _refuse(project: Path) -> None:
    if not project.exists():
        raise ProjectFolderMissing(f"There is no folder at {project} any more.")
    raise ProjectChanged(f"The path {project} leads through a link now.")


def _open_folder(path: Path) -> int | None:
    """Open the folder itself; None if there is none, or a link in its place."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except OSError:
        return None


def _is_folder(path: Path) -> bool:
    """Tell whether *path* is a folder and no link."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False
