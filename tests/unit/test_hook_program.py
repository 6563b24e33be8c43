"""The hook program, run as agents run it: it must never be in their way."""

import hashlib
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sidestage_hook
from tests.waiting import wait_for

PROGRAM = Path(sidestage_hook.__file__)
PAYLOAD = b'{"session_id": "a", "hook_event_name": "Stop"}'
TAKEN = b'{"v":1,"kind":"taken"}\n'
LIMIT_SECONDS = 0.25
"""What an agent may lose by an event when no server answers."""
DECISION = b'{"hookSpecificOutput":{"decision":{"behavior":"allow"}}}'


def start(
    *arguments: str, environment: dict[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(PROGRAM), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment or {},
    )


def run(*arguments: str, payload: bytes = PAYLOAD, **more: Any) -> bytes:
    """Run the program to its end; it must exit 0 and not complain."""
    process = start(*arguments, **more)
    out, err = process.communicate(payload, timeout=20)
    assert (process.returncode, err) == (0, b"")
    return out


class Server:
    """A server of the test's own making on `hook.sock`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "hook.sock"
        self.frames: list[bytes] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()

    def serve(self, answer: Callable[[bytes], bytes | None], times: int = 1) -> None:
        """Answer that many connections, each with what *answer* makes of its frame."""

        def work() -> None:
            for _ in range(times):
                connection, _ = self._listener.accept()
                with connection:
                    frame = connection.recv(1 << 20)
                    self.frames.append(frame)
                    reply = answer(frame)
                    if reply is not None:
                        connection.sendall(reply)

        threading.Thread(target=work, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        self.path.unlink(missing_ok=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


def decide(frame: bytes, *, digest: str | None = None) -> bytes:
    """Return the frames that allow what *frame* asks."""
    payload = frame.partition(b"\n")[2]
    digest = digest or hashlib.sha256(payload).hexdigest()
    header = {"v": 1, "kind": "decision", "digest": digest, "length": len(DECISION)}
    return TAKEN + json.dumps(header).encode() + b"\n" + DECISION


def spooled(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*.event"))]


def test_an_event_is_handed_over_byte_by_byte_and_nothing_is_said(
    server: Server, tmp_path: Path
) -> None:
    server.serve(lambda frame: TAKEN)
    spool = tmp_path / "spool"
    out = run("event", "--socket", str(server.path), "--spool", str(spool))
    assert out == b""
    header, _, payload = server.frames[0].partition(b"\n")
    assert json.loads(header) == {"v": 1, "kind": "event", "length": len(PAYLOAD)}
    assert payload == PAYLOAD
    assert not spool.exists()


def test_the_variable_goes_before_the_argument(server: Server) -> None:
    server.serve(lambda frame: TAKEN)
    environment = {"SIDESTAGE_HOOK_SOCKET": str(server.path)}
    run("event", "--socket", "/nonexistent", environment=environment)
    assert len(server.frames) == 1


def hang(folder: Path) -> Path:
    """Return a socket on which connecting hangs: nobody accepts, and it is full."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "full.sock"))
    listener.listen(0)
    waiting = []
    while True:
        each = socket.socket(socket.AF_UNIX)
        each.setblocking(False)
        waiting.append(each)
        try:
            each.connect(str(folder / "full.sock"))
        except BlockingIOError:
            break
    hung.extend([listener, *waiting])
    return folder / "full.sock"


def stall(folder: Path) -> Path:
    """Return a socket that takes a connection and never answers."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "stalled.sock"))
    listener.listen(8)
    hung.append(listener)
    return folder / "stalled.sock"


def absent(folder: Path) -> Path:
    return folder / "absent.sock"


def dead(folder: Path) -> Path:
    """Return what a killed server leaves: a socket that nobody listens on."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "dead.sock"))
    return folder / "dead.sock"


hung: list[socket.socket] = []


@pytest.fixture(autouse=True)
def _close_hung() -> Iterator[None]:
    yield
    while hung:
        hung.pop().close()


@pytest.mark.parametrize("place", [absent, dead, hang, stall])
@pytest.mark.parametrize("verb", ["event", "tool", "hold"])
def test_without_a_server_the_agent_goes_on_at_once_as_without_a_hook(
    tmp_path: Path, place: Callable[[Path], Path], verb: str
) -> None:
    path, spool = place(tmp_path), tmp_path / "spool"
    took = []
    for _ in range(3):  # of a loaded machine the best of three counts
        began = time.monotonic()
        assert run(verb, "--socket", str(path), "--spool", str(spool)) == b""
        took.append(time.monotonic() - began)
    assert min(took) < LIMIT_SECONDS
    assert len(spooled(spool)) == (3 if verb == "event" else 0)


def test_the_spool_is_private_and_sorts_by_time(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    for number in range(3):
        payload = b'{"n":%d}' % number
        run("event", "--socket", "/x", "--spool", str(spool), payload=payload)
    contents = [data.partition(b"\n") for data in spooled(spool)]
    assert [payload for _, _, payload in contents] == [
        b'{"n":0}',
        b'{"n":1}',
        b'{"n":2}',
    ]
    assert json.loads(contents[0][0])["v"] == 1
    assert stat.S_IMODE(spool.stat().st_mode) == 0o700
    for path in spool.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_of_a_full_spool_the_oldest_event_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidestage_hook, "SPOOL_LIMIT_FILES", 3)
    for number in range(5):
        sidestage_hook.put_into_spool(str(tmp_path), b"%d" % number, number)
    assert [data[-1:] for data in spooled(tmp_path)] == [b"2", b"3", b"4"]


def test_an_event_too_large_for_the_spool_is_left_out(tmp_path: Path) -> None:
    large = b"x" * (sidestage_hook.SPOOL_LIMIT_BYTES + 1)
    run("event", "--socket", "/x", "--spool", str(tmp_path / "s"), payload=large)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("event",),
        ("other", "--socket"),
        ("event", "--socket", "/x", "--spool", "/proc/nothing"),
        ("hold", "--socket", "x\0y"[:1]),
    ],
)
def test_whatever_it_is_given_it_says_nothing_and_exits_0(
    arguments: tuple[str, ...],
) -> None:
    assert run(*arguments) == b""
    assert run(*arguments, payload=b"") == b""


def test_input_over_the_limit_is_read_to_its_end_and_not_handed_over(
    server: Server,
) -> None:
    large = b"x" * (sidestage_hook.STDIN_LIMIT_BYTES + 1)
    assert run("event", "--socket", str(server.path), payload=large) == b""
    assert server.frames == []


def test_a_decision_that_names_the_very_bytes_is_printed(server: Server) -> None:
    server.serve(decide)
    assert run("hold", "--socket", str(server.path)) == DECISION
    header = json.loads(server.frames[0].partition(b"\n")[0])
    assert header["kind"] == "hold"
    assert len(bytes.fromhex(header["claim"])) == 16


@pytest.mark.parametrize(
    "reply",
    [
        TAKEN + b'{"v":1,"kind":"none"}\n',
        TAKEN + b'{"v":1,"kind":"later"}\n',
        TAKEN + b"no json\n",
        TAKEN + b'{"v":1}\n',
        b"something else\n",
    ],
)
def test_any_other_answer_is_no_opinion(server: Server, reply: bytes) -> None:
    server.serve(lambda frame: reply)
    assert run("hold", "--socket", str(server.path)) == b""


def test_a_decision_on_other_bytes_is_not_printed(server: Server) -> None:
    server.serve(lambda frame: decide(frame, digest="0" * 64))
    assert run("hold", "--socket", str(server.path)) == b""


def test_a_waiting_hook_comes_back_to_a_new_server_with_the_same_claim(
    tmp_path: Path,
) -> None:
    first = Server(tmp_path)
    first.serve(lambda frame: TAKEN)  # and hangs up without a decision
    process = start("hold", "--socket", str(first.path))
    assert process.stdin is not None
    process.stdin.write(PAYLOAD)
    process.stdin.close()
    wait_for(lambda: first.frames, "the hook came")
    first.close()
    second = Server(tmp_path)
    second.serve(decide)
    try:
        assert process.wait(20) == 0
        assert process.stdout is not None
        assert process.stdout.read() == DECISION
        assert second.frames == first.frames
    finally:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        second.close()


def test_a_hook_that_waited_in_vain_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidestage_hook, "RETURN_SECONDS", 0.0)
    with pytest.raises(OSError, match="No such file"):
        sidestage_hook.come_back(str(tmp_path / "absent"), b"")


def test_a_socket_whose_path_is_too_long_for_an_address_is_reached(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ("d" * 120)
    folder.mkdir()
    (tmp_path / "short").symlink_to(folder)
    server = Server(tmp_path / "short")
    server.serve(lambda frame: TAKEN)
    try:
        run("event", "--socket", str(folder / "hook.sock"))
        assert len(server.frames) == 1
    finally:
        server.close()


def test_it_imports_nothing_that_takes_long() -> None:
    """Each of these costs more than the whole program (benchmarks/hook.py)."""
    code = (
        f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r});"
        "import sidestage_hook;"
        "print(*sorted({'socket','json','pathlib','re','hashlib','logging','asyncio',"
        "'typing','dataclasses'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, check=True
    )
    assert done.stdout.split() == []


def here(
    payload: bytes, monkeypatch: pytest.MonkeyPatch, *arguments: str | Path
) -> None:
    """Run the program's work in this process, where each line of it is counted."""
    pieces = [payload[i : i + 65_536] for i in range(0, len(payload), 65_536)]
    pieces.append(b"")
    monkeypatch.setattr(os, "read", lambda *_: pieces.pop(0))
    sidestage_hook.main([str(it) for it in arguments])


def test_an_event_that_was_taken_is_not_in_the_spool_too(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.serve(lambda frame: TAKEN)
    spool = tmp_path / "spool"
    here(PAYLOAD, monkeypatch, "event", "--socket", server.path, "--spool", spool)
    assert server.frames[0].endswith(PAYLOAD)
    assert not spool.exists()


@pytest.mark.parametrize("reply", [b"", b"who are you?\n", b"x" * 600])
def test_an_event_that_no_server_of_ours_took_is_in_the_spool(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: bytes
) -> None:
    server.serve(lambda frame: reply)
    spool = tmp_path / "spool"
    here(PAYLOAD, monkeypatch, "event", "--socket", server.path, "--spool", spool)
    [kept] = spooled(spool)
    assert kept.endswith(PAYLOAD)


@pytest.mark.parametrize(
    ("payload", "verb"),
    [
        (b"", "event"),
        (b"x" * (sidestage_hook.STDIN_LIMIT_BYTES + 1), "event"),
        (b"x" * (sidestage_hook.SPOOL_LIMIT_BYTES + 1), "event"),
        (PAYLOAD, "tool"),
        (PAYLOAD, "hold"),
    ],
)
def test_what_is_not_to_be_kept_leaves_no_spool(
    payload: bytes, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "spool"
    absent = tmp_path / "absent.sock"
    here(payload, monkeypatch, verb, "--socket", absent, "--spool", spool)
    assert not spool.exists()


def test_an_event_half_written_to_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(OSError, match="No space"):
        sidestage_hook.put_into_spool(str(tmp_path / "spool"), PAYLOAD, 1)
    assert list((tmp_path / "spool").iterdir()) == []


def test_over_the_limit_the_oldest_events_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidestage_hook, "SPOOL_LIMIT_FILES", 2)
    for number in range(4):
        sidestage_hook.put_into_spool(str(tmp_path), b"%d" % number, number)
    assert [event[-1:] for event in spooled(tmp_path)] == [b"2", b"3"]


def test_a_hook_cut_off_within_a_decision_asks_again_and_prints_it_whole(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setattr(sidestage_hook, "RETRY_SECONDS", 0.0)

    def cut_once(frame: bytes) -> bytes:
        whole = decide(frame)
        return whole[:-5] if len(server.frames) == 1 else whole

    server.serve(cut_once, times=2)
    here(PAYLOAD, monkeypatch, "hold", "--socket", server.path)
    assert capsysbinary.readouterr().out == DECISION
    assert server.frames[0] == server.frames[1]


@pytest.mark.parametrize("digest", ["0" * 64, None])
def test_only_a_decision_on_these_bytes_is_passed_on(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    digest: str | None,
) -> None:
    server.serve(lambda frame: decide(frame, digest=digest))
    here(PAYLOAD, monkeypatch, "hold", "--socket", server.path)
    assert capsysbinary.readouterr().out == (b"" if digest else DECISION)


def test_a_hook_nobody_decides_about_ends_before_its_agent_ends_it() -> None:
    server_side, hook_side = socket.socketpair()
    with server_side, hook_side, pytest.raises(TimeoutError):
        sidestage_hook.wait_for_decision(hook_side, "0", time.monotonic())
