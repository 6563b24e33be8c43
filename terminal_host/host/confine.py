"""The launcher of a sandbox: gives up rights, then becomes bubblewrap.

The host runs this file alone (`python -I -S`), so it imports the standard library only.
Arguments: the number of a descriptor that holds the command (each part ends in a NUL:
an argument list is readable by every user of the machine, a descriptor is not), what to
do with signals (`scoped`, `deaf`, both joined by a comma, or `-`), and the descriptors
the command needs.

Landlock's scopes (Linux 6.12, ABI 6) keep whatever runs below from signalling processes
outside of the sandbox and from reaching abstract Unix sockets (landlock(7)). They must
be taken before bubblewrap: its processes then belong to the same domain.

`deaf` makes bubblewrap ignore what the keyboard sends. Without a PID namespace its
outer process waits in the terminal's foreground group, and would die of the Ctrl-C that
the program inside catches, taking the program along. The command itself must give
these signals back to the program.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterable

LANDLOCK_SCOPES_ABI = 6
"""The first Landlock version that can confine signals and abstract sockets."""

# The same numbers on every machine that has these calls (unistd.h).
_SYS_LANDLOCK_CREATE_RULESET = 444
_SYS_LANDLOCK_RESTRICT_SELF = 446
_CREATE_RULESET_VERSION = 1
_SCOPE_ABSTRACT_UNIX_SOCKET = 1
_SCOPE_SIGNAL = 2
_PR_SET_NO_NEW_PRIVS = 38

KEYBOARD_SIGNALS = (signal.SIGINT, signal.SIGQUIT)
"""Not SIGTSTP: nothing of another group waits in this session, so it stops nobody."""

_EXIT_NOT_CONFINED = 126
"""As a shell says "found, but cannot be executed"."""


class _RulesetAttributes(ctypes.Structure):
    """`struct landlock_ruleset_attr` of ABI 6."""

    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


def landlock_abi() -> int:
    """Return the kernel's Landlock version, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(
        _SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _CREATE_RULESET_VERSION
    )
    return max(0, int(version))


def confine_signals() -> None:
    """Keep this process and its children from signalling others; raises OSError.

    No file rights are handled: bubblewrap has yet to mount.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = _RulesetAttributes(scoped=_SCOPE_ABSTRACT_UNIX_SOCKET | _SCOPE_SIGNAL)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ruleset = libc.syscall(
        _SYS_LANDLOCK_CREATE_RULESET, ctypes.byref(attributes), size, 0
    )
    _check(ruleset)
    try:
        _check(libc.syscall(_SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def give_up_privileges() -> None:
    """Make set-uid programs powerless from here on; raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def read_command(descriptor: int) -> list[str]:
    """Read the command's parts from *descriptor* and close it."""
    with os.fdopen(descriptor, "rb") as source:
        return [os.fsdecode(part) for part in source.read().split(b"\0")[:-1]]


def _drop_descriptors(keep: Iterable[int]) -> None:
    """Let no descriptor but the standard ones and *keep* reach the command."""
    wanted = {0, 1, 2, *keep}
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - starts without pathlib
        if int(name) not in wanted:
            try:
                os.set_inheritable(int(name), False)  # noqa: FBT003 - its signature
            except OSError:  # the descriptor of the listing itself, closed by now
                continue


def main(arguments: list[str]) -> int:
    """Confine this process and become the command; return only on failure."""
    command_descriptor, signals, *kept = arguments
    keep = [int(number) for number in kept]
    try:
        command = read_command(int(command_descriptor))
        give_up_privileges()
        if "scoped" in signals:
            confine_signals()
        if "deaf" in signals:
            for number in KEYBOARD_SIGNALS:
                signal.signal(number, signal.SIG_IGN)
        _drop_descriptors(keep)
        os.execv(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        print(f"sidestage: the sandbox did not start: {error}", file=sys.stderr)
    return _EXIT_NOT_CONFINED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
