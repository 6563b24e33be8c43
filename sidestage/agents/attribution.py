"""Does a process run inside an agent? Asked of who comes over the control socket.

It stops an agent that helpfully tries to pair a device or to register a folder; it does
not stop a program that means to get around it, for that one can detach from its
parents (docs/security.md, "Self-approval").
"""

from collections.abc import Callable
from typing import Final

import psutil

AGENT_PROGRAMS: Final = frozenset({"claude", "codex"})
"""What the agents' processes are called (`/proc/<pid>/comm`)."""
_MARKS: Final = ("CLAUDECODE", "CODEX_")
"""Variables an agent sets for the programs it runs."""


def runs_inside_agent(pid: int, *, is_registered: Callable[[int], bool]) -> bool:
    """Tell whether *pid* has an agent among its parents, or an agent's environment.

    *is_registered* tells whether a pid is in an agent's own list of live processes.
    A process that cannot be looked at is taken for the owner's.
    """
    try:
        process = psutil.Process(pid)
        if any(name.startswith(_MARKS) for name in process.environ()):
            return True
        return any(
            is_registered(parent.pid) or parent.name() in AGENT_PROGRAMS
            for parent in process.parents()
        )
    except psutil.Error:
        return False
