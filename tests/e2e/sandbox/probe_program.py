"""Tries what a hostile program would, and tells how each try ended.

Runs inside the sandbox with the system's Python and nothing else:
`python3 probe_program.py '[["read", "/path"], ...]'` prints a JSON list with one errno
a try, 0 for success. It is no test and imports none.
"""

import ctypes
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path


def read(path: str) -> None:
    with Path(path).open("rb") as source:
        source.read(1)


def write(path: str) -> None:
    with Path(path).open("ab") as target:
        target.write(b"\n")


def make(path: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("{}")


def list_folder(path: str) -> None:
    list(Path(path).iterdir())


def rename(path: str) -> None:
    Path(path).rename(path + ".moved")


def unlink(path: str) -> None:
    Path(path).unlink()


def connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def connect_abstract(name: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + name)


def send_signal(pid: str) -> None:
    os.kill(int(pid), signal.SIGTERM)


def probe_signal(pid: str) -> None:
    os.kill(int(pid), 0)


def type_into_terminal(command: str) -> None:
    """ioctl with the command's low 32 bits as given, and any high bits."""
    libc = ctypes.CDLL(None, use_errno=True)
    byte = ctypes.create_string_buffer(b"x")
    result = libc.ioctl(0, ctypes.c_ulong(int(command, 0)), byte)
    if result < 0:
        raise OSError(ctypes.get_errno(), "ioctl")


def system_call(number: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(int(number), 0, 0, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "syscall")


TRIES: dict[str, Callable[[str], None]] = {
    "read": read,
    "write": write,
    "make": make,
    "list": list_folder,
    "rename": rename,
    "unlink": unlink,
    "connect": connect,
    "abstract": connect_abstract,
    "signal": send_signal,
    "signal0": probe_signal,
    "ioctl": type_into_terminal,
    "syscall": system_call,
}


def attempt(kind: str, subject: str) -> int:
    try:
        TRIES[kind](subject)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def main() -> None:
    signal.alarm(20)  # a try that hangs fails its test
    tries = json.loads(sys.argv[1])
    print(json.dumps([attempt(kind, subject) for kind, subject in tries]))


if __name__ == "__main__":
    main()
