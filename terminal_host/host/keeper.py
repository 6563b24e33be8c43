"""Starts a sandbox's program so that all it ever starts can be ended at one blow.

A process that forks, ends and leaves its child to go on the same way is gone before it
can be looked up and signalled. `kill(-1)` does not look anything up: the kernel walks
its list under the lock that a fork needs too, so no child slips through (measured: a
chain that forks every 150 µs, and eight of them, end with the first call). It reaches
whatever the caller may signal, so the caller must be shut in with the sandbox: a thread
in a Landlock domain of its own (landlock(7): a domain is a thread's, and whatever it
starts inherits it) may signal the processes it started, theirs, and nothing else. The
launcher takes a second domain below this one, so that the sandbox cannot signal the
thread.
"""

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from sidestage.errors import SandboxUnavailable
from sidestage.terminals.model import CreateTerminal
from terminal_host.host import confine
from terminal_host.host.ports import Confined
from terminal_host.host.pty import PtyProgram, spawn

KILL_CALLS: Final = 3
"""One is enough; the others are for a process that the kernel was still making."""

Answer = TypeVar("Answer")


class SandboxKeeper:
    """The thread that started one terminal's program. Its owner closes it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(
            1, thread_name_prefix="keeper", initializer=_shut_in
        )

    def start(self, spawn: Callable[[], Answer]) -> Answer:
        """Return what *spawn* does, called in the thread; blocks until it is done.

        Raises `SandboxUnavailable` if the thread could not be shut in, and what *spawn*
        raises.
        """
        try:
            return self._thread.submit(spawn).result()
        except RuntimeError as error:  # its initializer failed
            raise SandboxUnavailable(
                "The kernel refused to confine the sandbox's signals."
            ) from error

    def kill(self) -> None:
        """Kill every process that the thread's program started, however it hid."""
        self._thread.submit(_kill_all).result()

    def close(self) -> None:
        """End the thread. What still runs of the sandbox loses its outer process."""
        self._thread.shutdown(wait=False)


def start_program(
    request: CreateTerminal, confined: Confined
) -> tuple[PtyProgram, SandboxKeeper | None]:
    """Start the program, from a keeper's thread if its sandbox can have one.

    Call it from the main thread (see `spawn`, whose errors it raises too).
    """
    start = partial(
        spawn,
        confined.argv,
        environment=request.environment,
        directory=request.directory,
        cols=request.cols,
        rows=request.rows,
        pass_fds=confined.pass_fds,
    )
    if not confined.report.signals_confined:
        return start(), None
    keeper = SandboxKeeper()
    try:
        return keeper.start(start), keeper
    except BaseException:
        # Whatever it was, the caller gets no keeper, so its thread would wait for ever.
        keeper.close()
        raise


def _shut_in() -> None:
    """Let this thread signal nothing but what it starts; raises OSError."""
    confine.give_up_privileges()
    confine.confine_signals()
    _check_confined()


def _check_confined() -> None:
    """Raise `OSError` if the host's parent can be signalled from this thread."""
    parent = os.getppid()
    if parent <= 0:  # outside of our PID namespace; kill(2) would take 0 for a group
        return
    with suppress(PermissionError, ProcessLookupError):
        os.kill(parent, 0)
        raise OSError("the thread's signals are not confined")


def _kill_all() -> None:
    # Again, because the same call outside of a domain would end the owner's session.
    _check_confined()
    with suppress(ProcessLookupError):
        for _ in range(KILL_CALLS):
            os.kill(-1, signal.SIGKILL)
