"""Connections that send nothing, or half of something: what they may take, how long."""

import asyncio
import logging
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from api.doorway import DESCRIPTORS_WANTED
from tests.e2e.api.serving import Served, served
from tests.e2e.running_server import RunningServer
from tests.waiting import wait_for

SOON_SECONDS = 0.3
"""The deadlines of a server under test."""
PATIENCE_SECONDS = 10.0
HALVES = (
    b"",
    b"\r\n",
    b"POST /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"POST /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{",
)
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"


class Peer:
    """One raw connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, served: Served) -> bytes:
        """Send a whole request; return the answer's first line."""
        self.writer.write(WHOLE % served.port)
        async with asyncio.timeout(PATIENCE_SECONDS):
            first = await self.reader.readline()
            await self.reader.readuntil(b"ok\n")
        return first

    async def is_cut(self) -> bool:
        """Wait until the server ends it; raises `TimeoutError` if it does not."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                while await self.reader.read(1024):
                    pass
            except ConnectionResetError:
                pass
        return True

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


async def connect(served: Served, sent: bytes = b"") -> Peer:
    peer = Peer(*await asyncio.open_connection("127.0.0.1", served.port))
    peer.writer.write(sent)
    return peer


async def test_silent_and_half_requests_are_cut_off_in_time() -> None:
    """Nothing ended them: 2,500 took every descriptor of the server, with no token."""
    async with served(head_seconds=SOON_SECONDS, body_seconds=SOON_SECONDS) as server:
        peers = [await connect(server, HALVES[n % len(HALVES)]) for n in range(300)]
        for peer in peers:
            assert await peer.is_cut()
            await peer.close()


async def test_a_second_head_has_a_deadline_too() -> None:
    """Its first byte ended the keep-alive's, and nothing came in its place."""
    async with served(head_seconds=SOON_SECONDS) as server:
        for half in HALVES[1:3]:
            peer = await connect(server)
            assert b"200" in await peer.ask(server)
            peer.writer.write(half)
            assert await peer.is_cut()
            await peer.close()


async def test_a_head_without_an_end_is_cut_off() -> None:
    """It was kept in memory for as long as it went on."""
    async with served() as server:
        peer = await connect(server, HALVES[2] + b"X-More: " + b"x" * 200_000)
        assert await peer.is_cut()
        await peer.close()


async def test_a_request_in_parts_is_answered_within_the_deadlines() -> None:
    async with served() as server:
        peer = await connect(server)
        whole = WHOLE % server.port
        for byte in whole[:-1]:
            peer.writer.write(bytes([byte]))
            await peer.writer.drain()
        peer.writer.write(whole[-1:])
        assert b"200" in await peer.reader.readline()
        await peer.close()


async def test_a_full_house_lets_a_newcomer_in_for_the_oldest_stranger() -> None:
    """A thousand silent connections kept every owner's request out."""
    async with served(connections=4) as server:
        known = await connect(server)
        assert b"200" in await known.ask(server)
        strangers = [await connect(server, HALVES[2]) for _ in range(3)]
        newcomer = await connect(server)
        assert b"200" in await newcomer.ask(server)
        assert await strangers[0].is_cut()
        assert b"200" in await known.ask(server)
        for peer in (known, newcomer, *strangers):
            await peer.close()


async def test_what_is_no_http_is_not_written_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A web page that asks for https:// here could fill the disk, a line an attempt."""
    caplog.set_level(logging.INFO)
    async with served() as server:
        peer = await connect(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n")
        assert b"400" in await peer.reader.readline()
        await peer.close()
    assert not [line for line in caplog.messages if "Invalid HTTP" in line]


UPGRADE = (
    b"GET %s HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\n"
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.mark.parametrize(
    ("path", "host", "origin", "status"),
    [
        (b"/graphql", b"127.0.0.1:%d", b"http://evil.example", b"403"),
        (b"/graphql", b"evil.example:%d", b"http://evil.example", b"400"),
        (b"/nowhere", b"127.0.0.1:%d", b"http://127.0.0.1:%d", b"403"),
    ],
)
async def test_a_refused_upgrade_is_not_written_to_the_log(
    caplog: pytest.LogCaptureFixture,
    path: bytes,
    host: bytes,
    origin: bytes,
    status: bytes,
) -> None:
    """uvicorn logged an error for each: any web page could fill the disk."""
    async with served() as server:
        here = [
            part % server.port if b"%d" in part else part for part in (host, origin)
        ]
        peer = await connect(server, UPGRADE % (path, *here))
        assert status in await peer.reader.readline()
        assert await peer.is_cut()
        await peer.close()
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


@contextmanager
def few_descriptors(limit: int) -> Iterator[None]:
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


def test_more_strangers_than_the_usual_descriptors_keep_no_owner_out(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The soft limit stayed where the shell had it, and the control socket was cut."""
    home = tmp_path_factory.mktemp("h")
    environment = {"HOME": str(home), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    server = RunningServer(environment=environment)
    with ExitStack() as stack:
        with few_descriptors(200):
            stack.enter_context(server)
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        assert soft == min(hard, DESCRIPTORS_WANTED)
        host = wait_for(server.host_pid, "the terminal host listens")
        # Its terminals are given what we were given, not what we need ourselves.
        assert host is not None
        assert resource.prlimit(host, resource.RLIMIT_NOFILE) == (200, hard)
        port = int(server.url.rsplit(":", 1)[1])
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert server.post("{ server { version } }").status_code == 200
        control = httpx.HTTPTransport(uds=str(server.state_dir / "control.sock"))
        with httpx.Client(transport=control) as client:
            assert client.get("http://127.0.0.1/healthz").status_code == 200
    assert Path(server.log).exists()
