"""What an agent runs as its hook: hands the event to Sidestage, if that is there.

    python3 -I -S sidestage_hook.py event --socket PATH [--spool FOLDER]

The first word says what to do with the bytes on the standard input:

    event   hand it over; without a server put it into the spool
    tool    hand it over; without a server forget it
    hold    hand it over and wait for a person's decision; without a server forget it

It prints nothing but a decision, and always exits 0: whatever is wrong, the agent goes
on as if there were no hook. `$SIDESTAGE_HOOK_SOCKET` goes before `--socket`. The wire
format stands in docs/hook-protocol.md.

It imports nothing of ours and as little as it can, for it runs at every event of every
agent: `_socket` opens 15 ms earlier than `socket`, and what only a waiting hook needs
is imported once it waits.
"""

import _socket
import os
import sys
import time

PATIENCE_SECONDS = 0.15
"""For a server that is there to take the event. The agent stands still meanwhile."""
STDIN_LIMIT_BYTES = 1024 * 1024
"""What the server takes (docs/hook-protocol.md); a larger event is not handed over."""
SOCKET_PATH_LIMIT_BYTES = 107
"""`sun_path` of a Unix socket's address, less its final zero (unix(7))."""
LINE_LIMIT_BYTES = 512
"""The server's lines have fewer than 150 bytes."""
DECISION_LIMIT_BYTES = 2 * 1024 * 1024
"""A decision may hold the changed input: at most what came, and some words more."""
RETURN_SECONDS = 30.0
"""How long a waiting hook tries to come back to a server that went away."""
RETURN_PATIENCE_SECONDS = 5.0
"""For a server that just started and has its hands full."""
RETRY_SECONDS = 0.25
"""Between two tries: nothing tells when a socket is there again."""
DEADLINE_SECONDS = 86_340.0
"""A minute less than the hook's entry in the agent's settings allows (24 h)."""
SPOOL_LIMIT_FILES = 512
SPOOL_LIMIT_BYTES = 64 * 1024
"""Of one file, so that the whole spool has at most 32 MiB. The oldest go first."""


class ServerGoneError(Exception):
    """The server is not there, or does not speak as agreed."""


def main(arguments: list[str]) -> None:
    """Hand over what is on the standard input."""
    started_ns = time.time_ns()
    verb, socket_path, spool = parse_arguments(arguments)
    payload = read_input()
    if not payload or not socket_path:
        return
    if verb == "hold":
        hold(socket_path, payload)
        return
    header = b'{"v":1,"kind":"event","length":%d}\n' % len(payload)
    try:
        hand_over(socket_path, header + payload, PATIENCE_SECONDS).close()
    except (OSError, ServerGoneError):
        if verb == "event" and spool:
            put_into_spool(spool, payload, started_ns)


def parse_arguments(arguments: list[str]) -> tuple[str, str, str]:
    """Return the verb, the socket's path and the spool's folder, each maybe ""."""
    words = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    socket_path = os.environ.get("SIDESTAGE_HOOK_SOCKET") or words.get("--socket", "")
    return (arguments or ["event"])[0], socket_path, words.get("--spool", "")


def read_input() -> bytes:
    """Return the whole standard input; nothing if it is over the limit.

    It is read to its end in any case: who writes it must not meet a closed pipe.
    """
    pieces = []
    size = 0
    while piece := os.read(0, 65_536):
        size += len(piece)
        if size <= STDIN_LIMIT_BYTES:
            pieces.append(piece)
    return b"".join(pieces) if size <= STDIN_LIMIT_BYTES else b""


def hand_over(
    socket_path: str, frame: bytes, patience_seconds: float
) -> _socket.socket:
    """Send *frame* and see that the server has it; return the open connection.

    Raises `OSError` or `ServerGoneError`, also when that takes too long in all.
    """
    deadline = time.monotonic() + patience_seconds
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(patience_seconds)
        connect(connection, socket_path)
        view = memoryview(frame)
        while view:
            view = view[connection.send(view) :]
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
        expect_taken(read_line(connection))
    except (OSError, ServerGoneError):
        connection.close()
        raise
    return connection


def connect(connection: _socket.socket, socket_path: str) -> None:
    """Connect to a path of any length."""
    if len(os.fsencode(socket_path)) <= SOCKET_PATH_LIMIT_BYTES:
        connection.connect(socket_path)
        return
    folder, _, name = socket_path.rpartition("/")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection.connect(f"/proc/self/fd/{descriptor}/{name}")
    finally:
        os.close(descriptor)


def expect_taken(line: bytes) -> None:
    """Raise `ServerGoneError` for any other line than that the event was taken."""
    if line != b'{"v":1,"kind":"taken"}':
        raise ServerGoneError


def read_line(connection: _socket.socket) -> bytes:
    """Return the next line without its end; raise `ServerGoneError` at the end."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte or len(line) > LINE_LIMIT_BYTES:
            raise ServerGoneError
        line += byte
    return bytes(line[:-1])


def hold(socket_path: str, payload: bytes) -> None:
    """Wait for a decision on *payload*, and print it if it names these very bytes."""
    import hashlib

    claim = os.urandom(16).hex().encode()
    digest = hashlib.sha256(payload).hexdigest()
    deadline = time.monotonic() + DEADLINE_SECONDS
    header = b'{"v":1,"kind":"hold","length":%d,"claim":"%s"}\n'
    frame = header % (len(payload), claim) + payload
    try:
        connection = hand_over(socket_path, frame, PATIENCE_SECONDS)
    except (OSError, ServerGoneError):
        return
    while True:
        try:
            decision = wait_for_decision(connection, digest, deadline)
        except TimeoutError:
            connection.close()
            return
        except (OSError, ServerGoneError):
            connection.close()
            connection = come_back(socket_path, frame)
        else:
            connection.close()
            sys.stdout.buffer.write(decision)
            sys.stdout.buffer.flush()
            return


def wait_for_decision(
    connection: _socket.socket, digest: str, deadline: float
) -> bytes:
    """Return what to print: nothing, or a decision on the bytes with that digest."""
    import json

    connection.settimeout(max(deadline - time.monotonic(), 0.001))
    answer = json.loads(read_line(connection))
    if answer["kind"] != "decision":
        return b""
    decision = read_exactly(connection, min(answer["length"], DECISION_LIMIT_BYTES))
    # A decision on anything else than what this very agent asked is none.
    return decision if answer["digest"] == digest else b""


def read_exactly(connection: _socket.socket, length: int) -> bytes:
    """Return *length* bytes; raise `ServerGoneError` if fewer come."""
    data = bytearray()
    while len(data) < length:
        piece = connection.recv(min(length - len(data), 65_536))
        if not piece:
            raise ServerGoneError
        data += piece
    return bytes(data)


def come_back(socket_path: str, frame: bytes) -> _socket.socket:
    """Return a new connection that made the same claim; raise if none is to be had."""
    deadline = time.monotonic() + RETURN_SECONDS
    while True:
        try:
            return hand_over(socket_path, frame, RETURN_PATIENCE_SECONDS)
        except (OSError, ServerGoneError):
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)


def put_into_spool(folder: str, payload: bytes, at_ns: int) -> None:
    """Write the event down for the server's next start; names sort by time."""
    if len(payload) > SPOOL_LIMIT_BYTES:
        return
    try:
        os.mkdir(folder, 0o700)
    except OSError:
        pass  # it is there already, or the state folder is gone: the next step tells
    name = f"{at_ns:020d}-{os.getpid():010d}-{os.urandom(4).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    written = f"{folder}/.{name}"
    descriptor = os.open(written, flags, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(b'{"v":1,"at":%d}\n' % (at_ns // 1_000_000) + payload)
        os.rename(written, f"{folder}/{name}.event")
    except OSError:
        os.unlink(written)
        raise
    make_room(folder)


def make_room(folder: str) -> None:
    """Drop the oldest events over the limit."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".event"))
    for name in names[: max(len(names) - SPOOL_LIMIT_FILES, 0)]:
        os.unlink(f"{folder}/{name}")


def run() -> None:
    """Run as a program: whatever happens, say nothing and exit 0."""
    try:
        main(sys.argv[1:])
    except BaseException:  # noqa: BLE001, S110 an agent must not fail by its hook
        pass
    # Not `sys.exit`: nothing is left to flush, and tearing down takes 3 ms.
    os._exit(0)


if __name__ == "__main__":
    run()
