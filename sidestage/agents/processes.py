"""Processes of this machine, as liveness needs them: pid and start time together."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from sidestage.sessions.model import Process

ARGUMENTS_LIMIT_BYTES: Final = 65_536
"""Read of a command line: an id stands in its first words."""
ENVIRONMENT_LIMIT_BYTES: Final = 1 << 20
"""Read of an environment: Linux itself allows at most 6 MiB, real ones have 10 KiB."""
ANCESTORS_LIMIT: Final = 64
"""Parents that are followed: a shell in an agent in a shell has a dozen."""
_START_FIELD: Final = 19
"""Of the fields behind the name: proc(5) counts it as the 22nd."""
_TERMINAL_VARIABLE: Final = b"SIDESTAGE_TERMINAL="


@dataclass(frozen=True, slots=True)
class AgentProcess:
    """A process that runs an agent CLI, of the same user as we."""

    process: Process
    parent_pid: int
    directory: str | None
    """Where it stands; None if that cannot be read."""
    arguments: tuple[str, ...] = field(repr=False)
    age_seconds: float
    terminal_id: str | None = None
    """The terminal of ours it says it runs in, if that can be read."""


class ProcessTable(Protocol):
    """What is asked of the operating system. Every call blocks, briefly."""

    def find_start_ticks(self, pid: int) -> str | None:
        """Return the start time of the live process *pid*, or None if there is none.

        A zombie is no live process. Raises `OSError` when it cannot be told.
        """

    def list_agents(self, programs: frozenset[str]) -> tuple[AgentProcess, ...]:
        """Return this user's processes that run one of *programs*.

        Raises `OSError` when they cannot be listed.
        """

    def open_exit(self, pid: int) -> int:
        """Return a descriptor that becomes readable when the process ends.

        The caller closes it. Raises `ProcessLookupError` when there is no such process,
        `OSError` when there is no such descriptor to be had.
        """

    @property
    def domain(self) -> str:
        """The pid namespace we live in: `linux:<machine id>:pid:[<inode>]`."""

    @property
    def booted_at(self) -> datetime:
        """When this machine started (UTC)."""


class LinuxProcesses:
    """The process table in `/proc` (proc(5))."""

    def __init__(self) -> None:
        self.domain: str = _read_domain()
        self.booted_at: datetime = _read_boot_time()
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")
        self._user = os.getuid()

    def find_start_ticks(self, pid: int) -> str | None:
        """Return the start time of the live process *pid*, or None."""
        fields = _stat_fields(pid)
        return None if fields is None else fields.start_ticks

    def list_agents(self, programs: frozenset[str]) -> tuple[AgentProcess, ...]:
        """Return this user's processes that run one of *programs*."""
        found: list[AgentProcess] = []
        uptime = _uptime_seconds()
        with os.scandir("/proc") as entries:
            pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
        for pid in pids:
            agent = self._find_agent(pid, programs, uptime)
            if agent is not None:
                found.append(agent)
        return tuple(found)

    def open_exit(self, pid: int) -> int:
        """Return a descriptor that becomes readable when the process ends."""
        return os.pidfd_open(pid)

    def _find_agent(
        self, pid: int, programs: frozenset[str], uptime: float
    ) -> AgentProcess | None:
        folder = Path(f"/proc/{pid}")
        try:
            if folder.stat().st_uid != self._user:
                return None
            arguments = _arguments(folder)
            if not _runs(folder, arguments, programs):
                return None
            fields = _stat_fields(pid)
        except OSError:
            return None  # it ended while we looked
        if fields is None:
            return None
        return AgentProcess(
            Process(pid, fields.start_ticks),
            fields.parent_pid,
            _directory(folder),
            arguments,
            uptime - int(fields.start_ticks) / self._ticks_per_second,
            _terminal(folder),
        )


@dataclass(frozen=True, slots=True)
class StatFields:
    """What is read of a process's `stat`: its parent, and its start in clock ticks."""

    parent_pid: int
    start_ticks: str


def _stat_fields(pid: int) -> StatFields | None:
    """Return fields of `/proc/<pid>/stat`; None if the process is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    try:
        return parse_stat(text)
    except ValueError as error:
        raise OSError(f"/proc/{pid}/stat cannot be read") from error


def list_ancestors(pid: int) -> tuple[Process, ...]:
    """Return the process and its parents, the nearest first; blocks, briefly.

    It ends where a process is gone, or is younger than its child: its pid went to
    another meanwhile.
    """
    found: list[Process] = []
    youngest = None
    while pid > 0 and len(found) < ANCESTORS_LIMIT:
        try:
            fields = _stat_fields(pid)
        except OSError:
            break
        if fields is None or (youngest and int(fields.start_ticks) > youngest):
            break
        found.append(Process(pid, fields.start_ticks))
        youngest = int(fields.start_ticks)
        pid = fields.parent_pid
    return tuple(found)


def parse_stat(line: bytes) -> StatFields | None:
    """Return fields of a line of `/proc/<pid>/stat`; None for a zombie.

    Raises `ValueError` for what is no such line.
    """
    # The second field, the name in parentheses, may hold spaces and parentheses.
    rest = line[line.rfind(b")") + 2 :].split()
    if len(rest) <= _START_FIELD or not rest[_START_FIELD].isdigit():
        raise ValueError("a process's line ends early")
    if rest[0] in (b"Z", b"X"):
        return None
    return StatFields(int(rest[1]), rest[_START_FIELD].decode())


def _arguments(folder: Path) -> tuple[str, ...]:
    with (folder / "cmdline").open("rb") as file:
        data = file.read(ARGUMENTS_LIMIT_BYTES)
    return tuple(os.fsdecode(word) for word in data.rstrip(b"\0").split(b"\0"))


def _runs(folder: Path, arguments: tuple[str, ...], programs: frozenset[str]) -> bool:
    """Tell whether a process runs a program, by its name or its first words.

    A script's interpreter has the script as its first or second argument.
    """
    if (folder / "comm").read_text(errors="replace").rstrip("\n") in programs:
        return True
    return any(word.rpartition("/")[2] in programs for word in arguments[:2])


def _directory(folder: Path) -> str | None:
    """Return where a process stands; None if its paths are not ours.

    In another mount namespace, a sandbox or a container, any folder can have any name.
    """
    try:
        if os.readlink(folder / "ns/mnt") != os.readlink("/proc/self/ns/mnt"):  # noqa: PTH115 no paths
            return None
        return os.readlink(folder / "cwd")  # noqa: PTH115 a deleted folder is no path
    except OSError:
        return None


def _terminal(folder: Path) -> str | None:
    """Return the terminal named in the process's first environment.

    Nothing else of the environment is looked at or kept: it holds secrets.
    """
    try:
        with (folder / "environ").open("rb") as file:
            words = file.read(ENVIRONMENT_LIMIT_BYTES).split(b"\0")
    except OSError:
        return None
    found = (word for word in words if word.startswith(_TERMINAL_VARIABLE))
    value = next(found, None)
    return None if value is None else os.fsdecode(value.partition(b"=")[2])


def _uptime_seconds() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def _read_domain() -> str:
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine = ""
    return f"linux:{machine}:{os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 no path


def _read_boot_time() -> datetime:
    now = datetime.now(UTC).timestamp()
    return datetime.fromtimestamp(now - _uptime_seconds(), UTC)
