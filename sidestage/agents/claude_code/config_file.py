"""Reads and rewrites the CLI's `.claude.json` beside running CLIs, losing nothing."""

import contextlib
import json
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sidestage.agents.regular_files import read_regular

Json = dict[str, Any]

CONFIG_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Real ones reach some megabytes; past this it is not a configuration."""
LOCK_PATIENCE_SECONDS: Final = 3.0
"""The CLI holds its lock for milliseconds."""
LOCK_STALE_SECONDS: Final = 10.0
"""After this the CLI takes a lock for one of a process that died, and so do we."""
_LOCK_AGAIN_SECONDS: Final = 0.05


def read_config(path: Path) -> Json:
    """Return what *path* holds (links followed); {} if that is no JSON object."""
    return read_object(Path(os.path.realpath(path)), limit_bytes=CONFIG_LIMIT_BYTES)


def read_object(path: Path, *, limit_bytes: int) -> Json:
    """Return the JSON object in the regular file *path*, no link; else {}.

    Safe for what a sandbox left: a folder, pipe, socket or huge file is no object.
    """
    try:
        return parse_config(read_regular(path, limit_bytes=limit_bytes))
    except OSError:
        return {}


def parse_config(data: bytes) -> Json:
    """Return the JSON object *data* is, {} if it is none or over the limit."""
    if len(data) > CONFIG_LIMIT_BYTES:
        return {}
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def patch_config(path: Path, patch: Callable[[Json], bool]) -> None:
    """Apply *patch* to the newest content of *path*; write if it returns True.

    Takes the CLI's own lock (a folder `<name>.lock`, seen in 2.1.328), so a change that
    an outside CLI makes meanwhile is read, never overwritten. An absent or unreadable
    file stays as it is. Links are followed and the mode is kept. Raises `OSError`.
    """
    real = path.resolve()
    with _locked(path.with_name(path.name + ".lock")):
        config = read_config(real)
        if config and patch(config):
            mode = stat.S_IMODE(real.stat().st_mode)
            replace_file(real, _render(config), mode=mode)


def _render(config: Json) -> bytes:
    """Return *config* as the CLI writes it."""
    try:
        return json.dumps(config, indent=2, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no UTF-8, only an escape
        return json.dumps(config, indent=2).encode()


def replace_file(path: Path, data: bytes, *, mode: int) -> None:
    """Put *data* at *path* in one step: whole file or none; raises `OSError`."""
    fresh = path.with_name(f"{path.name}.tmp.{secrets.token_hex(6)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(fresh, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as target:
            target.write(data)
            target.flush()
            os.fchmod(target.fileno(), mode)
            os.fsync(target.fileno())
        fresh.replace(path)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        raise


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Hold the lock folder; go on without it once it is stale or patience ends."""
    held = _acquire(lock)
    try:
        yield
    finally:
        if held:
            with contextlib.suppress(OSError):
                lock.rmdir()


def _acquire(lock: Path) -> bool:
    """Make the lock folder; False if another kept it for too long."""
    deadline = time.monotonic() + LOCK_PATIENCE_SECONDS
    pause = threading.Event()
    while True:
        try:
            lock.mkdir()
        except FileExistsError:
            if _is_stale(lock) or time.monotonic() > deadline:
                return False
            # Nothing tells when the folder goes: the CLI itself looks again as well.
            pause.wait(_LOCK_AGAIN_SECONDS)
        except OSError:
            return False
        else:
            return True


def _is_stale(lock: Path) -> bool:
    try:
        return time.time() - lock.stat().st_mtime > LOCK_STALE_SECONDS
    except OSError:
        return False
