"""One program under a pseudo-terminal: start it, read, write, size, let go."""

import errno
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ptyprocess import PtyProcess

from sidestage.errors import AgentNotFound, StartFailed

READ_BYTES: Final = 65536
"""The kernel seldom hands out more than 4 KiB a read; the rest is headroom."""

SHORT_READ_BYTES: Final = 1024
"""A first read that gave so little was a key's echo: to ask for more would be in vain,
and if not, the loop comes back."""

_CAUGHT = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class PtyProgram:
    """A running program and the master side of its terminal. Its owner closes it."""

    def __init__(self, process: PtyProcess) -> None:
        self._process = process
        self.pid: int = process.pid
        self.fd: int = process.fd
        os.set_blocking(self.fd, False)

    def read_turn(self, limit_bytes: int) -> tuple[bytes, bool]:
        """Read until there seems to be nothing more or *limit_bytes* are there.

        Return the bytes and whether the terminal has hung up.
        """
        pieces: list[bytes] = []
        count = 0
        try:
            while count < limit_bytes and not 0 < count < SHORT_READ_BYTES:
                piece = os.read(self.fd, READ_BYTES)
                if not piece:
                    return b"".join(pieces), True
                pieces.append(piece)
                count += len(piece)
        except BlockingIOError:
            pass
        except OSError as error:
            # Linux says EIO once the last process has closed the terminal (pty(7)).
            if error.errno != errno.EIO:
                raise
            return b"".join(pieces), True
        return pieces[0] if len(pieces) == 1 else b"".join(pieces), False

    def write(self, data: bytes | memoryview) -> int:
        """Write what the terminal takes now; return how many bytes that was."""
        try:
            return os.write(self.fd, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return len(data)  # hung up: nobody is left to read it

    def resize(self, cols: int, rows: int) -> None:
        """Set the size; the kernel tells the foreground programs by SIGWINCH."""
        self._process.setwinsize(rows, cols)

    def close(self) -> None:
        """Close the master side; the kernel hangs up what is left of the session."""
        if self._process.closed:
            return
        # Not its own close(): that one sleeps, and waits for the child.
        self._process.fileobj.close()
        self._process.fd = -1
        self._process.closed = True


def spawn(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: Path,
    cols: int,
    rows: int,
    pass_fds: Sequence[int] = (),
) -> PtyProgram:
    """Start *argv* in *directory* with exactly that environment, under a fresh PTY.

    Call it from the main thread only: a sandbox dies with the *thread* that started it
    (prctl(2), PR_SET_PDEATHSIG). Raises `AgentNotFound`, `StartFailed`.
    """
    program = shutil.which(argv[0], path=environment.get("PATH", os.defpath))
    if program is None:
        raise AgentNotFound(f"There is no program {Path(argv[0]).name} to run.")

    def prepare() -> None:
        # Whatever the host ignores or blocks would be inherited: a shell that ignores
        # SIGHUP survives its terminal and spins on EIO.
        for number in _CAUGHT:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # Here, because ptyprocess does not report a chdir of its own that fails.
        os.chdir(directory)

    try:
        process = PtyProcess.spawn(
            [program, *argv[1:]],
            env=dict(environment),
            preexec_fn=prepare,
            dimensions=(rows, cols),
            pass_fds=pass_fds,
        )
    except (OSError, ValueError) as error:
        raise StartFailed(f"The program could not be started: {error}") from error
    return PtyProgram(process)
