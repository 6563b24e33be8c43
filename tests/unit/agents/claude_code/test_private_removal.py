"""Private folders of ended terminals go, whatever was made in them."""

import asyncio
import contextlib
import inspect
import logging
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sidestage.agents.claude_code import private_removal
from sidestage.agents.claude_code.private_removal import PrivateRemoval

DEPTH_LEVELS = 60
NAME = "d" * 200
"""Together three times the 4,096 bytes of a path."""


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "terminals/terminal:1"
    (folder / "config").mkdir(parents=True)
    (folder / "config/.credentials.json").write_text("secret")
    yield folder
    # Else pytest would have to remove what only we can.
    PrivateRemoval(tmp_path / "terminals").sweep(threading.Event())


@pytest.fixture
def aside(tmp_path: Path) -> Path:
    return tmp_path / "ended"


def _remaining(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _make_deep(folder: Path, levels: int) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(NAME, dir_fd=descriptor)
        below = os.open(NAME, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor))
    os.close(descriptor)


def test_folders_deeper_than_any_path_are_removed(private: Path, aside: Path) -> None:
    """Both the walk and the removal used full paths: "File name too long", for ever.

    The copy of the login stayed with them.
    """
    _make_deep(private / "config", DEPTH_LEVELS)
    removal = PrivateRemoval(aside)
    removal.take(private)
    before = sys.getrecursionlimit()
    try:
        # Fewer calls than levels, as with thousands of those.
        sys.setrecursionlimit(len(inspect.stack(0)) + DEPTH_LEVELS // 2)
        removal.sweep(threading.Event())
    finally:
        sys.setrecursionlimit(before)
    assert not private.exists()
    assert _remaining(aside) == []


def test_a_folder_is_out_of_the_way_and_without_login_before_it_is_removed(
    private: Path, aside: Path
) -> None:
    """Closing removed 202,500 folders for 58 s, under the lock that starts wait for."""
    for number in range(10):
        (private / f"config/{number}").mkdir()
    (private / "config").chmod(0)
    PrivateRemoval(aside).take(private)
    assert not private.exists()
    (ended,) = _remaining(aside)
    assert len(_remaining(ended / "config")) == 10
    assert not (ended / "config/.credentials.json").exists()


def test_a_folder_in_the_login_s_place_is_put_aside_too(
    private: Path, aside: Path
) -> None:
    (private / "config/.credentials.json").unlink()
    (private / "config/.credentials.json/deep").mkdir(parents=True)
    removal = PrivateRemoval(aside)
    removal.take(private)
    removal.sweep(threading.Event())
    assert _remaining(aside) == []


def test_a_private_folder_that_was_never_filled_is_put_aside(
    private: Path, aside: Path
) -> None:
    shutil.rmtree(private / "config")
    removal = PrivateRemoval(aside)
    removal.take(private)
    removal.sweep(threading.Event())
    assert _remaining(aside) == []


def test_links_pipes_and_closed_folders_go_and_what_links_name_stays(
    private: Path, aside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_removal, "BATCH_LIMIT", 2)
    kept = tmp_path / "kept/file"
    kept.parent.mkdir()
    kept.touch()
    for name in ("a/b/c", "a/d/e", "f"):
        folder = private / "config" / name
        folder.mkdir(parents=True)
        for number in range(5):
            (folder / str(number)).touch()
        (folder / "link").symlink_to(kept.parent)
        os.mkfifo(folder / "pipe")
        folder.chmod(0)
    (private / "link").symlink_to(kept.parent)
    (private / "sessions").mkdir()
    (private / "sessions/file").touch()
    (private / "sessions").chmod(0)
    removal = PrivateRemoval(aside)
    removal.take(private)
    removal.sweep(threading.Event())
    assert _remaining(aside) == []
    assert kept.exists()


def test_a_link_in_place_of_the_state_folder_keeps_its_target_s_rights(
    private: Path, aside: Path, tmp_path: Path
) -> None:
    (other := tmp_path / "other").mkdir(mode=0o500)
    (private / "config").rename(private / "moved")
    (private / "config").symlink_to(other)
    PrivateRemoval(aside).take(private)
    assert other.stat().st_mode & 0o777 == 0o500


def test_a_stopped_sweep_leaves_the_rest_to_the_next(
    private: Path, aside: Path
) -> None:
    """A server that ends must not wait for a hundred thousand folders."""
    removal = PrivateRemoval(aside)
    removal.take(private)
    stop = threading.Event()
    stop.set()
    removal.sweep(stop)
    assert len(_remaining(aside)) == 1
    PrivateRemoval(aside).sweep(threading.Event())
    assert _remaining(aside) == []


def test_what_cannot_be_removed_is_told_and_keeps_nothing_else(
    private: Path,
    aside: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    removal = PrivateRemoval(aside)
    removal.take(private)
    (aside / "terminal:0-x").mkdir()
    remove = private_removal._remove_tree

    def fail(folder: Path, stop: threading.Event) -> None:
        if folder.name == "terminal:0-x":
            raise OSError(5, "Input/output error")
        remove(folder, stop)

    monkeypatch.setattr(private_removal, "_remove_tree", fail)
    with caplog.at_level(logging.WARNING):
        removal.sweep(threading.Event())
    assert [folder.name for folder in _remaining(aside)] == ["terminal:0-x"]
    assert "Input/output error" in caplog.text
    caplog.clear()


class _Told(PrivateRemoval):
    """Tells when a sweep is over."""

    def __init__(self, aside: Path, told: Callable[[], object]) -> None:
        super().__init__(aside)
        self._told = told

    def sweep(self, stop: threading.Event) -> None:
        super().sweep(stop)
        self._told()


async def test_what_is_left_goes_at_the_start_and_the_rest_when_it_is_taken(
    private: Path, aside: Path
) -> None:
    (aside / "terminal:0-left").mkdir(parents=True)
    loop, swept = asyncio.get_running_loop(), asyncio.Event()
    removal = _Told(aside, lambda: loop.call_soon_threadsafe(swept.set))
    running = asyncio.create_task(removal.run())
    async with asyncio.timeout(10):
        await swept.wait()
        assert _remaining(aside) == []
        swept.clear()
        await asyncio.to_thread(removal.take, private)
        await swept.wait()
    assert _remaining(aside) == []
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
