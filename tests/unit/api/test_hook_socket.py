"""Hooks' frames and sockets: who may speak, and what is cut off."""

import asyncio
import os
import random
import stat
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from api import hook_socket
from api.hook_frames import (
    NO_OPINION,
    PAYLOAD_LIMIT_BYTES,
    TAKEN,
    FrameHeader,
    FrameInvalid,
    digest_of,
    parse_header,
    render_decision,
)
from api.hook_socket import (
    TERMINAL_LIMIT_CONNECTIONS,
    HookSockets,
    Intake,
    bind_hook_socket,
    look_at_peer,
    read_credentials,
)
from sidestage.agents.claude_code.hook_intake import HookPeer
from sidestage.ids import TerminalId
from sidestage.sessions.hooks import Hold

CLAIM = b"0123456789abcdef"
TERMINAL = TerminalId("terminal:1")


class FakeIntake:
    """The port `Intake`: keeps what it was given."""

    def __init__(self) -> None:
        self.taken: asyncio.Queue[tuple[bytes, HookPeer, Hold | None]] = asyncio.Queue()
        self.error: Exception | None = None

    async def take(self, data: bytes, peer: HookPeer, hold: Hold | None = None) -> None:
        if self.error is not None:
            raise self.error
        self.taken.put_nowait((data, peer, hold))

    async def next(self) -> tuple[bytes, HookPeer, Hold | None]:
        async with asyncio.timeout(5):
            return await self.taken.get()


def _is_the_port(intake: FakeIntake) -> Intake:
    return intake


class Bench:
    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.intake = FakeIntake()
        self.counts: Counter[str] = Counter()
        self.sockets = HookSockets(self.intake, state_dir=state_dir, counts=self.counts)
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(
        self, path: Path | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        path = path or self.state_dir / "hook.sock"
        reader, writer = await asyncio.open_unix_connection(str(path))
        self._writers.append(writer)
        return reader, writer

    async def send(self, data: bytes, path: Path | None = None) -> bytes:
        """Send *data*; return all that comes back until the end."""
        reader, writer = await self.connect(path)
        writer.write(data)
        async with asyncio.timeout(5):
            try:
                return await reader.read()
            except ConnectionError:
                return b""

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        await self.sockets.close()


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path leaves room for a Unix socket's name, wherever tests run."""
    with tempfile.TemporaryDirectory(prefix="hooks-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
async def bench(short_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(short_path)
    yield bench
    await bench.close()


def event(data: bytes) -> bytes:
    return b'{"v":1,"kind":"event","length":%d}\n' % len(data) + data


def hold(data: bytes) -> bytes:
    header = b'{"v":1,"kind":"hold","length":%d,"claim":"%s"}\n'
    return header % (len(data), CLAIM.hex().encode()) + data


# Frames.


def test_a_header_says_how_long_the_event_is_and_whether_its_hook_waits() -> None:
    assert parse_header(event(b"abc").splitlines()[0]) == FrameHeader(3)
    assert parse_header(hold(b"abc").splitlines()[0]) == FrameHeader(3, CLAIM)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"5",
        b"{}",
        b'{"v":2,"kind":"event","length":3}',
        b'{"v":1,"kind":"other","length":3}',
        b'{"v":1,"kind":"event","length":"3"}',
        b'{"v":1,"kind":"event","length":true}',
        b'{"v":1,"kind":"event","length":0}',
        b'{"v":1,"kind":"event","length":-1}',
        b'{"v":1,"kind":"event","length":%d}' % (PAYLOAD_LIMIT_BYTES + 1),
        b'{"v":1,"kind":"hold","length":3}',
        b'{"v":1,"kind":"hold","length":3,"claim":"00"}',
        b'{"v":1,"kind":"hold","length":3,"claim":"zz"}',
        b'{"v":1,"kind":"hold","length":3,"claim":5}',
    ],
)
def test_what_is_no_header_is_refused(line: bytes) -> None:
    with pytest.raises(FrameInvalid):
        parse_header(line)


def test_garbled_headers_are_refused_or_read_but_never_crash() -> None:
    generator = random.Random(1)
    line = hold(b"abc").splitlines()[0]
    for _ in range(3_000):
        garbled = bytearray(line)
        for _ in range(generator.randrange(1, 5)):
            garbled[generator.randrange(len(garbled))] = generator.randrange(256)
        try:
            header = parse_header(bytes(garbled))
        except FrameInvalid:
            continue
        assert 0 < header.length <= PAYLOAD_LIMIT_BYTES


# Sockets.


async def test_an_event_is_taken_and_its_peer_is_known(bench: Bench) -> None:
    await bench.sockets.start()
    assert await bench.send(event(b"abc")) == TAKEN
    data, peer, held = await bench.intake.next()
    assert data == b"abc"
    assert held is None
    assert peer.terminal_id is None
    assert [it.pid for it in peer.ancestors][:2] == [os.getpid(), os.getppid()]


async def test_the_sockets_are_the_owners_alone(bench: Bench) -> None:
    (bench.state_dir / "terminals" / TERMINAL / "hook").mkdir(parents=True)
    bench.sockets.add_terminal(TERMINAL)
    await bench.sockets.start()
    paths = list(bench.state_dir.rglob("hook.sock"))
    assert len(paths) == 2
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_process_of_another_user_is_cut_off(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = (os.getpid(), os.geteuid() + 1)
    monkeypatch.setattr(hook_socket, "read_credentials", lambda peer: stranger)
    await bench.sockets.start()
    assert await bench.send(event(b"abc")) == b""
    assert bench.intake.taken.empty()
    assert bench.counts["hook_foreign_users"] == 1


async def test_a_terminals_socket_is_its_identity(bench: Bench) -> None:
    """Also where its path is longer than a socket's address may be."""
    terminal = TerminalId("terminal:" + "1" * 100)
    folder = bench.state_dir / "terminals" / terminal / "hook"
    folder.mkdir(parents=True)
    await bench.sockets.start()
    bench.sockets.add_terminal(terminal)
    short = bench.state_dir / "short"
    short.symlink_to(folder)
    assert await bench.send(event(b"abc"), short / "hook.sock") == TAKEN
    _, peer, _ = await bench.intake.next()
    assert peer == HookPeer(terminal_id=terminal)
    bench.sockets.remove_terminal(terminal)
    with pytest.raises(ConnectionRefusedError):
        await bench.connect(short / "hook.sock")


async def test_a_terminal_without_a_hook_folder_gets_no_socket(bench: Bench) -> None:
    bench.sockets.add_terminal(TERMINAL)
    await bench.sockets.start()
    bench.sockets.remove_terminal(TERMINAL)
    bench.sockets.remove_terminal(TERMINAL)


async def test_a_socket_that_cannot_be_made_is_told_and_no_more(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    folder = bench.state_dir / "terminals" / TERMINAL / "hook"
    (folder / "hook.sock").mkdir(parents=True)
    bench.sockets.add_terminal(TERMINAL)
    assert "No hook socket" in caplog.text


async def test_what_connected_before_the_start_is_answered_then(bench: Bench) -> None:
    folder = bench.state_dir / "terminals" / TERMINAL / "hook"
    folder.mkdir(parents=True)
    bench.sockets.add_terminal(TERMINAL)
    sending = asyncio.create_task(bench.send(event(b"abc"), folder / "hook.sock"))
    await bench.sockets.start()
    assert await sending == TAKEN


async def test_a_dead_servers_socket_is_replaced(short_path: Path) -> None:
    bind_hook_socket(short_path).close()
    assert (short_path / "hook.sock").exists()
    with bind_hook_socket(short_path):
        _, writer = await asyncio.open_unix_connection(str(short_path / "hook.sock"))
        writer.close()


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", b"x" * 5_000, b'{"v":1,"kind":"event","length":3}\n'],
    ids=["http", "endless", "cut"],
)
async def test_bytes_that_are_no_frame_are_cut_off_and_counted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    monkeypatch.setattr(hook_socket, "FRAME_SECONDS", 0.05)
    await bench.sockets.start()
    assert await bench.send(data) == b""
    assert bench.intake.taken.empty()
    assert bench.counts["hook_frames_bad"] == 1


async def test_connections_over_the_limit_are_refused(bench: Bench) -> None:
    folder = bench.state_dir / "terminals" / TERMINAL / "hook"
    folder.mkdir(parents=True)
    await bench.sockets.start()
    bench.sockets.add_terminal(TERMINAL)
    path = folder / "hook.sock"
    for _ in range(TERMINAL_LIMIT_CONNECTIONS):
        _, writer = await bench.connect(path)
        writer.write(hold(b"abc"))
        await bench.intake.next()
    assert await bench.send(event(b"abc"), path) == b""
    assert bench.counts["hook_connections_refused"] == 1
    # Nobody else's hooks suffer from it.
    assert await bench.send(event(b"abc")) == TAKEN


async def test_a_bug_behind_a_socket_is_logged_without_what_was_sent(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.intake.error = RuntimeError("secret " + "words")
    await bench.sockets.start()
    assert await bench.send(event(b"abc")) == TAKEN
    await bench.close()
    assert "RuntimeError" in caplog.text
    assert "secret words" not in caplog.text


# Holds.


async def held(bench: Bench) -> tuple[asyncio.StreamReader, Hold, Any]:
    await bench.sockets.start()
    reader, writer = await bench.connect()
    writer.write(hold(b"abc"))
    _, _, waiting = await bench.intake.next()
    assert waiting is not None
    assert await reader.readline() == TAKEN
    return reader, waiting, writer


async def test_a_decision_goes_to_the_hook_that_asked_and_names_its_bytes(
    bench: Bench,
) -> None:
    reader, waiting, _ = await held(bench)
    assert waiting.digest == digest_of(b"abc")
    assert waiting.claim == digest_of(CLAIM)
    assert await waiting.answer({"behavior": "allow"})
    expected = render_decision({"behavior": "allow"}, digest=digest_of(b"abc"))
    assert await reader.read() == expected
    await waiting.wait_closed()
    assert not await waiting.answer({"behavior": "deny"})


async def test_no_opinion_lets_the_hook_go(bench: Bench) -> None:
    reader, waiting, _ = await held(bench)
    assert await waiting.answer(None)
    assert await reader.read() == NO_OPINION


async def test_a_hook_that_went_away_cannot_be_answered(bench: Bench) -> None:
    _, waiting, writer = await held(bench)
    writer.close()
    async with asyncio.timeout(5):
        await waiting.wait_closed()
    assert not await waiting.answer({"behavior": "allow"})


async def test_a_stop_cuts_a_waiting_hook_without_an_answer(bench: Bench) -> None:
    """An answer would end it; so it comes back to the next server."""
    reader, waiting, _ = await held(bench)
    await bench.sockets.close()
    assert await reader.read() == b""
    assert not await waiting.answer({"behavior": "allow"})


def test_a_peer_that_is_gone_has_no_parents() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    assert look_at_peer(pid) == ()


async def test_the_kernel_says_who_connected(short_path: Path) -> None:
    with bind_hook_socket(short_path) as listener:
        _, writer = await asyncio.open_unix_connection(str(short_path / "hook.sock"))
        peer, _ = listener.accept()
        with peer:
            assert read_credentials(peer) == (os.getpid(), os.geteuid())
        writer.close()
