"""When screens are written, and what happens when they cannot be."""

import asyncio
import errno
import logging
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pytest

from sidestage.ids import TerminalId
from sidestage.terminals.model import HostTerminal, TerminalState
from terminal_host.host.record_format import ScreenRecord
from terminal_host.host.recorder import Recorder
from terminal_host.host.records import RecordLimits, RecordStore
from terminal_host.host.tail_screen import Picture
from tests.fakes.records import META, NOON

T = TypeVar("T")
A, B = TerminalId("terminal:a"), TerminalId("terminal:b")
TOLD = HostTerminal(
    terminal_id=A,
    state=TerminalState.RUNNING,
    cols=80,
    rows=24,
    pid=1,
    exit_status=None,
    title="title",
    started_at=NOON,
    ended_at=None,
    last_output_at=None,
    last_input_at=None,
    bell_at=None,
    attached_clients=0,
    sandbox=META.sandbox,
    name="name",
    project_id=META.project_id,
)


@dataclass
class Terminal:
    """A terminal whose screen the test sets."""

    id: TerminalId = A
    screen: bytes | None = b"one"
    asked: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event | None = None

    def describe(self) -> HostTerminal:
        return replace(TOLD, terminal_id=self.id)

    async def picture(self, limit_bytes: int) -> tuple[Picture | None, int]:
        self.asked += 1
        self.begun.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.screen is None or len(self.screen) > limit_bytes:
            return None, 9
        return Picture(100, 30, self.screen, b"\x1b["), 9


class Store(RecordStore):
    """Tells what was done, and fails when told to."""

    def __init__(self, folder: Path, limits: RecordLimits | None = None) -> None:
        super().__init__(folder, limits)
        self.failing: set[str] = set()
        self.done: list[tuple[str, TerminalId]] = []
        self._happened = threading.Condition()

    def save(self, record: ScreenRecord) -> tuple[TerminalId, ...]:
        return self._note(
            "save", record.meta.terminal_id, lambda: super(Store, self).save(record)
        )

    def remove(self, terminal_id: TerminalId) -> None:
        self._note(
            "remove", terminal_id, lambda: super(Store, self).remove(terminal_id)
        )

    async def until(self, *expected: str) -> None:
        """Wait until these things were done among others, in this order."""

        def holds() -> bool:
            done = iter([what for what, _ in self.done])
            return all(what in done for what in expected)

        def wait() -> bool:
            with self._happened:
                return self._happened.wait_for(holds, 5)

        assert await asyncio.to_thread(wait), self.done

    def _note(self, what: str, terminal_id: TerminalId, act: Callable[[], T]) -> T:
        done = what
        try:
            if what in self.failing:
                done = f"{what} failed"
                raise OSError(errno.ENOSPC, "No space left on device")
            return act()
        finally:
            with self._happened:
                self.done.append((done, terminal_id))
                self._happened.notify_all()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "screens")
    store.open()
    return store


@pytest.fixture
async def recorder(store: Store) -> AsyncGenerator[Recorder]:
    recorder = Recorder(store, record_seconds=0.01)
    yield recorder
    await recorder.close()


def saved(store: RecordStore, terminal_id: TerminalId = A) -> bytes | None:
    record = store.find(terminal_id)
    return None if record is None else record.screen


async def test_a_changed_terminal_is_recorded_with_all_there_is_to_know(
    store: Store, recorder: Recorder
) -> None:
    recorder.changed(Terminal())
    await store.until("save")
    record = await recorder.find(A)
    assert record is not None
    assert (record.screen, record.continuation) == (b"one", b"\x1b[")
    meta = record.meta
    assert (meta.cols, meta.rows, meta.offset) == (100, 30, 9)
    assert (meta.name, meta.title, meta.project_id) == (
        "name",
        "title",
        META.project_id,
    )
    assert (meta.started_at, meta.ended_at, meta.sandbox) == (NOON, None, META.sandbox)


async def test_many_changes_are_one_write_and_no_change_is_none(
    store: Store, recorder: Recorder
) -> None:
    busy, idle = Terminal(A), Terminal(B)
    recorder.changed(idle)
    for _ in range(100):
        recorder.changed(busy)
    await store.until("save", "save")
    recorder.changed(busy)
    await store.until("save", "save", "save")
    assert (busy.asked, idle.asked) == (2, 1)


async def test_a_change_while_it_is_written_is_written_again(
    store: Store, recorder: Recorder
) -> None:
    terminal = Terminal(gate=asyncio.Event())
    recorder.changed(terminal)
    await terminal.begun.wait()
    recorder.changed(terminal)
    assert terminal.gate is not None
    terminal.gate.set()
    await store.until("save", "save")
    assert terminal.asked == 2


async def test_a_failed_write_is_logged_once_and_done_once_that_works(
    store: Store, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    """durability 6: the idle terminal never says a word again."""
    caplog.set_level(logging.INFO)
    store.failing = {"save", "remove"}
    recorder.changed(Terminal())
    await store.until("save failed", "save failed", "save failed")
    assert saved(store) is None
    errors = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "No space left" in errors[0].getMessage()
    store.failing = set()
    await store.until("save")
    assert saved(store) == b"one"
    recorder.changed(Terminal(screen=b"two"))
    await store.until("save", "save")
    assert "recorded again" in caplog.text


async def test_a_screen_too_large_leaves_no_older_one(
    store: Store, recorder: Recorder
) -> None:
    """durability 7."""
    terminal = Terminal()
    recorder.changed(terminal)
    await store.until("save")
    terminal.screen = None
    recorder.changed(terminal)
    await store.until("save", "remove")
    assert saved(store) is None


async def test_a_terminal_closed_while_it_is_recorded_is_not_written(
    store: Store, recorder: Recorder
) -> None:
    """durability 8: its record would come back from the dead."""
    there = {A}
    recorder.is_current = lambda terminal: terminal.id in there
    terminal = Terminal(gate=asyncio.Event())
    recorder.changed(terminal)
    await terminal.begun.wait()
    there.clear()
    await recorder.remove(A)
    assert terminal.gate is not None
    terminal.gate.set()
    await recorder.close()
    assert store.done == [("remove", A)]


async def test_a_deletion_that_fails_is_done_later(
    store: Store, recorder: Recorder
) -> None:
    """durability 8."""
    recorder.changed(Terminal())
    await store.until("save")
    store.failing = {"save", "remove"}
    await recorder.remove(A)
    assert saved(store) == b"one"
    store.failing = set()
    await store.until("save", "remove failed", "remove")
    assert saved(store) is None


async def test_an_id_used_again_is_not_deleted_by_an_older_failed_deletion(
    store: Store, recorder: Recorder
) -> None:
    store.failing = {"remove"}
    await recorder.remove(A)
    recorder.changed(Terminal(screen=b"new"))
    await store.until("remove failed", "save")
    store.failing = set()
    recorder.changed(Terminal(screen=b"newer"))
    await store.until("save", "save")
    await recorder.close()
    assert ("remove", A) not in store.done
    assert saved(store) == b"newer"


async def test_closing_writes_what_has_changed_and_nothing_later(store: Store) -> None:
    """durability, "When": at a bounded shutdown."""
    recorder = Recorder(store, record_seconds=3600)
    recorder.changed(Terminal())
    await recorder.close()
    assert saved(store) == b"one"
    recorder.changed(Terminal(screen=b"what its end does to it"))
    assert saved(store) == b"one"


async def test_closing_is_bounded(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("terminal_host.host.recorder.CLOSE_SECONDS", 0.05)
    recorder = Recorder(store, record_seconds=3600)
    recorder.changed(Terminal(gate=asyncio.Event()))
    async with asyncio.timeout(2):
        await recorder.close()
    assert "not recorded in time" in caplog.text


async def test_records_that_gave_way_are_told(tmp_path: Path) -> None:
    store = Store(tmp_path / "screens", RecordLimits(records=1))
    store.open()
    recorder = Recorder(store, record_seconds=0.01)
    gone: list[TerminalId] = []
    recorder.on_pruned = gone.append
    recorder.changed(Terminal(A))
    await store.until("save")
    recorder.changed(Terminal(B))
    await store.until("save", "save")
    await recorder.close()
    assert gone == [A]


async def test_a_bug_in_one_recording_is_logged_and_does_not_end_recording(
    store: Store, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Terminal):
        async def picture(self, limit_bytes: int) -> tuple[Picture | None, int]:
            raise ValueError("a bug")

    recorder.changed(Broken())
    recorder.changed(Terminal(B))
    await store.until("save")
    recorder.changed(Terminal(B, screen=b"two"))
    await store.until("save", "save")
    assert saved(store, B) == b"two"
    assert "a bug" in caplog.text
