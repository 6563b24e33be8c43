"""A terminal of which nothing but its record is left."""

import socket
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sidestage.errors import TerminalNotRunning
from sidestage.ids import TerminalId
from sidestage.terminals.model import TerminalState
from terminal_host.host.attachment import Attachment
from terminal_host.host.ended_screen import LOST_NOTICE
from terminal_host.host.past_terminal import PastTerminal
from terminal_host.host.record_format import RecordMeta, ScreenRecord
from terminal_host.host_messages import AttachRequest, Holder
from terminal_host.screen import make_engine
from tests.fakes.records import META, NOON, make_record

ATTACH = AttachRequest(
    terminal_id=TerminalId("terminal:a"),
    after=None,
    writable=True,
    holder=Holder("token:a"),
)


class Past:
    """A past terminal, its record, and what it told."""

    def __init__(self, record: ScreenRecord | None, meta: RecordMeta = META) -> None:
        self.record = record
        self.changes: list[PastTerminal] = []
        self.executor = ThreadPoolExecutor(1)
        self.terminal = PastTerminal(
            meta, self.find, self.executor, on_change=self.changes.append
        )

    async def find(self) -> ScreenRecord | None:
        return self.record


@pytest.fixture
async def past() -> AsyncGenerator[Past]:
    made = Past(make_record(screen=b"\x1b[1mmarker\x1b[0m"))
    yield made
    made.executor.shutdown()


def open_ends() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(2)
    return ours, theirs


async def test_it_is_listed_as_its_record_says(past: Past) -> None:
    told = past.terminal.describe()
    assert (told.state, told.pid, told.ended_at) == (TerminalState.LOST, None, None)
    assert (told.name, told.title, told.project_id) == (
        META.name,
        META.title,
        META.project_id,
    )
    ended = replace(META, ended_at=NOON, exit_status=3)
    told = Past(None, ended).terminal.describe()
    assert (told.state, told.exit_status) == (TerminalState.EXITED, 3)


async def test_its_screen_is_read_from_the_record(past: Past) -> None:
    assert (await past.terminal.text(5)).strip() == "marker"
    [run] = (await past.terminal.styled(24))[0]
    assert (run.text, run.bold) == ("marker", True)


async def test_a_record_that_vanished_leaves_the_notice(past: Past) -> None:
    past.record = None
    attached, repaint = await past.terminal.open_at(ATTACH)
    assert (attached.cols, attached.rows, attached.lost) == (80, 24, True)
    client = make_engine(80, 24)
    client.feed(repaint)
    assert client.text(24).strip() == LOST_NOTICE


async def test_it_takes_no_size_and_no_input(past: Past) -> None:
    with pytest.raises(TerminalNotRunning):
        past.terminal.resize(10, 10)
    assert past.terminal.take_input(b"x")
    past.terminal.progressed()
    assert not past.changes


async def test_a_client_stays_until_the_terminal_is_closed(past: Past) -> None:
    ours, theirs = open_ends()
    terminal = past.terminal
    attachment = Attachment(terminal, ours, writable=True, holder=Holder("h"))
    terminal.add(attachment)
    attachment.start(b"repaint", terminal.ring.end, b"")
    assert theirs.recv(100) == b"repaint"
    assert terminal.describe().attached_clients == 1
    assert not attachment.closed.done()
    terminal.close()
    assert theirs.recv(100) == b""
    assert terminal.describe().attached_clients == 0
    assert len(past.changes) == 2
    theirs.close()


async def test_a_client_that_comes_as_it_is_closed_is_let_go(past: Past) -> None:
    """It stayed for ever on a terminal that nobody had any more."""
    ours, theirs = open_ends()
    past.terminal.close()
    attachment = Attachment(past.terminal, ours, writable=True, holder=Holder("h"))
    past.terminal.add(attachment)
    attachment.start(b"repaint", past.terminal.ring.end, b"")
    assert theirs.recv(100) == b"repaint"
    assert theirs.recv(100) == b""
    attachment.close()
    theirs.close()
