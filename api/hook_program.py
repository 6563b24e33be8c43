"""Where the hook program lies, and how each kind of agent starts it."""

import sys
from pathlib import Path
from typing import Final

import sidestage
from sidestage.agents.claude_code.hook_settings import HookCommand
from sidestage.projects.bounds import MASKED_FOLDERS
from sidestage.settings import Settings
from sidestage.terminals.environment import HOOK_PROGRAM_INSIDE, HOOK_SOCKET_INSIDE

HOOK_PROGRAM: Final = (
    Path(sidestage.__file__).resolve().parents[1] / "sidestage_hook.py"
)


def installed_command(settings: Settings) -> HookCommand:
    """Return the command for the owner's own agents, in their settings."""
    return HookCommand(
        python=Path(sys.executable),
        program=HOOK_PROGRAM,
        socket=settings.hook_socket,
        spool=settings.hook_spool,
    )


def terminal_command(settings: Settings) -> HookCommand:
    """Return the command for agents in our terminals; their socket is a variable."""
    return HookCommand(
        python=python_inside() if settings.sandbox else Path(sys.executable),
        program=HOOK_PROGRAM_INSIDE if settings.sandbox else HOOK_PROGRAM,
        socket=HOOK_SOCKET_INSIDE,
        yields=False,
    )


def python_inside() -> Path:
    """Return our interpreter by a path that needs no virtual environment."""
    return Path(sys.executable).resolve()


def python_folders(home: Path) -> tuple[Path, ...]:
    """Return what a sandbox must show for the interpreter to run in it."""
    prefix = Path(sys.base_prefix).resolve()
    masked = [home.resolve(), *(Path(it).resolve() for it in MASKED_FOLDERS)]
    if home.resolve().is_relative_to(prefix):
        return ()  # it would show the home: then there are no hooks inside
    return (prefix,) if any(prefix.is_relative_to(it) for it in masked) else ()
