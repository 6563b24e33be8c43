"""After a crash of either side the host's list and the rows find each other again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sidestage.audit import AuditEntry, AuditOutcome, AuditRecord
from sidestage.errors import HostUnavailable, OutsideResumeBusy
from sidestage.ids import TerminalId
from sidestage.storage.database import Database
from sidestage.terminals import host_news
from sidestage.terminals.model import (
    HostEvent,
    HostEventKind,
    Terminal,
    TerminalState,
)
from sidestage.terminals.store import StoredTerminal
from tests.fakes.terminal_parts import FakeHost
from tests.unit.terminals.conftest import (
    OWNER,
    Bench,
    make_bench,
    make_session,
    until,
)

BEGUN = AuditRecord("admin", "session.resume", None, AuditOutcome.BEGUN)


@asynccontextmanager
async def restarted(tmp_path: Path, host: FakeHost) -> AsyncIterator[Bench]:
    """A server that starts on what an earlier one left in the database."""
    database = await Database.open(tmp_path / "sidestage.db")
    bench = await make_bench(database, tmp_path, host=host)
    bench.add_session(make_session(project_id=bench.project.id))
    running = asyncio.create_task(bench.desk.run())
    try:
        yield bench
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await database.close()


async def resume(bench: Bench, *, key: str | None = None) -> Terminal:
    started = await bench.desk.resume(
        session_id=make_session().id,
        cols=80,
        rows=24,
        idempotency_key=key,
        actor=OWNER,
    )
    return started.terminal


async def test_a_restarted_server_finds_its_terminals(tmp_path: Path) -> None:
    host = FakeHost()
    async with restarted(tmp_path, host) as bench:
        terminal = await resume(bench)
    async with restarted(tmp_path, host) as bench:
        await until(lambda: bench.links.linked == {terminal.id})
        assert bench.desk.feed.get(terminal.id) == terminal


async def test_what_the_host_no_longer_lists_is_lost(tmp_path: Path) -> None:
    host = FakeHost()
    async with restarted(tmp_path, host) as bench:
        terminal = await resume(bench)
    async with restarted(tmp_path, FakeHost()) as bench:
        await until(lambda: state_of(bench, terminal) is TerminalState.LOST)
        assert bench.host.created == []


async def test_a_host_that_dies_under_a_running_server_loses_its_rows(
    tmp_path: Path,
) -> None:
    async with restarted(tmp_path, FakeHost()) as bench:
        terminal = await resume(bench)
        bench.host.terminals.clear()
        bench.host.events.put_nowait(HostEvent(HostEventKind.DISCONNECTED))
        bench.host.events.put_nowait(bench.host.list_event())
        await until(lambda: state_of(bench, terminal) is TerminalState.LOST)
        await until(lambda: terminal.id in bench.preparer.finished)


async def test_a_terminal_without_a_row_is_adopted(tmp_path: Path) -> None:
    host = FakeHost()
    async with restarted(tmp_path, host) as bench:
        terminal = await resume(bench)
    (tmp_path / "sidestage.db").unlink()
    async with restarted(tmp_path, host) as bench:
        await until(lambda: state_of(bench, terminal) is TerminalState.RUNNING)
        row = bench.desk.feed.get(terminal.id)
        assert row is not None
        assert row.name == "Recovered terminal"
        assert row.session_id == terminal.session_id


async def test_a_start_the_host_never_got_is_taken_back(tmp_path: Path) -> None:
    async with restarted(tmp_path, FakeHost()) as bench:
        terminal = await resume(bench)
        await bench.store.drop(terminal.id, keys=True)
        await bench.store.begin(replace(terminal), None, BEGUN)
    async with restarted(tmp_path, FakeHost()) as bench:
        again = await resume(bench)
        rows, _ = await bench.store.load()
        assert [row.terminal.id for row in rows] == [again.id]


async def test_a_start_the_host_got_is_confirmed(tmp_path: Path) -> None:
    host = FakeHost()
    async with restarted(tmp_path, host) as bench:
        terminal = await resume(bench)
        await bench.store.drop(terminal.id, keys=True)
        await bench.store.begin(terminal, None, BEGUN)
    async with restarted(tmp_path, host) as bench:
        await until(lambda: state_of(bench, terminal) is TerminalState.RUNNING)
        row = await confirmed_row(bench)
        assert row.terminal.name == terminal.name


async def confirmed_row(bench: Bench) -> StoredTerminal:
    """Wait for the only row to be confirmed on disk, which the list precedes."""
    async with asyncio.timeout(5):
        while True:
            [row], _ = await bench.store.load()
            if not row.starting:
                return row


async def test_a_start_that_only_the_host_saw_end_is_audited(tmp_path: Path) -> None:
    """The server died between the host's start and its own entry: there was none."""
    host = FakeHost()
    async with restarted(tmp_path, host) as bench:
        terminal = await resume(bench)
        await bench.store.drop(terminal.id, keys=True)
        await bench.store.begin(terminal, None, BEGUN)
    async with restarted(tmp_path, host) as bench:
        await until(lambda: state_of(bench, terminal) is TerminalState.RUNNING)
        entry = await newest_entry_of(bench, "system")
        assert entry.record.action == "session.resume"
        assert (
            entry.record.detail
            == f"terminal={terminal.id} sandbox=bubblewrap recovered"
        )


async def newest_entry_of(bench: Bench, actor: str) -> AuditEntry:
    """Wait for it: the list changes before the row and its entry are on disk."""
    async with asyncio.timeout(5):
        while True:
            entry = await bench.audit.head()
            if entry is not None and entry.record.actor == actor:
                return entry


async def test_files_that_a_crash_left_behind_are_taken_back(tmp_path: Path) -> None:
    """Killed before the row was stored, a server left them in the state folder."""
    host = FakeHost()
    left = TerminalId("terminal:" + "0" * 32)
    async with restarted(tmp_path, host) as bench:
        terminal = await resume(bench)
        bench.preparer.prepared.append(left)
        bench.host.events.put_nowait(bench.host.list_event())
        await until(lambda: left in bench.preparer.finished)
        assert terminal.id not in bench.preparer.finished


async def test_a_host_that_does_not_answer_leaves_the_start_open(
    tmp_path: Path,
) -> None:
    async with restarted(tmp_path, FakeHost(answers=False)) as bench:
        with pytest.raises(HostUnavailable):
            await resume(bench, key="once")
        with pytest.raises(OutsideResumeBusy):
            await resume(bench)
        bench.host.answers = True
        bench.host.events.put_nowait(bench.host.list_event())
        await until(lambda: len(bench.desk.feed.values()) == 1)
        [terminal] = bench.desk.feed.values()
        assert (await resume(bench, key="once")).id == terminal.id
        assert len(bench.host.created) == 1


async def test_an_open_start_that_came_to_nothing_can_be_tried_again(
    tmp_path: Path,
) -> None:
    async with restarted(tmp_path, FakeHost(answers=False)) as bench:
        with pytest.raises(HostUnavailable):
            await resume(bench, key="once")
        bench.host.answers = True
        bench.host.terminals.clear()
        bench.host.events.put_nowait(bench.host.list_event())
        await until(lambda: bench.preparer.finished != [])
        await until(lambda: bench.desk._starts.unanswered() == set())
        terminal = await resume(bench, key="once")
        assert state_of(bench, terminal) is TerminalState.RUNNING


@pytest.mark.parametrize("was_refused", [True, False])
async def test_a_start_that_is_answered_too_late_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was_refused: bool
) -> None:
    """The session stayed "already being resumed" until the host was restarted."""
    monkeypatch.setattr(host_news, "ASK_AGAIN_SECONDS", 0.01)
    async with restarted(tmp_path, FakeHost(answers=False)) as bench:
        with pytest.raises(HostUnavailable):
            await resume(bench, key="once")
        [terminal_id] = bench.host.terminals
        if was_refused:
            bench.host.terminals.clear()
        bench.host.answers = True
        if was_refused:
            await until(lambda: terminal_id in bench.preparer.finished)
            await until(lambda: bench.desk._starts.unanswered() == set())
        else:
            await until(lambda: bench.desk.feed.get(terminal_id) is not None)
        again = await resume(bench, key="once")
        assert (again.id == terminal_id) is not was_refused


async def test_a_program_that_ends_at_once_is_not_shown_as_running(
    tmp_path: Path,
) -> None:
    """Its end was told while the start was being written down, and got lost."""
    async with restarted(tmp_path, FakeHost()) as bench:
        save = bench.store.save

        async def save_slowly(*args: object, **kwargs: object) -> None:
            del store.save
            [terminal_id] = bench.host.terminals
            bench.host.change(terminal_id, state=TerminalState.EXITED, exit_status=1)
            await until(bench.host.events.empty)
            await save(*args, **kwargs)  # type: ignore[arg-type]  # passed on

        store = bench.parts.store
        store.save = save_slowly  # type: ignore[method-assign]  # for one call
        terminal = await resume(bench)
        assert terminal.state is TerminalState.EXITED
        assert terminal.exit_status == 1


def state_of(bench: Bench, terminal: Terminal) -> TerminalState | None:
    row = bench.desk.feed.get(terminal.id)
    return None if row is None else row.state
