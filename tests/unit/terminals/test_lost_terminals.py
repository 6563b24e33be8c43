"""Rows of terminals whose host went away, with and without a record of it."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sidestage.errors import TerminalNotFound
from sidestage.ids import ProjectId, TerminalId
from sidestage.terminals.model import (
    HostEvent,
    HostEventKind,
    HostTerminal,
    Terminal,
    TerminalState,
)
from sidestage.terminals.screens import StyledRun
from tests.fakes.terminal_parts import FakeHost
from tests.unit.terminals.conftest import OWNER, Bench, until
from tests.unit.terminals.test_reconcile import restarted, resume, state_of

EARLIER = datetime(2026, 11, 30, 11, tzinfo=UTC)


def lose(bench: Bench, terminal: Terminal, **changes: object) -> HostTerminal:
    """Let the host die and the next one list the terminal from its record."""
    told = replace(
        bench.host.terminals[terminal.id],
        **{"state": TerminalState.LOST, "pid": None, **changes},  # type: ignore[arg-type]  # the tests' own names
    )
    bench.host.terminals[terminal.id] = told
    bench.host.events.put_nowait(HostEvent(HostEventKind.DISCONNECTED))
    bench.host.events.put_nowait(bench.host.list_event())
    return told


def row_of(bench: Bench, terminal_id: TerminalId) -> Terminal:
    row = bench.desk.feed.get(terminal_id)
    assert row is not None
    return row


async def test_a_terminal_the_next_host_has_a_record_of_is_lost(tmp_path: Path) -> None:
    """durability 1, 21: by feed, with its name, and its session free to resume."""
    async with restarted(tmp_path, FakeHost()) as bench:
        terminal = await resume(bench)
        lose(bench, terminal, title="last title", last_output_at=EARLIER)
        await until(lambda: state_of(bench, terminal) is TerminalState.LOST)
        row = bench.desk.feed.get(terminal.id)
        assert row is not None
        assert (row.name, row.title) == (terminal.name, "last title")
        assert row.last_output_at == EARLIER
        assert row.ended_at is not None
        assert row.exit_status is None
        await until(lambda: terminal.id in bench.preparer.finished)
        assert (await resume(bench)).id != terminal.id


async def test_a_lost_row_keeps_the_time_at_which_it_was_found_out(
    tmp_path: Path,
) -> None:
    host = FakeHost()
    async with restarted(tmp_path, host) as bench:
        terminal = await resume(bench)
        lose(bench, terminal)
        await until(lambda: state_of(bench, terminal) is TerminalState.LOST)
        before = bench.desk.feed.get(terminal.id)
    async with restarted(tmp_path, host) as bench:
        await bench.desk.rename(terminal.id, name="renamed", actor=OWNER)
        bench.host.change(terminal.id, attached_clients=1)
        await until(lambda: row_of(bench, terminal.id).attached_clients == 1)
        row = bench.desk.feed.get(terminal.id)
        assert row is not None
        assert before is not None
        assert (row.state, row.ended_at) == (TerminalState.LOST, before.ended_at)


async def test_a_terminal_that_had_exited_is_not_lost(tmp_path: Path) -> None:
    """durability 2a: even if its record is a second older than the news of its end."""
    async with restarted(tmp_path, FakeHost()) as bench:
        terminal = await resume(bench)
        bench.host.change(
            terminal.id, state=TerminalState.EXITED, exit_status=3, ended_at=EARLIER
        )
        await until(lambda: state_of(bench, terminal) is TerminalState.EXITED)
        told = lose(bench, terminal, exit_status=None, ended_at=None, title="seen")
        assert told.state is TerminalState.LOST
        await until(lambda: row_of(bench, terminal.id).title == "seen")
        row = bench.desk.feed.get(terminal.id)
        assert row is not None
        assert (row.state, row.exit_status) == (TerminalState.EXITED, 3)
        assert row.ended_at == EARLIER


async def test_a_record_that_knows_the_exit_turns_a_lost_row_into_an_exited_one(
    tmp_path: Path,
) -> None:
    """durability 2a: the server was down when the program ended."""
    host = FakeHost()
    async with restarted(tmp_path, host) as bench:
        terminal = await resume(bench)
    host.change(
        terminal.id, state=TerminalState.EXITED, exit_status=137, ended_at=EARLIER
    )
    async with restarted(tmp_path, host) as bench:
        await until(lambda: state_of(bench, terminal) is TerminalState.EXITED)
        row = bench.desk.feed.get(terminal.id)
        assert row is not None
        assert (row.exit_status, row.ended_at) == (137, EARLIER)


async def test_closing_a_lost_terminal_asks_the_host_to_remove_its_record(
    tmp_path: Path,
) -> None:
    """durability 8."""
    async with restarted(tmp_path, FakeHost()) as bench:
        terminal = await resume(bench)
        lose(bench, terminal)
        await until(lambda: state_of(bench, terminal) is TerminalState.LOST)
        await bench.desk.close(terminal.id, actor=OWNER)
        assert bench.host.terminals == {}
        assert bench.desk.feed.get(terminal.id) is None


async def test_a_record_without_a_row_keeps_the_name_it_was_started_with(
    tmp_path: Path,
) -> None:
    host = FakeHost()
    async with restarted(tmp_path, host) as bench:
        terminal = await resume(bench)
        request = bench.host.created[0]
        assert (request.name, request.project_id) == (terminal.name, bench.project.id)
    (tmp_path / "sidestage.db").unlink()
    host.change(
        terminal.id,
        state=TerminalState.LOST,
        name="as it was started",
        project_id=ProjectId("project:p"),
    )
    async with restarted(tmp_path, host) as bench:
        await until(lambda: state_of(bench, terminal) is TerminalState.LOST)
        row = bench.desk.feed.get(terminal.id)
        assert row is not None
        assert (row.name, row.project_id) == ("as it was started", "project:p")


async def test_a_screen_is_read_as_text_as_runs_and_searched(tmp_path: Path) -> None:
    async with restarted(tmp_path, FakeHost()) as bench:
        terminal_id, desk = (await resume(bench)).id, bench.desk
        assert await desk.screen_text(terminal_id, lines=3) == f"{terminal_id} 3"
        lines = await desk.screen_lines(terminal_id, lines=3)
        assert lines == ((StyledRun(text=f"{terminal_id} 3", bold=True),),)
        found = await desk.search_screen(terminal_id, text="needle", limit=7)
        assert found is not None
        assert (found.matches[0].line, found.matches[0].lines_from_end) == ("needle", 7)
        with pytest.raises(TerminalNotFound):
            await desk.screen_text(TerminalId("terminal:none"), lines=3)


async def test_a_lost_terminal_without_a_record_has_no_screen(tmp_path: Path) -> None:
    """A query of all screens failed over the one that was gone."""
    async with restarted(tmp_path, FakeHost()) as bench:
        terminal_id, desk = (await resume(bench)).id, bench.desk
        bench.host.terminals.clear()
        bench.host.events.put_nowait(bench.host.list_event())
        await until(lambda: row_of(bench, terminal_id).state is TerminalState.LOST)
        assert await desk.screen_text(terminal_id, lines=3) is None
        assert await desk.screen_lines(terminal_id, lines=3) is None
        assert await desk.search_screen(terminal_id, text="needle", limit=7) is None


async def test_a_new_name_reaches_the_host_and_needs_none(tmp_path: Path) -> None:
    async with restarted(tmp_path, FakeHost()) as bench:
        terminal = await resume(bench)
        await bench.desk.rename(terminal.id, name="one", actor=OWNER)
        assert bench.host.terminals[terminal.id].name == "one"
        bench.host.answers = False
        await bench.desk.rename(terminal.id, name="two", actor=OWNER)
        assert row_of(bench, terminal.id).name == "two"
