"""Changes in a set of folders, pushed by inotify; polled when that is not to be had."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

# `awatch` would do, but it does not say when the watch stands, and what changes before
# that is lost: the watch first, then the look at the files.

STEP_MS: Final = 15
"""How long the watcher collects before it tells. The bar is 60 ms from a change to a
client (median), and waking 66 times a second costs under 0.2 % of a core."""
DEBOUNCE_MS: Final = 60
"""A file that changes all the time is told at least this often."""
POLL_SECONDS: Final = 2.0
"""How often everything is looked at when there is no watch: 10 ms of work each."""
WATCH_RETRY_SECONDS: Final = 60.0
"""How often it is tried again to have a watch."""
WATCH_LIMIT_FOLDERS: Final = 8_192
"""Folders watched at once, Linux's smallest default for a whole user."""
REOPEN_LIMIT: Final = 20
"""Watches opened in ten seconds: a start makes a few folders one after the other."""
REOPEN_WINDOW_SECONDS: Final = 10.0
"""Past the limit a watch opens every half second: who changes a watched folder's mode
in a loop must not have every file looked at as often."""
_ANCHOR_LIMIT: Final = 64
"""Parents climbed to find one that exists."""

NO_WATCHES_NOTE: Final = (
    "File watches ran out, so sessions are polled every two seconds. Raise the limits: "
    "sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512"
)


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed: some paths, or (rescan) anything."""

    paths: frozenset[str] = frozenset()
    rescan: bool = False


class Notifier(Protocol):
    """A watch that stands from its making on."""

    def watch(
        self, debounce_ms: int, step_ms: int, timeout_ms: int, stop: threading.Event
    ) -> object:
        """Block until something changes; return a set of `(kind, path)` pairs."""

    def close(self) -> None:
        """End the watch."""


def open_notifier(folders: list[str]) -> Notifier:
    """Watch exactly *folders*, not what is below. Raises `OSError` when it cannot."""
    try:
        return RustNotify(
            folders,
            False,  # noqa: FBT003 no debug output
            False,  # noqa: FBT003 no polling of its own: it would stat every file
            0,
            False,  # noqa: FBT003 not recursive
            True,  # noqa: FBT003 folders we may not read are left out
        )
    except WatchfilesRustInternalError as error:
        raise OSError(str(error)) from error


@dataclass(slots=True)
class FolderWatch:
    """Watches the folders that *plan* names, and follows that plan as it changes.

    *plan* (it blocks) returns the wanted folders; of one that does not exist, its
    nearest existing parent is watched until it does. *on_health* is told whether there
    is a watch, and else why.
    """

    plan: Callable[[], frozenset[Path]]
    is_structural: Callable[[str], bool]
    """Whether a changed path may change the plan."""
    on_health: Callable[[str | None], None]
    open_notifier: Callable[[list[str]], Notifier] = open_notifier
    poll_seconds: float = POLL_SECONDS
    retry_seconds: float = WATCH_RETRY_SECONDS
    window_seconds: float = REOPEN_WINDOW_SECONDS

    _replan: asyncio.Event = field(default_factory=asyncio.Event)

    def refresh(self) -> None:
        """Have the plan made anew: a folder was added or taken out."""
        self._replan.set()

    async def changes(self) -> AsyncGenerator[Changes]:
        """Yield changes until closed; each new watch begins with a rescan."""
        opened: deque[float] = deque(maxlen=REOPEN_LIMIT)
        with ThreadPoolExecutor(1, "sidestage-watch") as thread:
            while True:
                await self._pace(opened)
                self._replan.clear()
                anchors = await asyncio.to_thread(find_anchors, self.plan)
                try:
                    names = sorted(map(str, anchors))
                    notifier = await asyncio.to_thread(self.open_notifier, names)
                except FileNotFoundError:
                    continue  # a folder went away since; plan again
                except OSError:
                    self.on_health(NO_WATCHES_NOTE)
                    async for changes in self._poll():
                        yield changes
                    continue
                self.on_health(None)
                yield Changes(rescan=True)
                async for changes in self._watch(notifier, anchors, thread):
                    yield changes

    async def _pace(self, opened: deque[float]) -> None:
        """Wait if the last watches were *opened* too fast one after the other.

        What changes meanwhile is told by the rescan that a new watch begins with.
        """
        now = asyncio.get_running_loop().time()
        if len(opened) == REOPEN_LIMIT and now - opened[0] < self.window_seconds:
            await asyncio.sleep(self.window_seconds / REOPEN_LIMIT)
        opened.append(asyncio.get_running_loop().time())

    async def _watch(
        self,
        notifier: Notifier,
        anchors: Mapping[Path, int],
        thread: ThreadPoolExecutor,
    ) -> AsyncGenerator[Changes]:
        """Yield what *notifier* tells, until the plan's folders are others."""
        stop = threading.Event()
        loop = asyncio.get_running_loop()
        replan = asyncio.create_task(self._replan.wait())
        replan.add_done_callback(lambda _: stop.set())
        watched = frozenset(map(str, anchors))
        try:
            while True:
                told = await loop.run_in_executor(
                    thread, notifier.watch, DEBOUNCE_MS, STEP_MS, 0, stop
                )
                paths = _paths(told)
                if paths:
                    yield Changes(paths)
                # A folder that went and came again may have its old inode number.
                if replan.done() or not watched.isdisjoint(paths):
                    return
                if any(map(self.is_structural, paths)):
                    now = await asyncio.to_thread(find_anchors, self.plan)
                    if now != anchors:
                        return
        finally:
            stop.set()
            replan.cancel()
            thread.submit(notifier.close)

    async def _poll(self) -> AsyncGenerator[Changes]:
        """Ask for a rescan now and then, until it is time to try a watch again."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self.retry_seconds
        while loop.time() < until and not self._replan.is_set():
            yield Changes(rescan=True)
            try:
                async with asyncio.timeout(self.poll_seconds):
                    await self._replan.wait()
            except TimeoutError:
                continue


def find_anchors(plan: Callable[[], frozenset[Path]]) -> dict[Path, int]:
    """Return the folders to watch, with their inodes: a new folder is another one."""
    anchors: dict[Path, int] = {}
    for folder in sorted(plan())[:WATCH_LIMIT_FOLDERS]:
        anchor = _find_existing(folder)
        if anchor is not None:
            anchors[anchor[0]] = anchor[1]
    return anchors


def _find_existing(folder: Path) -> tuple[Path, int] | None:
    for candidate in (folder, *folder.parents)[:_ANCHOR_LIMIT]:
        try:
            if candidate.is_dir():
                return candidate, candidate.stat().st_ino
        except OSError:
            continue
    return None


def _paths(told: object) -> frozenset[str]:
    if not isinstance(told, set):
        return frozenset()
    return frozenset(path for _, path in told)
