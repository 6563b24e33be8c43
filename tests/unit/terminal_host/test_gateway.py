"""The gateway with a stand-in for the host and for the web server."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from starlette.types import Message
from starlette.websockets import WebSocket

from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from sidestage.errors import HostUnavailable, SidestageError, TicketRefused
from sidestage.ids import DeviceId, TerminalId
from sidestage.terminals.desk import Admission, TicketMode
from sidestage.terminals.model import HostEvent
from terminal_host.gateway.client import (
    PING_SECONDS,
    SILENCE_SECONDS,
    TerminalClient,
)
from terminal_host.gateway.closing import CLOSE_SECONDS
from terminal_host.gateway.host_attachment import HostAttachment
from terminal_host.gateway.host_client import HostClient
from terminal_host.gateway.messages import INPUT_LIMIT_BYTES, Attach, CloseCode
from terminal_host.gateway.sizes import SizeOwners
from terminal_host.gateway.socket import (
    CLIENTS_LIMIT,
    STRANGERS_LIMIT,
    TOKEN_CLIENTS_LIMIT,
    TerminalGateway,
)
from terminal_host.host_messages import Attached, AttachRequest
from tests.fakes.fast_clock import run_fast

HERE = TerminalId("terminal:here")
DEVICE = Principal(
    PrincipalKind.DEVICE,
    ADMIN_SCOPES,
    "device:a",
    device_id=DeviceId("device:a"),
    token_id="token:a",  # an id, no secret
)


class Socket:
    """A web server's end of one WebSocket: what came in, what went out."""

    def __init__(
        self, *, subprotocols: tuple[str, ...] = ("sidestage.terminal.v1",)
    ) -> None:
        self.incoming: asyncio.Queue[Message] = asyncio.Queue()
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.blocked = False
        self.broken = False
        """Whether the client reads nothing, so that sending never ends."""
        self.websocket = WebSocket(
            {
                "type": "websocket",
                "subprotocols": list(subprotocols),
                "path_params": {"terminal_id": HERE},
            },
            self.incoming.get,
            self._send,
        )
        self.incoming.put_nowait({"type": "websocket.connect"})

    async def _send(self, message: Message) -> None:
        if self.broken:
            raise RuntimeError("Unexpected ASGI message, after sending a close.")
        if self.blocked:
            await asyncio.Event().wait()
        self.sent.put_nowait(message)

    def say(self, **message: object) -> None:
        self.incoming.put_nowait(
            {"type": "websocket.receive", "text": json.dumps(message)}
        )

    def type(self, data: bytes) -> None:
        self.incoming.put_nowait({"type": "websocket.receive", "bytes": data})

    async def next(self) -> Message:
        async with asyncio.timeout(5):
            return await self.sent.get()

    async def message(self, kind: str) -> dict[str, Any]:
        """Return the next message of that type; others are passed over."""
        while True:
            got: dict[str, Any] = json.loads((await self.next()).get("text") or "{}")
            if got.get("type") == kind:
                return got

    async def close_code(self) -> int:
        while (message := await self.next())["type"] != "websocket.close":
            pass
        return int(message["code"])


@dataclass
class Host:
    """Hands out attachments whose other end the test holds."""

    answers: list[Attached | SidestageError] = field(default_factory=list)
    ends: list[socket.socket] = field(default_factory=list)
    requests: list[AttachRequest] = field(default_factory=list)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    came_back: asyncio.Event = field(default_factory=asyncio.Event)

    async def attach(self, request: AttachRequest) -> HostAttachment:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, SidestageError):
            raise answer
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.settimeout(5)
        self.ends.append(theirs)
        if len(self.ends) > 1:
            self.came_back.set()
        return HostAttachment(ours, answer, b"")

    async def resize(self, terminal_id: TerminalId, *, cols: int, rows: int) -> None:
        self.sizes.append((cols, rows))

    async def watch(self) -> AsyncIterator[HostEvent]:
        await asyncio.Event().wait()
        yield HostEvent(cast("Any", None))

    def close(self) -> None:
        for end in self.ends:
            end.close()


class Desk:
    """Admits whoever says the mode as the ticket."""

    current = True
    principal = DEVICE

    def spend_ticket(self, terminal_id: TerminalId, secret: str) -> Admission:
        if secret not in ("CONTROL", "VIEW"):
            raise TicketRefused("This ticket is not good here.")
        return Admission(terminal_id, TicketMode(secret), self.principal)

    def is_current(self, principal: Principal) -> bool:
        return self.current


def attached(
    *,
    offset: int = 0,
    repaint: int = 0,
    running: bool = True,
    status: int | None = None,
) -> Attached:
    return Attached(
        offset=offset,
        repaint_bytes=repaint,
        cols=80,
        rows=24,
        running=running,
        exit_status=status,
    )


@dataclass
class Set:
    """A gateway and its stand-ins."""

    host: Host
    desk: Desk
    gateway: TerminalGateway
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def serve(self, **attach: object) -> Socket:
        """Let a client come; it attaches at once if it is told how."""
        client = Socket()
        if attach:
            client.say(type="attach", **attach)
        self.tasks.append(asyncio.ensure_future(self.gateway.serve(client.websocket)))
        return client


@pytest.fixture
async def stage() -> AsyncGenerator[Set]:
    host, desk = Host(), Desk()
    gateway = TerminalGateway(
        cast("HostClient", host), desk, desk, first_message_seconds=0.05
    )
    made = Set(host, desk, gateway)
    yield made
    await gateway.close()
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)
    host.close()


async def test_without_the_subprotocol_the_handshake_is_refused(stage: Set) -> None:
    client = Socket(subprotocols=("other",))
    await stage.gateway.serve(client.websocket)
    assert (await client.next())["type"] == "websocket.close"


async def test_a_client_that_says_nothing_is_closed_in_time(stage: Set) -> None:
    assert await stage.serve().close_code() == 4408


async def test_the_oldest_stranger_goes_for_a_good_ticket(stage: Set) -> None:
    """The newest was refused: 32 silent sockets kept every good ticket out."""
    stage.gateway = TerminalGateway(
        cast("HostClient", stage.host), stage.desk, stage.desk
    )
    strangers = [stage.serve() for _ in range(STRANGERS_LIMIT)]
    for stranger in strangers:
        assert (await stranger.next())["type"] == "websocket.accept"
    stage.host.answers = [attached()]
    await stage.serve(ticket="CONTROL").message("attached")
    assert await strangers[0].close_code() == 1013
    assert strangers[1].sent.empty()  # one place was wanted, and one has gone


async def test_clients_are_limited(stage: Set, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CLIENTS_LIMIT > 20  # `serve` is stopped with 20 of them attached
    monkeypatch.setattr("terminal_host.gateway.socket.CLIENTS_LIMIT", 1)
    stage.host.answers = [attached()]
    await stage.serve(ticket="CONTROL").message("attached")
    assert await stage.serve(ticket="CONTROL").close_code() == 1013


async def test_a_repaint_and_the_output_behind_it_never_share_a_frame(
    stage: Set,
) -> None:
    stage.host.answers = [attached(offset=7, repaint=4)]
    client = stage.serve(ticket="VIEW")
    greeting = await client.message("attached")
    assert greeting["offset"] == 7
    assert (await client.message("repaint"))["length"] == 4
    stage.host.ends[0].sendall(b"drawlive")
    frames = [(await client.next())["bytes"] for _ in range(2)]
    assert frames == [bytes(7) + b"\x07draw", bytes(7) + b"\x07live"]


async def test_a_client_whose_bytes_are_held_gets_no_repaint(stage: Set) -> None:
    stage.host.answers = [attached(offset=9)]
    client = stage.serve(ticket="VIEW", after=9)
    await client.message("attached")
    stage.host.ends[0].sendall(b"x")
    assert (await client.next())["bytes"] == bytes(7) + b"\x09x"
    assert stage.host.requests[0].after == 9


async def test_a_client_that_fell_behind_is_told_of_the_gap(stage: Set) -> None:
    stage.host.answers = [attached(), attached(offset=500, repaint=1)]
    client = stage.serve(ticket="VIEW", after=0)
    await client.message("attached")
    stage.host.ends[0].sendall(b"abc")
    await client.next()
    stage.host.ends[0].close()
    gap = await client.message("gap")
    assert (gap["start"], gap["end"]) == (3, 500)
    assert (await client.message("repaint"))["offset"] == 500
    assert stage.host.requests[1].after == 3


async def test_after_the_last_byte_comes_the_status(stage: Set) -> None:
    stage.host.answers = [attached(), attached(offset=2, running=False, status=7)]
    client = stage.serve(ticket="VIEW", after=0)
    await client.message("attached")
    stage.host.ends[0].sendall(b"ab")
    stage.host.ends[0].close()
    assert (await client.next())["bytes"] == bytes(8) + b"ab"
    await stage.host.came_back.wait()
    stage.host.ends[1].close()
    assert await client.message("exit") == {"type": "exit", "status": 7, "offset": 2}
    assert await client.close_code() == 1000


async def test_without_a_host_the_client_is_told_to_come_back(stage: Set) -> None:
    stage.host.answers = [HostUnavailable("no host")]
    assert await stage.serve(ticket="VIEW").close_code() == 1012


async def test_input_reaches_the_program_and_doubled_answers_do_not(
    stage: Set,
) -> None:
    stage.host.answers = [attached()]
    client = stage.serve(ticket="CONTROL", after=0, cols=100, rows=30)
    await client.message("attached")
    client.type(b"\x1b[?1;2c")
    client.type(b"\x1b[I")
    assert await asyncio.to_thread(stage.host.ends[0].recv, 100) == b"\x1b[I"
    assert stage.host.sizes == []  # a focus report decides no size
    client.type(b"ls\r")
    received = b""
    while b"\r" not in received:
        received += await asyncio.to_thread(stage.host.ends[0].recv, 100)
    assert received == b"ls\r"
    assert stage.host.requests[0].writable
    assert stage.host.sizes == [(100, 30)]


@pytest.mark.parametrize(
    ("ticket", "data", "code"),
    [("VIEW", b"x", 4409), ("CONTROL", b"x" * (INPUT_LIMIT_BYTES + 1), 1009)],
)
async def test_input_that_may_not_come_closes(
    stage: Set, ticket: str, data: bytes, code: int
) -> None:
    stage.host.answers = [attached()]
    client = stage.serve(ticket=ticket, after=0)
    await client.message("attached")
    client.type(data)
    assert await client.close_code() == code


@pytest.mark.parametrize(
    "message",
    [
        {"type": "attach", "ticket": "CONTROL"},
        {"type": "ack", "offset": 1},
        {"type": "unknown"},
    ],
)
async def test_messages_at_the_wrong_time_close(
    stage: Set, message: dict[str, object]
) -> None:
    stage.host.answers = [attached()]
    client = stage.serve(ticket="CONTROL", after=0)
    await client.message("attached")
    client.say(**message)
    assert await client.close_code() == 4400


async def test_a_ping_is_answered(stage: Set) -> None:
    stage.host.answers = [attached()]
    client = stage.serve(ticket="VIEW", after=0)
    client.say(type="ping")
    await client.message("pong")


@pytest.mark.parametrize("by", ["token_id", "device_id"])
async def test_a_revoked_client_that_reads_nothing_is_let_go(
    stage: Set, by: str
) -> None:
    stage.host.answers = [attached()]
    client = stage.serve(ticket="CONTROL", after=0)
    await client.message("attached")
    client.blocked = True
    named = {"token_id": "token:a", "device_id": "device:a"}[by]
    async with asyncio.timeout(1):
        assert stage.gateway.drop(**cast("dict[str, Any]", {by: named})) == 1
        # At once, before anything else runs: nothing passes any more.
        stage.host.ends[0].setblocking(False)
        assert stage.host.ends[0].recv(1) == b""
        await stage.tasks[0]
    assert stage.gateway.clients == 0


async def test_a_revocation_spares_the_others(stage: Set) -> None:
    stage.host.answers = [attached()]
    await stage.serve(ticket="CONTROL", after=0).message("attached")
    assert stage.gateway.drop(token_id="token:b") == 0  # an id
    assert stage.gateway.clients == 1


async def test_each_frame_is_checked_for_a_revocation(stage: Set) -> None:
    stage.host.answers = [attached()]
    client = stage.serve(ticket="CONTROL", after=0)
    await client.message("attached")
    stage.desk.current = False
    client.type(b"rm -rf /\r")
    assert await client.close_code() == 4401
    assert await asyncio.to_thread(stage.host.ends[0].recv, 1) == b""


async def test_a_closed_gateway_lets_nobody_in(stage: Set) -> None:
    await stage.gateway.close()
    assert await stage.serve(ticket="CONTROL").close_code() == 1012


@pytest.mark.parametrize("last_word_seconds", [0, 1, 19, 20, 21, 30.5])
@pytest.mark.parametrize("reads", [True, False])
def test_a_silent_client_is_gone_within_a_minute(
    last_word_seconds: float, reads: bool
) -> None:
    """Half-open sockets held 972 terminals of a neighbour's for ever.

    Ours counted two pings: 60 s after the last word, and for ever if the ping itself
    waited for a client that reads nothing.
    """

    async def fall_silent() -> float:
        clock = asyncio.get_running_loop().time
        client = Socket()
        await client.websocket.accept()
        client.blocked = not reads
        served = asyncio.ensure_future(silent_client(client).run())
        await asyncio.wait([served], timeout=last_word_seconds)
        client.say(type="pong")
        spoke_at = clock()
        async with asyncio.timeout(600):
            await served
        return clock() - spoke_at

    assert PING_SECONDS < 30
    found_after = SILENCE_SECONDS if reads else SILENCE_SECONDS + CLOSE_SECONDS
    assert run_fast(fall_silent()) == pytest.approx(found_after, abs=0.1)
    assert found_after < 55


def test_a_silent_client_is_pinged_and_told_why_it_is_closed() -> None:
    async def fall_silent() -> list[str]:
        client = Socket()
        await client.websocket.accept()
        await silent_client(client).run()
        texts = [client.sent.get_nowait() for _ in range(client.sent.qsize())]
        assert texts[-1]["code"] == 4408
        return [json.loads(it["text"])["type"] for it in texts if "text" in it]

    assert run_fast(fall_silent()) == ["ping", "ping", "error"]


def silent_client(client: Socket) -> TerminalClient:
    """Return the server's side of *client*, whose host never answers."""
    desk = Desk()
    return TerminalClient(
        client.websocket,
        desk.spend_ticket(HERE, "VIEW"),
        Attach("VIEW", after=0),
        host=SilentHost(),
        door=desk,
        sizes=SizeOwners(lambda _id, _size: None),
    )


class SilentHost:
    """A host that never answers."""

    async def attach(self, request: AttachRequest) -> HostAttachment:
        del request
        await asyncio.Event().wait()
        raise AssertionError


async def test_one_token_cannot_take_every_place(
    stage: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that may only look could hold all 256, and kept every other device out."""
    assert 20 < TOKEN_CLIENTS_LIMIT <= CLIENTS_LIMIT // 4
    monkeypatch.setattr("terminal_host.gateway.socket.TOKEN_CLIENTS_LIMIT", 1)
    stage.host.answers = [attached(), attached()]
    await stage.serve(ticket="VIEW").message("attached")
    assert await stage.serve(ticket="VIEW").close_code() == CloseCode.QUOTA
    other = Principal(PrincipalKind.BROWSER, DEVICE.scopes, "token:2", token_id="2")
    stage.desk.principal = other
    await stage.serve(ticket="VIEW").message("attached")


async def test_a_client_that_broke_the_protocol_is_no_fault_of_ours(
    stage: Set, caplog: pytest.LogCaptureFixture
) -> None:
    """Each one that was closed by the server itself left a traceback in the log."""
    stage.host.answers.append(attached())
    client = stage.serve(ticket="CONTROL", after=0)
    await client.message("attached")
    client.broken = True
    stage.host.ends[0].send(b"output")
    async with asyncio.timeout(5):
        await stage.tasks[0]
    assert "failed" not in caplog.text
