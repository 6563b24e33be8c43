"""A cheap WebSocket client of three terminal servers, so that these are measured.

It copies no payload and masks with zeros, but behaves as `docs/terminal-protocol.md`
says: it acknowledges every 128 KiB and answers pings. As a program it floods: it lets a
terminal print a file for ever and takes all of it.

    python -m benchmarks.terminal_client DOOR FILE
"""

import base64
import json
import os
import select
import selectors
import socket
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

DONE: Final = b"@@DONE@@"
"""Printed behind a flood; no command line holds it as it is."""
PATIENCE_SECONDS: Final = 60.0
QUIET_SECONDS: Final = 0.3
"""So long after the last byte a shell has said all it had to say."""
KEY_PAUSE_SECONDS: Final = 0.004
ACK_BYTES: Final = 128 * 1024
RECEIVE_BYTES: Final = 1 << 20
CONTROL_LIMIT_BYTES: Final = 1 << 16
OFFSET_BYTES: Final = 8
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10


@dataclass(frozen=True, slots=True)
class Door:
    """Where one terminal of a server is reached, and how it speaks."""

    kind: str
    """`sidestage`, `ttyd` or `terminado`."""
    port: int
    path: str
    ticket: str = ""


class Line:
    """One WebSocket to one terminal."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.socket = _connect(door)
        self.payload: bytearray | None = None
        """What the terminal printed, if it is set; as it comes in frames."""
        self.repainted = 0
        """How many bytes of repaint came."""
        self.repaint_is_over = False
        self._buffer = bytearray(RECEIVE_BYTES)
        self._head = b""
        self._left = 0
        self._opcode = 0
        self._acked = 0
        self._repaint_left = 0
        self._greet()

    def type(self, data: bytes) -> None:
        """Type *data*."""
        if self.door.kind == "ttyd":
            self._send(b"0" + data)
        elif self.door.kind == "terminado":
            self._send(json.dumps(["stdin", data.decode()]).encode(), _TEXT)
        else:
            self._send(data)

    def receive(self) -> memoryview:
        """Take in what there is, waiting for it; return it as it came, frames and all.

        Raises `EOFError` at the end and `TimeoutError`.
        """
        count = self.socket.recv_into(self._buffer)
        if not count:
            raise EOFError
        view = memoryview(self._buffer)[:count]
        self._parse(view)
        return view

    def settle(self) -> None:
        """Take in all that comes until nothing does for a while."""
        while self.door.kind == "sidestage" and not self.repaint_is_over:
            self.receive()  # not attached before; what is typed now would be lost
        while select.select([self.socket], [], [], QUIET_SECONDS)[0]:
            self.receive()

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def _greet(self) -> None:
        if self.door.kind == "ttyd":
            self._send(b'{"AuthToken":"","columns":80,"rows":24}')
        elif self.door.kind == "terminado":
            self._send(b'["set_size", 24, 80, 0, 0]', _TEXT)
        else:
            attach = {"type": "attach", "ticket": self.door.ticket}
            self._send(json.dumps(attach).encode(), _TEXT)

    def _send(self, data: bytes, opcode: int = _BINARY) -> None:
        size = len(data)
        length = bytes((size,)) if size < 126 else b"\x7e" + size.to_bytes(2, "big")
        mask = bytes((0x80 | length[0],)) + length[1:] + bytes(4)
        self.socket.sendall(bytes((0x80 | opcode,)) + mask + data)

    def _parse(self, view: memoryview) -> None:
        while view:
            if not self._left:
                view = self._begin(view)
                continue
            part, view = view[: self._left], view[self._left :]
            self._left -= len(part)
            if self.payload is not None and self._opcode in (0, _TEXT, _BINARY):
                self.payload += part

    def _begin(self, view: memoryview) -> memoryview:
        """Take in a frame's head, and as much of its payload as must be looked at."""
        data = self._head + bytes(view[:CONTROL_LIMIT_BYTES])
        begin, size = _read_head(data)
        wanted = begin + self._looked_at(data, size) if begin else len(data) + 1
        if len(data) < wanted:
            self._head = data
            return view[len(view) :]
        view = view[wanted - len(self._head) :]
        self._head, self._opcode = b"", data[0] & 15
        self._left = size - (wanted - begin)
        self._look(data[begin:wanted], size)
        return view

    def _looked_at(self, data: bytes, size: int) -> int:
        opcode = data[0] & 15
        if opcode in (_CLOSE, _PING):
            return size
        if self.door.kind != "sidestage":
            return 0
        return size if opcode == _TEXT else OFFSET_BYTES

    def _look(self, data: bytes, size: int) -> None:
        if self._opcode == _PING:
            self._send(data, _PONG)
        elif self.door.kind != "sidestage":
            return
        elif self._opcode == _BINARY:
            self._acknowledge(int.from_bytes(data, "big"), size - OFFSET_BYTES)
        elif self._opcode == _TEXT:
            message = json.loads(data)
            if message["type"] == "ping":
                self._send(b'{"type":"pong"}', _TEXT)
            elif message["type"] == "repaint":
                self._repaint_left = message["length"]
                self.repaint_is_over = not self._repaint_left
                self._acked = message["offset"]

    def _acknowledge(self, offset: int, size: int) -> None:
        if self._repaint_left:
            self._repaint_left -= size
            self.repainted += size
            self.repaint_is_over = not self._repaint_left
        elif offset + size - self._acked >= ACK_BYTES:
            self._acked = offset + size
            self._send(b'{"type":"ack","offset":%d}' % self._acked, _TEXT)


def flood(lines: list[Line], file: Path) -> float:
    """Print *file* in the first line's terminal; return MB/s until all have it."""
    for line in lines:
        line.settle()
    waiting = selectors.DefaultSelector()
    for line in lines:
        waiting.register(line.socket, selectors.EVENT_READ, (line, bytearray()))
    # Twice, lest a frame's head cuts it.
    mark = "printf '@@%s@@' DONE; "
    began = time.perf_counter()
    lines[0].type(f"cat {file}; {mark}sleep 0.1; {mark}\r".encode())
    while waiting.get_map():
        ready = waiting.select(PATIENCE_SECONDS)
        if not ready:
            raise TimeoutError("the flood stalled")
        for key, _ in ready:
            line, last = key.data
            view = line.receive()
            last[:] = last[-len(DONE) :] + bytes(view[-64:])
            if DONE in last:
                waiting.unregister(line.socket)
    seconds = time.perf_counter() - began
    for line in lines:
        line.settle()
    return file.stat().st_size / 1e6 / seconds


def echo(line: Line, keys: int) -> list[float]:
    """Return how long each of *keys* single keys took to come back, in ms."""
    line.settle()
    line.type(b"exec cat\r")
    line.settle()
    times = []
    for _ in range(keys):
        line.payload = bytearray()
        began = time.perf_counter()
        line.type(b"x")
        while b"x" not in line.payload:
            line.receive()
        times.append((time.perf_counter() - began) * 1e3)
        time.sleep(KEY_PAUSE_SECONDS)
    return times


def get(port: int, path: str, count: int) -> list[float]:
    """Return how long each of *count* requests took on one connection, in ms."""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    times = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(PATIENCE_SECONDS)
        for _ in range(count):
            began = time.perf_counter()
            connection.sendall(request)
            _receive_answer(connection)
            times.append((time.perf_counter() - began) * 1e3)
            time.sleep(KEY_PAUSE_SECONDS)
    return times


def _receive_answer(connection: socket.socket) -> None:
    answer, size = b"", None
    while size is None or len(answer) < size:
        answer += connection.recv(RECEIVE_BYTES)
        head, ended, _ = answer.lower().partition(b"\r\n\r\n")
        if ended:
            size = (
                len(head)
                + len(ended)
                + int(head.split(b"content-length:")[1].split()[0])
            )
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]


def percentile(values: list[float], percent: float) -> float:
    """Return that percentile of *values*."""
    if percent == 50:
        return statistics.median(values)
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


def encode_door(door: Door) -> str:
    """Return *door* as an argument of this program."""
    return json.dumps(asdict(door))


def _connect(door: Door) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", door.port), PATIENCE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    protocols = {"ttyd": "tty", "sidestage": "sidestage.terminal.v1"}
    lines = [
        f"GET {door.path} HTTP/1.1",
        f"Host: 127.0.0.1:{door.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
    ]
    if door.kind in protocols:
        lines.append(f"Sec-WebSocket-Protocol: {protocols[door.kind]}")
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            break
        answer += byte
    assert b" 101 " in answer[:20], answer
    return connection


def _read_head(data: bytes) -> tuple[int, int]:
    """Return where a frame's payload begins, and its size; zeros if not there yet."""
    size = data[1] if len(data) > 1 else 0
    begin = {126: 4, 127: 10}.get(size, 2)
    if len(data) < begin:
        return 0, 0
    return begin, int.from_bytes(data[2:begin], "big") if begin > 2 else size


def _flood_for_ever(door: Door, file: str) -> None:
    line = Line(door)
    line.settle()
    line.type(f"while :; do cat {file}; done\r".encode())
    while True:
        line.receive()


if __name__ == "__main__":
    _flood_for_ever(Door(**json.loads(sys.argv[1])), sys.argv[2])
