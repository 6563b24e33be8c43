"""Ready frames are what a WebSocket library reads, and only go to who can take them."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from api.frames import find_writer, frame_head
from api.network_protocols import NetworkWebSocket


@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 65_535, 65_536, 100_000])
def test_a_frame_is_read_whole_by_a_library(length: int) -> None:
    payload = b"x" * length
    reader = ClientProtocol(parse_uri("ws://127.0.0.1"), state=State.OPEN)
    reader.receive_data(frame_head(length) + payload)
    [frame] = reader.events_received()
    assert isinstance(frame, Frame)
    assert (frame.opcode, frame.fin, frame.data) == (Opcode.TEXT, True, payload)


def a_protocol(**changes: Any) -> tuple[NetworkWebSocket, list[bytes]]:
    """Return a protocol whose socket is open, and what was written to it."""
    written: list[bytes] = []
    protocol = NetworkWebSocket.__new__(NetworkWebSocket)
    protocol.writable = asyncio.Event()
    protocol.writable.set()
    protocol.handshake_complete = True
    protocol.close_sent = False
    transport: Any = SimpleNamespace(write=written.append, is_closing=lambda: False)
    protocol.transport = transport
    for name, value in changes.items():
        setattr(protocol, name, value)
    return protocol, written


def test_three_pieces_are_one_frame() -> None:
    protocol, written = a_protocol()
    assert protocol.write_frame(b'{"payload":', b"1", b"}")
    assert written == [b'\x81\x0d{"payload":1}']


@pytest.mark.parametrize(
    "changes",
    [
        {"close_sent": True},
        {"handshake_complete": False},
        {"writable": asyncio.Event()},
        {"transport": SimpleNamespace(write=None, is_closing=lambda: True)},
    ],
    ids=["closed", "not open yet", "full", "closing"],
)
def test_nothing_is_written_to_who_cannot_take_it(changes: dict[str, Any]) -> None:
    protocol, written = a_protocol(**changes)
    assert not protocol.write_frame(b"a", b"b", b"c")
    assert written == []


def test_a_server_without_the_extension_offers_no_writer() -> None:
    assert find_writer({"type": "websocket"}) is None
