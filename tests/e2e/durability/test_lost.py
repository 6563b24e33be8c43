"""A host that dies: what its terminals are to the next one, and to their clients."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sidestage.errors import AgentNotFound, TerminalNotFound, TerminalNotRunning
from sidestage.ids import TerminalId
from sidestage.terminals.desk import TicketMode
from sidestage.terminals.model import CreateTerminal, TerminalState
from sidestage.terminals.screens import StyledRun
from terminal_host.host.ended_screen import LOST_NOTICE, exited_notice
from tests.e2e.durability.conftest import Bench, bottom_notice, lines_of
from tests.e2e.terminal_host.waiting import until_exited
from tests.waiting import wait_for

NewTerminal = Callable[..., CreateTerminal]
FIXTURE = (
    Path(__file__).parents[2] / "unit/terminal_host/data/version-1.screen"
).read_bytes()


async def test_a_killed_hosts_terminal_is_lost_and_shows_its_last_screen(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 1."""
    terminal = await bench.host.create(new_terminal())
    async with bench.served.connect(terminal) as client:
        await client.type(b"printf '\\033[?1000;1006h'; echo 'mar''ker'\r")
        await client.until_output(b"marker")
    await bench.until_recorded(terminal.terminal_id, "marker")
    listed = (await bench.crash())[terminal.terminal_id]
    assert (listed.state, listed.pid) == (TerminalState.LOST, None)
    assert (listed.cols, listed.rows) == (80, 24)
    for mode in (TicketMode.CONTROL, TicketMode.VIEW):
        emulator = await bench.seen(listed, mode=mode)
        assert "marker" in lines_of(emulator)
        assert bottom_notice(emulator) == LOST_NOTICE
        for number in (25, 1000, 1006):
            assert not emulator.mode(number, private=True)
    terminal_id = terminal.terminal_id
    assert "marker" in await bench.host.screen_text(terminal_id, lines=50)
    lines = await bench.host.screen_lines(terminal_id, lines=24)
    assert (StyledRun(text="marker"),) in lines
    found = await bench.host.search(terminal_id, text="MARKER", limit=5)
    assert found.matches[0].line == "marker"


async def test_nothing_that_is_done_to_a_lost_terminal_starts_anything(
    bench: Bench, new_terminal: NewTerminal, tmp_path: Path
) -> None:
    """durability 2: and a new size brings the screen reflowed to it."""
    terminal = await bench.host.create(new_terminal())
    async with bench.served.connect(terminal) as client:
        await client.type(b"echo 'mar''ker' " + b"word " * 30 + b"\r")
        await client.until_output(b"marker word")
    await bench.until_recorded(terminal.terminal_id, "marker word")
    listed = (await bench.crash())[terminal.terminal_id]
    async with bench.served.connect(listed, cols=100, rows=30) as client:
        attached = await client.until_message("attached")
        assert (attached["state"], attached["owner"]) == ("LOST", False)
        await client.until_output(b"again.")
        for data in (
            b"touch typed\r",
            b"\x1b[200~touch pasted\r\x1b[201~",
            b"\x1b[M !!\x1b[<0;3;3M",
        ):
            await client.type(data)
        for kind, cols, rows in (("resize", 60, 20), ("claim", 120, 40)):
            client.messages.clear()
            await client.send(type=kind, cols=cols, rows=rows)
            repaint = await client.until_message("repaint")
            assert (repaint["cols"], repaint["rows"]) == (cols, rows)
            await client.until_output(b"again.")
        assert b"word" in client.repaint
        assert not client.output
        assert [m for m in client.messages if m["type"] == "exit"] == []
    with pytest.raises(TerminalNotRunning):
        await bench.host.resize(terminal.terminal_id, cols=10, rows=10)
    assert await bench.host.had_input(terminal.terminal_id) is False
    assert not {"typed", "pasted"} & {path.name for path in tmp_path.iterdir()}
    [now] = await bench.host.list_terminals()
    assert (now.state, now.pid, now.cols) == (TerminalState.LOST, None, 80)


async def test_each_client_has_the_lost_screen_at_its_own_size(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 2: a phone and a desk at once."""
    terminal = await bench.host.create(new_terminal("sh", "-c", "echo here; exec cat"))
    await bench.until_recorded(terminal.terminal_id, "here")
    listed = (await bench.crash())[terminal.terminal_id]
    for size in ((40, 20), (200, 60), None):
        emulator = await bench.seen(listed, size=size)
        assert emulator.size() == (size or (80, 24))
        assert lines_of(emulator)[0] == "here"
        assert "".join(LOST_NOTICE.split()) in "".join(emulator.text(3).split())


async def test_a_terminal_that_had_exited_stays_exited_with_its_status(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 2a."""
    request = new_terminal("sh", "-c", "echo last words; exit 3")
    terminal = await bench.host.create(request)
    ended = await until_exited(bench.host, terminal.terminal_id)
    await bench.until_end_recorded(terminal.terminal_id)
    wanted = (TerminalState.EXITED, 3, ended.ended_at)
    for _ in range(2):  # also after the next death
        listed = (await bench.crash())[terminal.terminal_id]
        assert (listed.state, listed.exit_status, listed.ended_at) == wanted
    async with bench.served.connect(listed) as client:
        assert (await client.until_message("attached"))["state"] == "EXITED"
        assert (await client.until_message("exit"))["status"] == 3
        assert (await client.until_closed())[0] == 1000
    emulator = await bench.seen(listed)
    assert "last words" in lines_of(emulator)
    assert bottom_notice(emulator) == exited_notice(3)


async def test_a_program_that_never_wrote_is_lost_too(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 1: an empty screen is a screen."""
    terminal = await bench.host.create(new_terminal("sleep", "1000"))
    path = bench.record_path(terminal.terminal_id)
    await asyncio.to_thread(wait_for, path.exists, "the record")
    listed = (await bench.crash())[terminal.terminal_id]
    emulator = await bench.seen(listed)
    assert emulator.text(24).strip() == LOST_NOTICE


async def test_good_records_restore_beside_damaged_ones(bench: Bench) -> None:
    """durability 4: damaged ones count as absent, and no start fails by them."""
    folder = bench.state_dir / "screens"
    for name, data in {
        "v1": FIXTURE,
        "v2": FIXTURE[:9] + b"\2" + FIXTURE[10:],
        "magic": b"X" + FIXTURE[1:],
        "truncated": FIXTURE[:-5],
        "over-long": FIXTURE + b"more",
        "flipped": FIXTURE[:200] + bytes([FIXTURE[200] ^ 1]) + FIXTURE[201:],
        "zero-size": FIXTURE[:10] + b"\0\0" + FIXTURE[12:],
        "empty": b"",
        "huge": FIXTURE + bytes(5 << 20),
    }.items():
        (folder / f"terminal:{name}.screen").write_bytes(data)
    listed = await bench.crash()
    assert list(listed) == [TerminalId("terminal:v1")]
    emulator = await bench.seen(listed[TerminalId("terminal:v1")])
    assert "marker of version 1 — 漢字" in lines_of(emulator)


async def test_a_lost_terminal_that_is_closed_is_gone_for_good(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 8: also after another kill; its clients are told."""
    requests = [new_terminal("sh", "-c", f"echo {n}; exec cat") for n in ("one", "two")]
    for request, text in zip(requests, ("one", "two"), strict=True):
        await bench.host.create(request)
        await bench.until_recorded(request.terminal_id, text)
    listed = await bench.crash()
    closed, kept = (request.terminal_id for request in requests)
    async with bench.served.connect(listed[closed]) as client:
        await client.until_output(b"again.")
        await bench.host.remove(closed)
        assert (await client.until_closed())[0] == 4404
    assert not bench.record_path(closed).exists()
    assert list(await bench.crash()) == [kept]
    with pytest.raises(TerminalNotFound):
        await bench.host.screen_text(closed, lines=5)


async def test_closing_a_terminal_deletes_even_a_record_nobody_can_read(
    bench: Bench,
) -> None:
    """durability 8."""
    path = bench.record_path(TerminalId("terminal:broken"))
    path.write_bytes(b"?")
    with pytest.raises(TerminalNotFound):
        await bench.host.remove(TerminalId("terminal:broken"))
    assert not path.exists()


async def test_a_running_terminal_that_is_closed_leaves_no_record(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 8."""
    terminal = await bench.host.create(new_terminal("sh", "-c", "echo x; exec cat"))
    await bench.until_recorded(terminal.terminal_id, "x")
    await bench.host.remove(terminal.terminal_id)
    assert not bench.record_path(terminal.terminal_id).exists()
    assert await bench.crash() == {}


async def test_an_id_that_is_used_again_gives_its_record_up_once_it_runs(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability, "Removed when"."""
    request = new_terminal("sh", "-c", "echo before; exec cat")
    await bench.host.create(request)
    await bench.until_recorded(request.terminal_id, "before")
    await bench.crash()
    bad = new_terminal("no-such-program", terminal_id=request.terminal_id)
    with pytest.raises(AgentNotFound):
        await bench.host.create(bad)
    assert b"before" in bench.recorded(request.terminal_id)
    again = new_terminal(
        "sh", "-c", "echo after; exec cat", terminal_id=request.terminal_id
    )
    told = await bench.host.create(again)
    assert told.state is TerminalState.RUNNING
    await bench.until_recorded(request.terminal_id, "after")
    assert b"before" not in bench.recorded(request.terminal_id)


@pytest.mark.parametrize("end", [r"\033[38;5", r"\033]0;title", r"\346\274"])
async def test_a_kill_within_a_sequence_or_character_leaves_the_notice_intact(
    bench: Bench, new_terminal: NewTerminal, end: str
) -> None:
    """durability 10."""
    script = f"printf 'marker{end}'; exec sleep 1000"
    terminal = await bench.host.create(new_terminal("sh", "-c", script))
    await bench.until_recorded(terminal.terminal_id, "marker")
    emulator = await bench.seen((await bench.crash())[terminal.terminal_id])
    assert lines_of(emulator)[0] == "marker"
    assert bottom_notice(emulator) == LOST_NOTICE


async def test_a_host_that_is_told_to_stop_records_what_it_shows(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability, "When": within its bounded shutdown; its programs did not exit."""
    terminal = await bench.host.create(new_terminal("sh", "-c", "echo early; exec cat"))
    await bench.until_recorded(terminal.terminal_id, "early")
    shutil.rmtree(bench.state_dir / "screens")
    async with bench.served.connect(terminal) as client:
        await client.type(b"late\r")
        await client.until_output(b"late")
    [listed] = (await bench.stop()).values()
    assert listed.state is TerminalState.LOST
    assert "late" in lines_of(await bench.seen(listed))


@pytest.mark.parametrize("ahead", [-1, 0, 1000])
async def test_a_client_that_comes_back_to_a_lost_terminal_is_shown_its_end(
    bench: Bench, new_terminal: NewTerminal, ahead: int
) -> None:
    """durability 1: also one that had seen more output than was recorded."""
    terminal = await bench.host.create(new_terminal("sh", "-c", "echo here; exec cat"))
    await bench.until_recorded(terminal.terminal_id, "here")
    listed = (await bench.crash())[terminal.terminal_id]
    record = bench.record(terminal.terminal_id)
    assert record is not None
    after = record.meta.offset + ahead
    async with bench.served.connect(listed, after=after) as client:
        await client.until_output(b"again.")
        assert client.offset == max(after, record.meta.offset)
        gaps = [message for message in client.messages if message["type"] == "gap"]
        assert len(gaps) == (ahead < 0)
        await client.send(type="ack", offset=client.offset)
        await client.send(type="ping")
        await client.until_message("pong")
