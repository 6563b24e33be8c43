"""Starts the terminal host: detached, in a session of its own, with its own log."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from sidestage.settings import Settings

READY_SECONDS: Final = 15.0
"""A host first ends what an earlier one left, which takes some seconds at most."""
LOG_NAME: Final = "host.log"
LOG_LIMIT_BYTES: Final = 1 << 20
"""A longer log becomes `host.log.1` when a host starts."""

_KEPT = ("HOME", "USER", "LOGNAME", "PATH", "LANG", "TZ", "XDG_RUNTIME_DIR")
_KEPT_PREFIXES = ("LC_", "COVERAGE_")
_READY_DESCRIPTOR: Final = 3


def host_arguments(settings: Settings, descriptors: int) -> tuple[str, ...]:
    """Return the arguments of a terminal host for *settings*.

    *descriptors* is the soft limit of open files that its terminals get.
    """
    limits = (
        *("--running-limit", str(settings.terminals_limit)),
        *("--records-limit", str(settings.records_limit)),
        *("--record-bytes", str(settings.record_limit_bytes)),
        *("--descriptors", str(descriptors)),
    )
    return (*limits, "--allow-root") if settings.allow_root else limits


async def start_host(
    state_dir: Path,
    arguments: Sequence[str] = (),
    *,
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Start a host for *state_dir*; return when it listens or has given up.

    It outlives this process: it has its own session, so that Ctrl-C and a closed
    terminal spare it.
    """
    loop = asyncio.get_running_loop()
    # -P: the folder in which `serve` was started must not lend the host its modules.
    command = [sys.executable, "-P", "-m", "terminal_host.host"]
    command += ["--state-dir", str(state_dir)]
    command += ["--ready-fd", str(_READY_DESCRIPTOR), *arguments]
    ready, said = os.pipe()
    try:
        pid = await asyncio.to_thread(
            _spawn, command, _clean(environment), state_dir, said
        )
        _reap_later(loop, pid)
    except BaseException:
        # Cancelled or failed: `_wait_for_end`, which closes it, is not reached.
        os.close(ready)
        raise
    finally:
        os.close(said)
    await _wait_for_end(loop, ready)


def _spawn(
    command: list[str], environment: dict[str, str], state_dir: Path, said: int
) -> int:
    log = _open_log(state_dir)
    try:
        return os.posix_spawn(
            command[0],
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                (os.POSIX_SPAWN_DUP2, said, _READY_DESCRIPTOR),
            ],
            setsid=True,
        )
    finally:
        os.close(log)


async def _wait_for_end(loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
    """Wait until the other end of the pipe is closed, then close this one."""
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _reap_later(loop: asyncio.AbstractEventLoop, pid: int) -> None:
    """Reap the host should it end before we do, so that no zombie stays."""
    descriptor = os.pidfd_open(pid)

    def reap() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)

    loop.add_reader(descriptor, reap)


def _open_log(state_dir: Path) -> int:
    path = state_dir / LOG_NAME
    with suppress(FileNotFoundError):
        if path.stat().st_size > LOG_LIMIT_BYTES:
            path.replace(path.with_name(LOG_NAME + ".1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
