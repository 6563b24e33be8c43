"""Removes the private folders of ended terminals, whatever was made in them.

A program inside can make folders by the hundred thousand, or thousands deep. So the
folder of an ended terminal is only put aside at once, without the copy of the login; it
goes in the background, and what is left of it when the server ends at the next start.
"""

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.login import LOGIN_NAME

_log = logging.getLogger(__name__)

BATCH_LIMIT: Final = 1000
"""Names held in memory at once: a folder may have any number."""
_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PrivateRemoval:
    """Takes private folders out of the way; *aside* is on the same file system."""

    def __init__(self, aside: Path) -> None:
        self._aside = aside
        self._wake: Callable[[], object] | None = None

    def take(self, private: Path) -> None:
        """Put *private* out of the way, without its login; raises `OSError`.

        Quick, whatever is in it. Only after the terminal's last process ended.
        """
        _remove_login(private / "config")
        self._aside.mkdir(mode=0o700, parents=True, exist_ok=True)
        private.rename(self._aside / f"{private.name}-{secrets.token_hex(6)}")
        if self._wake is not None:
            self._wake()

    async def run(self) -> None:
        """Remove what was and will be put aside, until cancelled."""
        loop = asyncio.get_running_loop()
        taken, stop = asyncio.Event(), threading.Event()
        self._wake = lambda: loop.call_soon_threadsafe(taken.set)
        try:
            while True:
                taken.clear()
                await asyncio.to_thread(self.sweep, stop)
                await taken.wait()
        finally:
            self._wake = None
            stop.set()

    def sweep(self, stop: threading.Event) -> None:
        """Remove what was put aside until *stop*; it blocks.

        What cannot be removed is told, and is tried again by the next sweep.
        """
        for folder in _list(self._aside):
            try:
                _remove_tree(folder, stop)
            except OSError as error:
                _log.warning("%s was not removed: %s", folder.name, error.strerror)


def _list(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _remove_login(config: Path) -> None:
    """Take the login out of *config*, on whose rights the sandbox had a say."""
    if config.is_symlink() or not config.is_dir():
        return
    config.chmod(0o700)
    # A folder in its place holds no copy of ours, and goes with the rest.
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        (config / LOGIN_NAME).unlink()


def _remove_tree(folder: Path, stop: threading.Event) -> None:
    """Remove *folder* and all that is in it, until *stop*; raises `OSError`.

    Folders are brought up to the top one by one and emptied there: neither the depth of
    calls, nor the open descriptors, nor any path grows with the depth of the tree.
    """
    top = os.open(folder, _OPEN_FOLDER)
    try:
        raised = (f"raised-{secrets.token_hex(6)}-{number}" for number in count())
        for name, is_folder in _entries(top):
            if stop.is_set():
                return
            if is_folder and not _remove_empty(name, top):
                os.chmod(name, 0o700, dir_fd=top)
                _raise_folders(name, top, raised, stop)
            elif not is_folder:
                os.unlink(name, dir_fd=top)
    finally:
        os.close(top)
    folder.rmdir()


def _raise_folders(
    name: str, top: int, raised: Iterator[str], stop: threading.Event
) -> None:
    """Move the folders in *name* to *top* and remove its files."""
    folder = os.open(name, _OPEN_FOLDER, dir_fd=top)
    try:
        for child, is_folder in _entries(folder):
            if stop.is_set():
                return
            if not is_folder:
                os.unlink(child, dir_fd=folder)
            elif not _remove_empty(child, folder):
                # To move a folder one needs the right to write in it.
                os.chmod(child, 0o700, dir_fd=folder)
                os.rename(child, next(raised), src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)


def _entries(folder: int) -> Iterator[tuple[str, bool]]:
    """Yield name and whether it is a folder (no link) until *folder* is empty.

    Whoever takes an entry removes it or moves it away, or it is yielded again.
    """
    while True:
        with os.scandir(folder) as entries:
            batch = [
                (entry.name, entry.is_dir(follow_symlinks=False))
                for entry in islice(entries, BATCH_LIMIT)
            ]
        if not batch:
            return
        yield from batch


def _remove_empty(name: str, folder: int) -> bool:
    """Remove the folder *name* if it is empty; tell whether it was."""
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True
