"""Terminals while the database fails: none is lost, and rows are written later."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.errors import StartFailed, StorageUnavailable
from sidestage.ids import TerminalId
from sidestage.storage.database import Database
from sidestage.storage.stores import SqlTerminalStore
from sidestage.terminals import row_writer
from sidestage.terminals.desk import Started
from sidestage.terminals.model import Terminal, TerminalState
from sidestage.terminals.row_writer import RowWriter
from sidestage.terminals.store import TerminalStore
from sidestage.terminals.templates import SHELL
from tests.unit.terminals.conftest import OWNER, Bench, make_bench, until


class FullDisk(SqlTerminalStore):
    """A store whose writes of rows fail while it is *full*."""

    full = False

    async def save(self, terminal: Terminal, record: AuditRecord | None = None) -> None:
        if self.full:
            raise StorageUnavailable("The disk is full.")
        await super().save(terminal, record)

    async def drop(
        self, terminal_id: TerminalId, *, keys: bool, record: AuditRecord | None = None
    ) -> None:
        if self.full:
            raise StorageUnavailable("The disk is full.")
        await super().drop(terminal_id, keys=keys, record=record)


def _is_the_port(store: FullDisk) -> TerminalStore:
    return store


@pytest.fixture
async def store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[FullDisk]:
    monkeypatch.setattr(row_writer, "WRITE_AGAIN_SECONDS", 0.01)
    database = await Database.open(tmp_path / "sidestage.db")
    yield FullDisk(database)
    await database.close()


@pytest.fixture
async def bench(store: FullDisk, tmp_path: Path) -> AsyncIterator[Bench]:
    made = await make_bench(store._database, tmp_path, store=store)
    running = asyncio.create_task(made.desk.run())
    yield made
    running.cancel()
    await asyncio.wait({running})


async def start(bench: Bench) -> Started:
    return await bench.desk.start(
        project_id=bench.project.id,
        template=SHELL,
        name=None,
        cols=80,
        rows=24,
        idempotency_key=None,
        actor=OWNER,
    )


async def test_a_terminal_that_runs_is_kept_and_its_row_is_written_later(
    store: FullDisk, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    store.full = True
    started = await start(bench)
    renamed = started.terminal.id
    assert bench.desk.feed.get(renamed) is not None
    (stored,), _ = await store.load()
    assert stored.starting
    store.full = False
    await until(lambda: "written again" in caplog.text)
    (stored,), _ = await store.load()
    assert not stored.starting
    assert stored.terminal.state is TerminalState.RUNNING
    actions = [entry.record.action for entry in await bench.audit.list_entries(limit=9)]
    assert actions.count("terminal.start") == 2  # begun, and done
    assert caplog.text.count("are written later") == 1


async def test_a_refused_start_is_told_as_that_while_the_disk_is_full(
    store: FullDisk, bench: Bench
) -> None:
    """The typed error was hidden by the database's, and files were left behind."""
    bench.host.fails_with = StartFailed("No.")
    store.full = True
    with pytest.raises(StartFailed):
        await start(bench)
    assert bench.preparer.finished


async def test_a_close_that_cannot_be_written_can_be_asked_again(
    store: FullDisk, bench: Bench
) -> None:
    terminal = (await start(bench)).terminal
    store.full = True
    with pytest.raises(StorageUnavailable):
        await bench.desk.close(terminal.id, actor=OWNER)
    store.full = False
    await bench.desk.close(terminal.id, actor=OWNER)
    assert (await store.load())[0] == ()


async def test_records_are_written_in_order_with_the_newest_row(
    store: FullDisk, bench: Bench
) -> None:
    terminal = (await start(bench)).terminal
    writer = RowWriter(store)
    writing = asyncio.create_task(writer.run())
    store.full = True
    for number in range(3):
        record = AuditRecord("a", f"act-{number}", terminal.id, AuditOutcome.DONE)
        await writer.write(terminal, record)
    await writer.write(terminal)
    store.full = False
    await until(lambda: not writer._kept)
    actions = [entry.record.action for entry in await bench.audit.list_entries(limit=3)]
    assert actions == ["act-2", "act-1", "act-0"]
    writing.cancel()
    await asyncio.wait({writing})
