"""Times the hook program as an agent runs it: with a server there, and with it away.

    .venv/bin/python -m benchmarks.hook --rounds 200

One round is the whole shell command that is installed, from its start to its end, with
an event on its standard input. The server is the real receiver in a process of its own;
it answers and forgets. Away means: no socket, a socket nobody listens on, and one that
takes a connection and never answers. Prints median and 95th percentile.
"""

import argparse
import asyncio
import multiprocessing
import multiprocessing.synchronize
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from api.hook_program import HOOK_PROGRAM
from api.hook_socket import HookSockets
from sidestage.agents.claude_code.hook_intake import HookPeer
from sidestage.agents.claude_code.hook_settings import HookCommand
from sidestage.sessions.hooks import Hold

EVENT: Final = b"""{"session_id": "0b2f6c1e-93a5-4d0e-8f42-6d1c2a9b7e55",
"transcript_path": "/home/dev/.claude/projects/-home-dev-project/0b2f6c1e.jsonl",
"cwd": "/home/dev/project", "hook_event_name": "Stop", "stop_hook_active": false,
"last_assistant_message": "Which of the two shall it be?", "background_tasks": []}"""


class Forgetful:
    """Takes events in and forgets them."""

    async def take(self, data: bytes, peer: HookPeer, hold: Hold | None = None) -> None:
        """Forget it."""
        del data, peer, hold


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder):
            tell("server there", folder, rounds)
        (folder / "hook.sock").unlink(missing_ok=True)
        tell("no socket", folder, rounds)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "hook.sock"))
            tell("nobody listens", folder, rounds)
            listener.listen(rounds)
            tell("never answers", folder, rounds // 4)


def tell(what: str, folder: Path, rounds: int) -> None:
    command = HookCommand(
        python=Path(sys.executable),
        program=HOOK_PROGRAM,
        socket=folder / "hook.sock",
        spool=folder / "spool",
    ).render("event")
    took = sorted(measure(command) for _ in range(rounds))
    median, high = statistics.median(took), took[int(len(took) * 0.95)]
    print(f"{what:15} median {median:6.1f} ms, 95th percentile {high:6.1f} ms")


def measure(command: str) -> float:
    began = time.perf_counter()
    subprocess.run(["/bin/sh", "-c", command], input=EVENT, env={}, check=True)
    return (time.perf_counter() - began) * 1000


@contextmanager
def serving(folder: Path) -> Iterator[None]:
    ready = multiprocessing.Event()
    process = multiprocessing.Process(target=serve, args=(folder, ready), daemon=True)
    process.start()
    ready.wait(10)
    yield
    process.terminate()
    process.join()


def serve(folder: Path, ready: multiprocessing.synchronize.Event) -> None:
    async def work() -> None:
        await HookSockets(Forgetful(), state_dir=folder, counts=Counter()).start()
        ready.set()
        await asyncio.Event().wait()

    asyncio.run(work())


if __name__ == "__main__":
    main()
