import asyncio
import threading
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest
from watchfiles._rust_notify import WatchfilesRustInternalError

from sidestage.agents import watching
from sidestage.agents.watching import (
    NO_WATCHES_NOTE,
    FolderWatch,
    find_anchors,
    open_notifier,
)


def watch(*folders: Path, **more: Any) -> tuple[FolderWatch, list[str | None]]:
    health: list[str | None] = []
    made = FolderWatch(
        plan=lambda: frozenset(folders),
        is_structural=lambda _: True,
        on_health=health.append,
        **more,
    )
    return made, health


async def test_a_change_is_told_with_its_path(tmp_path: Path) -> None:
    made, health = watch(tmp_path)
    async with asyncio.timeout(5), aclosing(made.changes()) as changes:
        assert (await anext(changes)).rescan
        (tmp_path / "file").write_text("x")
        assert str(tmp_path / "file") in (await anext(changes)).paths
    assert health == [None]


async def test_a_folder_that_is_made_again_is_watched_again(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    made, _ = watch(folder, tmp_path)
    async with asyncio.timeout(5), aclosing(made.changes()) as changes:
        await anext(changes)
        folder.rmdir()
        folder.mkdir()
        while not (await anext(changes)).rescan:
            pass
        (folder / "file").write_text("x")
        paths: set[str] = set()
        while str(folder / "file") not in paths:
            paths |= (await anext(changes)).paths


async def test_a_new_plan_is_followed_at_once(tmp_path: Path) -> None:
    folders = {tmp_path / "one"}
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    made, _ = watch()
    made.plan = lambda: frozenset(folders)
    async with asyncio.timeout(5), aclosing(made.changes()) as changes:
        await anext(changes)
        folders.add(tmp_path / "two")
        made.refresh()
        assert (await anext(changes)).rescan
        (tmp_path / "two" / "file").write_text("x")
        assert (await anext(changes)).paths


async def test_a_folder_that_goes_while_we_plan_is_planned_anew(
    tmp_path: Path,
) -> None:
    errors = [FileNotFoundError()]

    def opener(folders: list[str]) -> Any:
        if errors:
            raise errors.pop()
        return open_notifier(folders)

    made, health = watch(tmp_path, open_notifier=opener)
    async with asyncio.timeout(5), aclosing(made.changes()) as changes:
        assert (await anext(changes)).rescan
    assert health == [None]


async def test_a_folder_that_always_changes_is_not_watched_anew_each_time(
    tmp_path: Path,
) -> None:
    """A loop of chmod had the whole tree looked at sixty times a second."""
    opened = 0

    class Restless:
        def watch(self, *_: object) -> set[tuple[int, str]]:
            return {(2, str(tmp_path))}

        def close(self) -> None:
            pass

    def opener(folders: list[str]) -> Restless:
        nonlocal opened
        opened += 1
        return Restless()

    made, _ = watch(tmp_path, open_notifier=opener, window_seconds=3600)
    async with aclosing(made.changes()) as changes:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                async for _ in changes:
                    pass
    assert opened == watching.REOPEN_LIMIT


@pytest.mark.parametrize(
    "error", [OSError(28, "limit reached"), WatchfilesRustInternalError("os error 24")]
)
async def test_without_watches_everything_is_looked_at_now_and_then(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program used up all watches: silent retries for fourteen hours."""

    def no_watches(*_: object) -> Any:
        raise error

    monkeypatch.setattr(watching, "RustNotify", no_watches)
    made, health = watch(tmp_path, poll_seconds=0.01, retry_seconds=0.03)
    async with asyncio.timeout(5), aclosing(made.changes()) as changes:
        for _ in range(5):
            assert (await anext(changes)).rescan
        assert set(health) == {NO_WATCHES_NOTE}
        monkeypatch.undo()
        while health[-1] is not None:
            await anext(changes)


async def test_a_refresh_ends_the_wait_for_the_next_look(tmp_path: Path) -> None:
    def no_watches(_: list[str]) -> Any:
        raise OSError(28, "limit reached")

    made, _ = watch(tmp_path, open_notifier=no_watches, poll_seconds=60)
    async with asyncio.timeout(5), aclosing(made.changes()) as changes:
        await anext(changes)
        made.refresh()
        await anext(changes)


async def test_closing_ends_the_watching_thread(tmp_path: Path) -> None:
    made, _ = watch(tmp_path)
    async with asyncio.timeout(5), aclosing(made.changes()) as changes:
        await anext(changes)
    names = [thread.name for thread in threading.enumerate()]
    assert not any(name.startswith("sidestage-watch") for name in names)


def test_of_a_missing_folder_the_nearest_parent_is_watched(tmp_path: Path) -> None:
    wanted = frozenset({tmp_path / "a" / "b", tmp_path / "a" / "c"})
    assert list(find_anchors(lambda: wanted)) == [tmp_path]
    (tmp_path / "a").mkdir()
    assert list(find_anchors(lambda: wanted)) == [tmp_path / "a"]
