"""What the host asks of the parts beside it."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from sidestage.terminals.model import CreateTerminal, SandboxReport


@dataclass(frozen=True, slots=True)
class Confined:
    """A command that starts a program inside its sandbox."""

    argv: tuple[str, ...]
    """What to execute instead of the program. It holds no id and no secret."""
    pass_fds: tuple[int, ...]
    """Descriptors the command needs under these very numbers. They are inheritable."""
    report: SandboxReport


class Confiner(Protocol):
    """Puts a sandbox around a program."""

    def confine(self, request: CreateTerminal) -> AbstractContextManager[Confined]:
        """Make the command for *request*; spawn it inside the block.

        The descriptors close with the block. Spawn from the thread that lives as long
        as the host does: the sandbox dies with the *thread* that started it. The
        child's environment is *request.environment*, handed to the spawn by the caller.
        Blocks for a few milliseconds; the first call tries the sandbox out (tens of
        milliseconds).

        Raises `SandboxUnavailable`, `AgentNotFound`, `ProjectChanged`,
        `ProjectFolderMissing`.
        """
