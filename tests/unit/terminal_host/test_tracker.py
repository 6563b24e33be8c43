"""Feeding a screen beside the byte path, in order and bounded."""

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from terminal_host.host.live_screen import LiveScreen, Notices
from terminal_host.host.tracker import BACKLOG_LIMIT_BYTES, ScreenTracker
from terminal_host.screen import make_engine


class Recorder(LiveScreen):
    """Notes what is done with it, and can be held up."""

    def __init__(self) -> None:
        super().__init__(lambda c, r: make_engine(c, r, 10), cols=20, rows=5)
        self.done: list[str] = []
        self.go = threading.Event()
        self.go.set()

        self.needs_engine = True

    def absorb(self, data: bytes) -> Notices | None:
        return None if self.needs_engine else super().absorb(data)

    def feed(self, data: bytes) -> Notices:
        assert self.go.wait(5)
        self.done.append(f"feed {len(data)}")
        return super().feed(data)

    def resize(self, cols: int, rows: int) -> None:
        self.done.append("resize")
        super().resize(cols, rows)

    def replay(self) -> bytes:
        self.done.append("replay")
        return super().replay()


@pytest.fixture
def executor() -> Generator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.fixture
def screen() -> Recorder:
    return Recorder()


@pytest.fixture
async def told() -> list[object]:
    return []


@pytest.fixture
async def tracker(
    screen: Recorder, executor: ThreadPoolExecutor, told: list[object]
) -> ScreenTracker:
    return ScreenTracker(
        screen,
        executor,
        on_notices=told.append,
        on_room=lambda: told.append("room"),
    )


async def test_a_replay_stands_for_exactly_what_was_added_before(
    tracker: ScreenTracker, screen: Recorder
) -> None:
    tracker.add(b"before")
    replay = asyncio.ensure_future(tracker.replay())
    await asyncio.wait([replay], timeout=0)
    tracker.add(b"after")
    assert b"before" in await replay
    assert b"after" not in replay.result()
    assert (await tracker.text(1)) == "beforeafter"


async def test_what_needs_no_engine_is_taken_in_at_once(
    tracker: ScreenTracker, screen: Recorder, told: list[object]
) -> None:
    screen.needs_engine = False
    tracker.add(b"a key's echo\x07")
    assert told == [Notices(b"", None, bell=True)]
    assert screen.done == []
    assert (await tracker.text(1)) == "a key's echo"


async def test_what_needs_no_engine_stays_behind_what_does(
    tracker: ScreenTracker, screen: Recorder, told: list[object]
) -> None:
    screen.needs_engine = False
    screen.go.clear()
    tracker.add(b"\x1b[6n")
    tracker.add(b"text")
    screen.go.set()
    assert (await tracker.text(1)) == "text"
    assert told == [Notices(b"\x1b[1;1R", None, bell=False)]


async def test_a_size_comes_at_its_place_in_the_output(
    tracker: ScreenTracker, screen: Recorder
) -> None:
    tracker.add(b"a")
    tracker.resize(30, 6)
    tracker.add(b"b")
    await tracker.settle()
    assert screen.done == ["feed 1", "resize", "feed 1"]


async def test_output_that_waits_is_fed_in_one_go(
    tracker: ScreenTracker, screen: Recorder
) -> None:
    screen.go.clear()
    tracker.add(b"first")
    for _ in range(10):
        tracker.add(b"x" * 10)
    screen.go.set()
    await tracker.settle()
    assert len(screen.done) <= 2


async def test_a_backlog_that_is_full_says_so_and_says_when_there_is_room(
    tracker: ScreenTracker, screen: Recorder, told: list[object]
) -> None:
    screen.go.clear()
    tracker.add(b"x" * (BACKLOG_LIMIT_BYTES + 1))
    assert tracker.full
    screen.go.set()
    await tracker.settle()
    assert not tracker.full
    assert told == ["room"]


async def test_notices_are_told(tracker: ScreenTracker, told: list[object]) -> None:
    tracker.add(b"\x1b[5n")
    await tracker.settle()
    assert told == [Notices(b"\x1b[0n", None, bell=False)]


async def test_whoever_asks_gets_the_error(
    tracker: ScreenTracker, screen: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> bytes:
        raise RuntimeError("as the test wants")

    monkeypatch.setattr(screen, "replay", fail)
    with pytest.raises(RuntimeError, match="as the test wants"):
        await tracker.replay()
    assert (await tracker.text(1)) == ""


async def test_whoever_stops_waiting_stops_nothing(tracker: ScreenTracker) -> None:
    asking = asyncio.ensure_future(tracker.replay())
    await asyncio.wait([asking], timeout=0)
    asking.cancel()
    tracker.add(b"text")
    assert (await tracker.text(1)) == "text"
