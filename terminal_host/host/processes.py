"""Which processes belong to a terminal, and how all of them are ended.

A process is named by its pid *and* its start time, so that a pid that was given out
anew is never signalled. The host is a sub-reaper (prctl(2)): what a terminal's programs
leave behind, in a session of its own or not, becomes a child of the host.
"""

import ctypes
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HANG_UP_PATIENCE_SECONDS: Final = 1.0
"""Shells leave within 5 ms of SIGHUP; an agent wants longer to save its state."""
KILL_PATIENCE_SECONDS: Final = 1.0
"""SIGKILL acts at once unless the process is stuck in the kernel."""
KILL_SECONDS: Final = 3.0
"""A process may fork while it is being ended; rounds go on for so long."""
CLEAR_LOOKS: Final = 2
"""Looks that must find nothing: a fork can hide from one, which reads pid by pid."""
AWAITED_LIMIT: Final = 128
"""Processes waited for at once, each by a descriptor; a host has 1024 or more."""
TERMINAL_VARIABLE: Final = b"SIDESTAGE_TERMINAL="
"""Set by `serve` in every terminal: it marks what a terminal started."""

_PROC: Final = Path("/proc")
_PR_SET_CHILD_SUBREAPER: Final = 36
_ENVIRONMENT_LIMIT_BYTES: Final = 1 << 20
_START_FIELD: Final = 19
"""Index of the start time behind the name in /proc/<pid>/stat (proc(5), field 22)."""


@dataclass(frozen=True, slots=True)
class ProcessKey:
    """One process, never another that got its number later."""

    pid: int
    start_ticks: int
    """When it started, in clock ticks since the boot."""


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """What the kernel says about a process now."""

    key: ProcessKey
    parent: int
    session: int
    zombie: bool


Table = Mapping[int, ProcessStat]


def become_subreaper() -> None:
    """Make orphans of our children our children; raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def parse_stat(text: str) -> ProcessStat:
    """Return what a line of /proc/<pid>/stat says; raises `ValueError`."""
    pid, _, rest = text.partition(" (")
    # The name may hold anything, parentheses too; it ends at the last one.
    fields = rest.rpartition(") ")[2].split()
    if len(fields) <= _START_FIELD:
        raise ValueError("a process's line ends early")
    return ProcessStat(
        key=ProcessKey(int(pid), int(fields[_START_FIELD])),
        parent=int(fields[1]),
        session=int(fields[3]),
        zombie=fields[0] in "ZX",
    )


def find_stat(pid: int) -> ProcessStat | None:
    """Return what the kernel says about *pid*, or None if there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return parse_stat(text)


def read_table() -> Table:
    """Return every process of the machine that can be read, by pid."""
    pids = (int(path.name) for path in _PROC.iterdir() if path.name.isdigit())
    stats = (find_stat(pid) for pid in pids)
    return {stat.key.pid: stat for stat in stats if stat is not None}


def terminal_mark(pid: int) -> bytes | None:
    """Return the id of the terminal in whose environment *pid* was started, or None."""
    try:
        with (_PROC / str(pid) / "environ").open("rb") as file:
            variables = file.read(_ENVIRONMENT_LIMIT_BYTES).split(b"\0")
    except OSError:  # gone, or not ours to read
        return None
    for variable in variables:
        if variable.startswith(TERMINAL_VARIABLE):
            return variable[len(TERMINAL_VARIABLE) :]
    return None


def find_family(
    table: Table, roots: Iterable[ProcessKey], strays: Iterable[ProcessKey] = ()
) -> set[ProcessKey]:
    """Return the living processes of some trees: *roots*, *strays* and all below them.

    A root's session counts as its tree, also once the root is dead.
    """
    wanted = {*roots, *strays}
    sessions = {root.pid for root in roots if _led(table, root)}
    children: dict[int, list[ProcessStat]] = {}
    for stat in table.values():
        children.setdefault(stat.parent, []).append(stat)
    todo = [s for s in table.values() if s.key in wanted or s.session in sessions]
    found: set[ProcessKey] = set()
    while todo:
        stat = todo.pop()
        if stat.key not in found:
            found.add(stat.key)
            todo += children.get(stat.key.pid, [])
    return {key for key in found if not table[key.pid].zombie}


def end_processes(
    find: Callable[[], set[ProcessKey]],
    *,
    last: Iterable[ProcessKey] = (),
    kill: Callable[[], None] | None = None,
) -> set[ProcessKey]:
    """Hang up on what *find* returns, then kill what stays, until it returns nothing.

    Those in *last* are spared until the others have had their time: a sandbox's outer
    process takes the program inside along, which could not save its state then. *kill*
    ends at one blow also what cannot be found in time; without it, what forks faster
    than it is found may stay. Blocks for a few seconds at most. Return what could not
    be ended.
    """
    _signal_all(find() - set(last), signal.SIGHUP, HANG_UP_PATIENCE_SECONDS)
    _signal_all(find(), signal.SIGHUP, HANG_UP_PATIENCE_SECONDS)
    return kill_processes(find, kill=kill)


def kill_processes(
    find: Callable[[], set[ProcessKey]], *, kill: Callable[[], None] | None = None
) -> set[ProcessKey]:
    """Kill what *find* returns until it returns nothing (see `end_processes`)."""
    deadline = time.monotonic() + KILL_SECONDS
    clear = 0
    while True:
        if kill is not None:
            kill()
        left = find()
        clear = 0 if left else clear + 1
        if clear == CLEAR_LOOKS or time.monotonic() > deadline:
            return left
        _signal_all(left, signal.SIGKILL, KILL_PATIENCE_SECONDS)


def exit_status(wait_status: int) -> int:
    """Return a program's exit code, or 128 + the signal that ended it."""
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


def boot_id() -> str:
    """Return what names this boot of the machine: pids of another one mean nothing."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _led(table: Table, root: ProcessKey) -> bool:
    """Tell whether the session with *root*'s number can only be *root*'s.

    A session keeps its number while a process is in it; once it is empty, the number
    may be given out anew, and then its leader is another process.
    """
    leader = table.get(root.pid)
    return leader is None or leader.key == root


def _signal_all(keys: set[ProcessKey], number: signal.Signals, seconds: float) -> None:
    """Send a signal to each of *keys* and wait until all are gone, or *seconds*."""
    with ExitStack() as stack:
        waiting = select.poll()
        count = 0
        for key in keys:
            descriptor = _open(key, stack)
            if descriptor is None:
                continue
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(descriptor, number)
                # A stopped process acts on a hang-up only once it goes on.
                signal.pidfd_send_signal(descriptor, signal.SIGCONT)
            waiting.register(descriptor, select.POLLIN)
            count += 1
        _wait(waiting, count, seconds)


def _open(key: ProcessKey, stack: ExitStack) -> int | None:
    """Return a descriptor of that very process, closed with *stack*; None if gone."""
    try:
        descriptor = os.pidfd_open(key.pid)
    except OSError:
        return None
    stack.callback(os.close, descriptor)
    # Asked after the opening: from here on the number cannot mean another process.
    stat = find_stat(key.pid)
    return descriptor if stat is not None and stat.key == key else None


def _wait(waiting: select.poll, count: int, seconds: float) -> None:
    """Wait until *count* registered processes have ended, or *seconds* have passed."""
    deadline = time.monotonic() + seconds
    while count:
        left = deadline - time.monotonic()
        if left <= 0:
            return
        for descriptor, _ in waiting.poll(left * 1000):
            waiting.unregister(descriptor)
            count -= 1
