"""The host's list of terminals, without any program in it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidestage.errors import StartFailed
from sidestage.ids import TerminalId
from sidestage.terminals.model import CreateTerminal
from terminal_host.host.ports import Confined
from terminal_host.host.recorder import Recorder
from terminal_host.host.records import RecordStore
from terminal_host.host.terminals import HostedTerminals, HostLimits
from terminal_host.screen import Engine

REQUEST = CreateTerminal(
    terminal_id=TerminalId("terminal:" + "a" * 32),
    argv=("true",),
    environment={},
    directory=Path("/"),
    cols=80,
    rows=24,
)


def no_engine(cols: int, rows: int) -> Engine:
    raise AssertionError("no program started, so no screen is needed")


class SlowConfiner:
    """Prepares until told to fail."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go = threading.Event()

    @contextmanager
    def confine(self, request: CreateTerminal) -> Iterator[Confined]:
        self.asked.set()
        assert self.go.wait(5)
        raise StartFailed("as the test wants")
        yield


async def test_the_list_waits_for_starts_under_way(tmp_path: Path) -> None:
    """A restarted server was told an old list, and took a program's files away."""
    confiner = SlowConfiner()
    terminals = HostedTerminals(
        tmp_path,
        confiner,
        no_engine,
        recorder=Recorder(RecordStore(tmp_path / "screens")),
        limits=HostLimits(),
    )
    start = asyncio.create_task(terminals.create(REQUEST))
    assert await asyncio.to_thread(confiner.asked.wait, 5)
    waiting = asyncio.create_task(terminals.wait_started())
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    confiner.go.set()
    await waiting
    with pytest.raises(StartFailed):
        await start
    await terminals.wait_started()  # nothing under way: at once
    await terminals.close()
