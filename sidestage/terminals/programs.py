"""Which hidden folders a sandbox must show after all, for programs to work there.

The sandbox's home is empty, and version managers (nvm, mise, uv, native installers)
keep programs in the home; some owners keep them in other folders that a sandbox hides.
Shown, read-only, are the folder of the PATH where a program is found and the folder it
is really installed in.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from sidestage.projects.bounds import MASKED_FOLDERS
from sidestage.terminals.environment import render_git_config

AGENT_PROGRAMS: Final = ("claude", "codex")
COMPANIONS: Final = ("node", "npm", "npx", "git", "python3", "uv", "rg")
"""Programs agents call or are written for, besides themselves."""
GIT_PATIENCE_SECONDS: Final = 5.0
"""`git config` reads two small files; a home on a dead network must not hang us."""


def find_program_dirs(
    programs: Iterable[str], *, path: str, home: Path, listed: Iterable[Path] = ()
) -> tuple[Path, ...]:
    """Return the folders for *programs*, as *path* finds them, and those *listed*.

    Only folders inside *home* or a masked folder count (the rest of the machine is
    visible anyway), each once. A program that is not there is left out, and so is a
    folder that holds the home, or a hidden folder directly in the home: that is where
    secrets lie.
    """
    real_home = home.resolve()
    hidden = [real_home, *(Path(folder).resolve() for folder in MASKED_FOLDERS)]
    found = [
        folder
        for program in programs
        if (place := shutil.which(program, path=path))
        for folder in _folders_of(Path(place).absolute())
    ]
    inside = (f for f in found if any(f.is_relative_to(each) for each in hidden))
    # What the owner lists by hand is the owner's decision; the host still refuses the
    # home itself and everything that holds it.
    chosen = [*(f for f in inside if _is_narrow(f, real_home, hidden)), *listed]
    return tuple(dict.fromkeys(folder for folder in chosen if folder.is_dir()))


def _folders_of(program: Path) -> Iterator[Path]:
    """Yield where *program* is found, each link on the way, and where it ends."""
    yield program.parent.resolve()
    link = program
    for _ in range(MOST_LINKS):
        if not link.is_symlink():
            break
        link = link.parent / link.readlink()
        yield link.parent.resolve()
    yield install_folder(program.resolve())


MOST_LINKS: Final = 40
"""As many as the kernel follows (path_resolution(7))."""


def real_folders(path: str) -> str:
    """Return a `PATH` whose folders are real ones.

    A sandbox shows the folder programs lie in, not the links that lead to it.
    """
    folders = (os.path.realpath(folder) for folder in path.split(":") if folder)
    return ":".join(dict.fromkeys(folders))


def through_real_folder(program: str) -> str:
    """Return the path of *program* through its real folder.

    Its own name stays: version managers put links there that say which one is meant.
    """
    return str(Path(program).parent.resolve() / Path(program).name)


def install_folder(program: Path) -> Path:
    """Return the folder a program's real file needs around it.

    A package of npm has its parts beside it in the outermost `node_modules`; any other
    program is taken to need the folder it lies in.
    """
    for folder in reversed(program.parents):
        if folder.name == "node_modules":
            return folder
    return program.parent


def _is_narrow(folder: Path, home: Path, hidden: list[Path]) -> bool:
    if folder in hidden or home.is_relative_to(folder):
        return False
    if folder.parent == home:
        return not folder.name.startswith(".")
    # Not the whole home of somebody else either.
    return folder.parent != Path("/home")


def read_git_config(environment: dict[str, str]) -> str:
    """Return a git configuration with the owner's name and e-mail; "" without git.

    Blocks while it runs git.
    """
    return render_git_config(
        _ask_git("user.name", environment), _ask_git("user.email", environment)
    )


def _ask_git(key: str, environment: dict[str, str]) -> str | None:
    try:
        done = subprocess.run(
            ["git", "config", "--global", "--get", key],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GIT_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
