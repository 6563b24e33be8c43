"""Live terminals: what clients, floods, silence and endings must not spoil."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sidestage.terminals.model import CreateTerminal
from terminal_host.screen import make_engine
from terminal_host.vt_filter import silence
from tests.e2e.durability.conftest import Bench, lines_of
from tests.e2e.terminal_host.waiting import has_ended, until_exited
from tests.waiting import wait_for

NewTerminal = Callable[..., CreateTerminal]
CYCLES = Path(__file__).parents[3] / "benchmarks" / "attach_cycles.py"
FLOOD = "head -c 100000000 /dev/zero | tr '\\0' 'x'; echo; echo done; exec cat"


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        (r"\033[1;3", r"1mred", "red"),
        (r"\342\224", r"\200 drawn", "─ drawn"),
        (r"\033]0;a ti", r"tle\007after", "after"),
    ],
)
async def test_a_reattach_within_a_sequence_goes_on_right(
    bench: Bench, new_terminal: NewTerminal, first: str, second: str, shown: str
) -> None:
    """durability 11."""
    script = f"stty -echo; printf 'x{first}'; read line; printf '{second}!'; exec cat"
    terminal = await bench.host.create(new_terminal("sh", "-c", script))
    await bench.until_recorded(terminal.terminal_id, "x")
    async with bench.served.connect(terminal) as client:
        repaint = await client.until_message("repaint")
        while len(client.repaint) < repaint["length"]:
            await client.receive()
        await client.type(b"\r")
        await client.until_output(b"!")
        emulator = make_engine(80, 24)
        emulator.feed(bytes(client.repaint) + bytes(client.output))
    assert lines_of(emulator)[0] == f"x{shown}!"


async def test_a_hundred_megabytes_with_nobody_there_end_and_the_screen_is_current(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 12."""
    terminal = await bench.host.create(new_terminal("sh", "-c", FLOOD))
    await bench.until_recorded(terminal.terminal_id, "done")
    assert lines_of(await bench.seen(terminal))[22] == "done"


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
async def test_a_program_that_ended_before_anyone_came_tells_output_and_code(
    bench: Bench, new_terminal: NewTerminal, script: str, status: int
) -> None:
    """durability 13."""
    request = new_terminal("sh", "-c", f"echo last words; {script}")
    terminal = await bench.host.create(request)
    ended = await until_exited(bench.host, terminal.terminal_id)
    assert ended.exit_status == status
    async with bench.served.connect(terminal) as client:
        assert (await client.until_message("exit"))["status"] == status
    assert b"last words" in client.repaint


async def test_typing_decides_the_size_and_nothing_else_does(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 14."""
    terminal = await bench.host.create(new_terminal("cat", cols=100, rows=30))
    async with (
        bench.served.connect(terminal, cols=120, rows=40) as desk,
        bench.served.connect(terminal, cols=40, rows=20, device="device:b") as phone,
    ):
        await desk.until_message("attached")
        for report in (
            b"\x1b[I",  # focus
            b"\x1b[3;1R",  # CPR
            b"\x1b[?62;22c",  # DA
            b"\x1b[?2004;1$y",  # DECRPM
            b"\x1b]11;rgb:0000/0000/0000\x1b\\",  # OSC
        ):
            await phone.type(report)
        await phone.send(type="resize", cols=41, rows=21)
        await phone.send(type="ping")
        await phone.until_message("pong")
        [now] = await bench.host.list_terminals()
        assert (now.cols, now.rows) == (100, 30)
        await desk.type(b"a")
        # The size it has may be told before, so not the first message counts.
        resized = {"type": "resized", "cols": 120, "rows": 40, "owner": False}
        async with asyncio.timeout(20):
            while resized not in phone.messages:
                await phone.receive()


async def test_a_replay_makes_no_emulator_answer_whatever_was_printed(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 15: the raw tail included, also where it is cut."""
    asks = (
        r"\033[6n\033[c\033[>c\033[?1$p\033]11;?\007\033]52;c;aGk=\007\007\033Z"
        r"\033P$qm\033\\"
    )
    script = f"stty -echo; printf 'x{asks}y\\033]52;c;aG'; exec sleep 1000"
    terminal = await bench.host.create(new_terminal("sh", "-c", script))
    await bench.until_recorded(terminal.terminal_id, "xy")
    async with bench.served.connect(terminal) as client:
        repaint = await client.until_message("repaint")
        while len(client.repaint) < repaint["length"]:
            await client.receive()
    data = bytes(client.repaint)
    assert silence(data) == data
    assert b"aG" not in data
    assert b"\x07" not in data


def test_attaching_and_leaving_again_and_again_costs_nothing() -> None:
    """durability 16: a short run of the benchmark, which does it 1,000 times."""
    ran = subprocess.run(
        [sys.executable, str(CYCLES), "--cycles", "50"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


async def test_a_client_that_stops_reading_costs_the_others_nothing(
    bench: Bench, new_terminal: NewTerminal
) -> None:
    """durability 17: memory stays bounded; it gets a repaint when it returns."""
    script = "read line; seq 1 400000; echo done; exec cat"
    terminal = await bench.host.create(new_terminal("sh", "-c", script))
    async with (
        bench.served.connect(terminal, device="device:slow") as slow,
        bench.served.connect(terminal) as quick,
    ):
        await slow.until_message("repaint")
        await quick.type(b"\r")
        output = await quick.until_output(b"done\r\n")
        lines = output.split(b"\r\n")
        assert lines[1:400_001] == [b"%d" % number for number in range(1, 400_001)]
        await slow.until_output(b"done")
        assert "gap" in {message["type"] for message in slow.messages}
        assert len(slow.output) < 3 << 20


async def test_ending_a_terminal_leaves_nothing_of_it(
    bench: Bench, new_terminal: NewTerminal, tmp_path: Path
) -> None:
    """durability 19: grandchildren in sessions of their own included."""
    script = (
        "setsid -f sh -c 'trap \"\" HUP TERM; echo $$ >stray; sleep 3600'; "
        "sleep 3600 & echo $! >child; trap '' HUP; wait"
    )
    terminal = await bench.host.create(new_terminal("sh", "-c", script))
    pids = [terminal.pid]
    for name in ("stray", "child"):
        path = tmp_path / name
        text = await asyncio.to_thread(
            wait_for, lambda path=path: path.exists() and path.read_text(), name
        )
        pids.append(int(text))
    await bench.host.remove(terminal.terminal_id)
    assert [pid for pid in pids if pid is None or not has_ended(pid)] == []
