"""How to write down a command of ours, so that it works where it is read."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from sidestage.settings import Settings, default_state_dir

PROGRAM: Final = "sidestage"


def own_name(settings: Settings) -> str:
    """Return `sidestage` if that is what the PATH finds, else where we are."""
    beside = Path(sys.executable).with_name(PROGRAM)
    if not beside.is_file():
        return f"{shlex.quote(sys.executable)} -m {PROGRAM}"
    found = shutil.which(PROGRAM, path=settings.path)
    if found is not None and Path(found).resolve() == beside.resolve():
        return PROGRAM
    return shlex.quote(str(beside))


def write_command(settings: Settings, words: str) -> str:
    """Return the command line that runs *words* on the same server.

    It names the state folder only if the command would not find it by itself.
    """
    command = f"{own_name(settings)} {words}"
    if settings.state_dir == default_state_dir(settings.environment):
        return command
    return f"{command} --state-dir {shlex.quote(str(settings.state_dir))}"
