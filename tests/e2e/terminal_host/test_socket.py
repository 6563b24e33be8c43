"""The companion WebSocket against a real host and real programs."""

import asyncio
import hashlib
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.asyncio.client import unix_connect
from websockets.exceptions import InvalidStatus

from sidestage.errors import HostUnavailable, TerminalNotFound
from sidestage.ids import TerminalId
from sidestage.terminals.desk import TicketMode
from sidestage.terminals.model import CreateTerminal, HostTerminal
from terminal_host.gateway.host_client import HostClient
from tests.e2e.terminal_host import raw_host
from tests.e2e.terminal_host.conftest import Served
from tests.e2e.terminal_host.waiting import until

FLOOD_DEADLINE_SECONDS = 60.0
"""For 53 MB: ten times what they take alone on two cores, with every byte looked at."""

NewTerminal = Callable[..., CreateTerminal]

RAW = """
import os, sys, tty
tty.setraw(0)
os.write(1, b"ready")
"""


async def test_what_is_typed_is_echoed(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal())
    async with served.connect(terminal) as client:
        await client.until_message("attached")
        await client.type(b"echo he''llo\r")
        await client.until_output(b"hello")
    assert await host.had_input(terminal.terminal_id)


async def test_a_program_that_ended_before_anyone_came_shows_its_output_and_code(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal("sh", "-c", "echo gone; exit 3"))
    async with served.connect(terminal) as client:
        exited = await client.until_message("exit")
        assert exited["status"] == 3
        assert b"gone" in client.repaint + client.output
        assert await client.until_closed() == (1000, "The program has ended.")


async def test_a_late_client_sees_the_screen_before_new_output(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    script = "printf 'early \\033[31mred\\033[0m'; read x; printf late; read x"
    terminal = await host.create(new_terminal("sh", "-c", script))
    await until(host, terminal.terminal_id, lambda t: t.last_output_at is not None)
    async with served.connect(terminal) as client:
        await client.until_output(b"red")
        assert b"early" in client.repaint
        assert client.messages[1]["type"] == "repaint"
        await client.type(b"\r")
        await client.until_output(b"late")
        assert b"late" in client.output
        assert b"late" not in client.repaint


async def test_a_client_that_comes_back_gets_every_byte_once(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    count = 100_000  # 0.7 MB: all of it is held
    terminal = await host.create(
        new_terminal("sh", "-c", f"stty -opost; read x; seq 1 {count}; read x")
    )
    whole = bytearray()
    async with served.connect(terminal) as client:
        await client.until_message("repaint")
        await client.type(b"\r")
        while not client.output:
            await client.receive()
        whole += client.output
        offset = client.offset
        client.connection.transport.abort()
    end = f"\n{count}\n".encode()
    while end not in whole[-100:]:
        async with served.connect(terminal, after=offset) as client:
            attached = await client.until_message("attached")
            assert attached["offset"] == offset
            for _ in range(3):
                if end not in whole[-100:] + client.output[-100:]:
                    await client.receive()
            whole += client.output
            offset = client.offset
            assert not client.repaint
            client.connection.transport.abort()
    numbers = whole[whole.index(b"1\n2\n") :].split()
    assert numbers == [str(n).encode() for n in range(1, count + 1)]


async def test_a_client_that_was_away_too_long_gets_a_gap_and_a_repaint(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    script = "printf start; read x; seq 1 400000; echo the end; cat"
    terminal = await host.create(new_terminal("sh", "-c", script))
    async with served.connect(terminal) as client:
        await client.until_output(b"start")
        offset = client.offset
        await client.type(b"\r")
    await until_text(host, terminal, "the end")
    async with served.connect(terminal, after=offset) as client:
        await client.until_output(b"the end")
        gap, repaint = client.messages[1:3]
        assert (gap["type"], repaint["type"]) == ("gap", "repaint")
        assert gap["start"] == offset
        assert gap["end"] == repaint["offset"] > offset + 2_000_000
        await client.type(b"and on\r")
        await client.until_output(b"and on")


async def test_a_repaint_inside_a_sequence_is_continued_by_the_output(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    script = "printf 'a\\033[3'; read x; printf '1mred'; cat"
    terminal = await host.create(new_terminal("sh", "-c", f"stty -echo; {script}"))
    await until(host, terminal.terminal_id, lambda t: t.last_output_at is not None)
    async with served.connect(terminal) as client:
        await client.until_output(b"\x1b[3")
        assert client.repaint.endswith(b"\x1b[3")
        await client.type(b"\r")
        assert (await client.until_output(b"red")).startswith(b"1mred")


async def test_a_repaint_inside_a_character_ends_before_it(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    script = "printf '\\342\\200'; read x; printf '\\224.'; cat"
    terminal = await host.create(new_terminal("sh", "-c", f"stty -echo; {script}"))
    await until(host, terminal.terminal_id, lambda t: t.last_output_at is not None)
    async with served.connect(terminal) as client:
        await client.until_message("repaint")
        await client.type(b"\r")
        assert (await client.until_output(b".")).startswith("—.".encode())


async def test_no_frame_ends_inside_a_character(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    """xterm.js loses a character that is cut behind a byte 0x80, such as a dash."""
    text = "— 漢字 🎉 " * 20
    script = f"read x; yes '{text}' | head -n 3000; echo the end; cat"
    terminal = await host.create(new_terminal("sh", "-c", script))
    async with served.connect(terminal) as client:
        await client.until_message("repaint")
        await client.type(b"\r")
        await client.until_output(b"the end")
        for frame in client.frames:
            frame.decode("utf-8")
        assert len(client.frames) > 10


async def test_every_byte_is_data_in_both_directions(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    script = RAW + "while d := os.read(0, 1): os.write(1, d)"
    terminal = await host.create(new_terminal(sys.executable, "-c", script))
    every = bytes(range(256)) + b"\xff\xfe\xc3\x28\xf0\x9f"
    async with served.connect(terminal) as client:
        await client.until_output(b"ready")
        before = bytes(client.output)
        await client.type(every + b"the end")
        await client.until_output(b"the end")
        assert bytes(client.output)[len(before) :] == every + b"the end"


async def test_input_a_program_does_not_read_yet_is_kept_and_bounded(
    host: HostClient, served: Served, new_terminal: NewTerminal, tmp_path: Path
) -> None:
    go, count = tmp_path / "go", 3 << 20
    os.mkfifo(go)
    script = RAW + (
        "import hashlib\n"
        f"open({str(go)!r}).read()\n"
        f"digest, left = hashlib.sha256(), {count}\n"
        "while left:\n"
        "    data = os.read(0, 65536); left -= len(data); digest.update(data)\n"
        "os.write(1, digest.hexdigest().encode())\n"
    )
    request = new_terminal(sys.executable, "-c", script)
    terminal = await host.create(request)
    other = await host.create(new_terminal())
    whole = os.urandom(count)
    async with served.connect(terminal) as client, served.connect(other) as second:
        await client.until_output(b"ready")

        async def paste() -> None:
            for start in range(0, count, 1 << 17):
                await client.type(whole[start : start + (1 << 17)])

        pasting = asyncio.create_task(paste())
        await second.until_message("repaint")
        await second.type(b"echo he''llo\r")
        await second.until_output(b"hello")  # nobody else is held up
        await asyncio.to_thread(go.write_text, "")
        await client.until_output(hashlib.sha256(whole).hexdigest().encode())
        await pasting


async def test_answers_that_the_host_has_given_are_not_typed_again(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    """Some clients' emulators answer a replayed question: `56;3R` was typed."""
    terminal = await host.create(
        new_terminal(sys.executable, "-c", RAW + "print(os.read(0, 100).hex())")
    )
    async with served.connect(terminal) as client:
        await client.until_output(b"ready")
        for answer in (b"\x1b[?1;2c", b"\x1b[56;3R", b"\x1b]11;rgb:0/0/0\x07"):
            await client.type(answer)
        assert not await host.had_input(terminal.terminal_id)
        await client.type(b"x")
        await client.until_output(b"78")


async def test_who_types_or_claims_decides_the_size(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    """A phone that merely looked on shrank the terminal of the person at the desk."""
    terminal = await host.create(new_terminal("cat"))
    size = size_of(host, terminal)
    async with (
        served.connect(terminal, cols=120, rows=40) as desk,
        served.connect(terminal, cols=40, rows=20) as phone,
    ):
        await desk.until_message("repaint")
        await phone.until_message("repaint")
        await phone.send(type="resize", cols=41, rows=21)
        await phone.type(b"\x1b[I")  # it got the focus
        await desk.type(b"typed\r")
        await size(120, 40)
        assert (await desk.until_message("resized"))["owner"] is True
        await phone.send(type="resize", cols=42, rows=22)
        await desk.send(type="resize", cols=121, rows=41)
        await size(121, 41)
        await phone.send(type="claim", cols=30, rows=10)
        await size(30, 10)
        await desk.type(b"x")
        await size(121, 41)


async def test_a_viewer_may_neither_type_nor_claim(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal("cat"))
    async with served.connect(terminal, mode=TicketMode.VIEW) as viewer:
        await viewer.until_message("repaint")
        await viewer.type(b"rm -rf /\r")
        assert (await viewer.until_closed())[0] == 4409
    async with served.connect(terminal, mode=TicketMode.VIEW) as viewer:
        await viewer.until_message("repaint")
        await viewer.send(type="claim", cols=10, rows=10)
        assert (await viewer.until_closed())[0] == 4409
    assert not await host.had_input(terminal.terminal_id)


async def test_a_ticket_admits_once(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal("cat"))
    ticket = served.tickets.issue(terminal.terminal_id)
    async with served.connect(terminal, ticket=ticket) as client:
        await client.until_message("attached")
    async with served.connect(terminal, ticket=ticket) as client:
        assert (await client.until_message("error"))["code"] == "UNAUTHENTICATED"
        assert (await client.until_closed())[0] == 4401


async def test_a_terminal_that_is_closed_or_never_was_is_4404(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal("cat"))
    async with served.connect(terminal) as client:
        await client.until_message("repaint")
        await host.remove(terminal.terminal_id)
        code, _ = await client.until_closed()
        assert code in (1000, 4404)  # it may see the program's end first
    async with served.connect(terminal) as client:
        assert (await client.until_closed())[0] == 4404


async def test_a_revoked_device_is_closed_within_a_second(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal("sh", "-c", "yes"))
    async with (
        served.connect(terminal, device="device:a") as revoked,
        served.connect(terminal, device="device:b") as other,
    ):
        await revoked.until_message("repaint")
        await other.until_message("repaint")
        closing = asyncio.create_task(revoked.until_closed())
        await other.receive()
        async with asyncio.timeout(1):
            assert served.gateway.drop(token_id="token-of-device:a") == 1
            assert (await closing)[0] == 4401
        await other.receive()


async def test_input_after_a_revocation_reaches_nobody(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal("cat"))
    async with served.connect(terminal) as client:
        await client.until_message("repaint")
        served.tickets.revoked.add("token-of-device:a")
        await client.type(b"too late\r")
        assert (await client.until_closed())[0] == 4401
    assert not await host.had_input(terminal.terminal_id)


async def test_a_client_that_stops_reading_slows_nobody_and_is_repainted(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    # More than the memory it may take: 53 MB.
    script = "printf start; read x; seq 1 6000000; echo the end; cat"
    terminal = await host.create(new_terminal("sh", "-c", script))
    pid = raw_host.host_pid(served.path.parent)
    async with (
        served.connect(terminal) as quick,
        served.connect(terminal, mode=TicketMode.VIEW) as slow,
    ):
        await quick.until_output(b"start")
        await slow.until_output(b"start")
        before = resident_bytes(pid)
        await quick.type(b"\r")
        # Every byte: the client checks offsets.
        await quick.until_output(b"the end", deadline_seconds=FLOOD_DEADLINE_SECONDS)
        assert len(quick.output) > 50_000_000
        assert resident_bytes(pid) - before < 40 << 20
        await slow.until_output(b"the end", deadline_seconds=FLOOD_DEADLINE_SECONDS)
        assert [m["type"] for m in slow.messages].count("gap") >= 1
        await quick.type(b"and on\r")
        await slow.until_output(b"and on")


async def test_without_acks_the_server_waits_and_the_program_goes_on(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    script = "printf start; read x; seq 1 700000; echo the end; cat"
    terminal = await host.create(new_terminal("sh", "-c", script))
    async with served.connect(terminal) as client:
        await client.until_output(b"start")
        client.acknowledge = False
        await client.type(b"\r")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await client.until_output(b"the end")
        assert 1_000_000 <= len(client.output) < 1_600_000
        await until_text(host, terminal, "the end")
        client.acknowledge = True
        await client.send(type="ack", offset=client.offset)
        await client.until_output(b"the end")


async def test_two_hundred_clients_leave_no_descriptor_behind(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    """Half-open sockets kept 972 PTYs of a neighbour's server."""
    terminal = await host.create(new_terminal())
    pid = raw_host.host_pid(served.path.parent)

    async def visit(*, politely: bool) -> None:
        async with served.connect(terminal) as client:
            await client.until_message("repaint")
            if not politely:
                client.connection.transport.abort()

    await visit(politely=True)
    await until(host, terminal.terminal_id, lambda t: t.attached_clients == 0)
    before = descriptors(pid), descriptors(os.getpid())
    for number in range(200):
        await visit(politely=number % 2 == 0)
    await until(host, terminal.terminal_id, lambda t: t.attached_clients == 0)
    while served.gateway.clients:
        await host.list_terminals()
    after = descriptors(pid), descriptors(os.getpid())
    assert after[0] <= before[0]
    assert after[1] <= before[1] + 2


async def test_when_the_server_stops_clients_are_told_and_programs_go_on(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal("sh", "-c", "yes"))
    async with served.connect(terminal) as client:
        await client.until_message("repaint")
        async with asyncio.timeout(2):
            await served.gateway.close()
            assert (await client.until_closed())[0] == 1012
    async with served.open(terminal.terminal_id) as late:
        assert (await late.until_closed())[0] == 1012
    assert [t.state for t in await host.list_terminals()] == ["RUNNING"]


async def test_when_the_host_dies_clients_are_told_to_come_back(
    host: HostClient, served: Served, new_terminal: NewTerminal
) -> None:
    terminal = await host.create(new_terminal("cat"))
    async with served.connect(terminal) as client:
        await client.until_message("repaint")
        raw_host.kill(raw_host.host_pid(served.path.parent))
        code, _ = await client.until_closed()
        assert code in (1012, 4404)  # 4404 if the next host is there already
    await until_unknown(host, terminal.terminal_id)


async def until_unknown(host: HostClient, terminal_id: TerminalId) -> None:
    """Ask until the next host answers; it knows nothing of the terminal."""
    async with asyncio.timeout(20):
        while True:
            with suppress(HostUnavailable):
                with pytest.raises(TerminalNotFound):
                    await host.end(terminal_id)
                return
            # A call on a link that is just breaking fails without a turn of the loop,
            # and only a turn of the loop notices that it broke.
            await asyncio.to_thread(lambda: None)


async def test_other_subprotocols_are_refused(served: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with unix_connect(
            str(served.path), uri="ws://localhost/terminals/x/socket"
        ):
            pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ("not JSON", 4400),
        ('{"type":"attach"}', 4400),
        ('{"type":"attach","ticket":"x","Ticket":1}', 4400),
        ('{"type":"ack","offset":1}', 4400),
        ('{"type":"attach","ticket":"guessed"}', 4401),
        (b"\x00", 4400),
    ],
)
async def test_a_first_message_that_is_no_attach_closes(
    served: Served, first: str | bytes, code: int
) -> None:
    nobody = TerminalId("terminal:x")
    async with served.open(nobody) as client:
        await client.connection.send(first)
        assert (await client.until_closed())[0] == code


def size_of(
    host: HostClient, terminal: HostTerminal
) -> Callable[[int, int], Awaitable[None]]:
    """Return what waits for a size of the terminal."""

    async def wait(cols: int, rows: int) -> None:
        await until(
            host, terminal.terminal_id, lambda t: (t.cols, t.rows) == (cols, rows)
        )

    return wait


async def until_text(host: HostClient, terminal: HostTerminal, text: str) -> None:
    """Wait until the screen's last lines hold *text*."""
    async with asyncio.timeout(30):
        while text not in await host.screen_text(terminal.terminal_id, lines=5):
            pass


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
