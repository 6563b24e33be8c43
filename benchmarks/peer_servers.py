"""The servers of a comparison, each a process: ours, and its peers from npm and PyPI.

The peers are installed below `.tools`, from the lock files in `benchmarks/peers`; they
are no dependencies of ours.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

CHECKOUT: Final = Path(__file__).parents[1]
PEERS: Final = CHECKOUT / "benchmarks" / "peers"
TOOLS: Final = CHECKOUT / ".tools"
NODE_HOME: Final = TOOLS / "bench-node"
PYTHON_HOME: Final = TOOLS / "bench-python"
START_SECONDS: Final = 20.0
"""From the start of a process to its port, on a loaded machine."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A server that can be measured."""

    name: str
    command: tuple[str, ...]


OURS: Final = Kind("Sidestage", (sys.executable, "-m", "benchmarks.memory_server"))
YOGA: Final = Kind("GraphQL Yoga", ("node", str(PEERS / "yoga.mjs")))
GRAPHQL_WS: Final = Kind("Node graphql-ws", ("node", str(PEERS / "graphql_ws.mjs")))
ARIADNE: Final = Kind(
    "ariadne",
    (str(PYTHON_HOME / "bin" / "python"), str(PEERS / "ariadne_server.py")),
)


@dataclass(slots=True)
class Running:
    """A server that runs."""

    kind: Kind
    port: int
    process: asyncio.subprocess.Process
    _used: psutil.Process = field(init=False)

    def __post_init__(self) -> None:
        self._used = psutil.Process(self.process.pid)

    def publish(self, per_second: float) -> None:
        """Let it publish so many changes a second from now on."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{per_second}\n".encode())

    def cpu_seconds(self) -> float:
        """Return what it used so far."""
        times = self._used.cpu_times()
        return float(times.user + times.system)


def install_peers() -> None:
    """Install what the lock files name, unless it is there."""
    if not _is_current(NODE_HOME, PEERS / "package-lock.json"):
        NODE_HOME.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PEERS / name, NODE_HOME)
        quiet = ("--silent", "--no-audit", "--no-fund")
        subprocess.run(["npm", "ci", *quiet], cwd=NODE_HOME, check=True)
        _note(NODE_HOME, PEERS / "package-lock.json")
    if not _is_current(PYTHON_HOME, PEERS / "requirements.txt"):
        make = [sys.executable, "-m", "venv", str(PYTHON_HOME)]
        subprocess.run(make, check=True)
        pip = [str(PYTHON_HOME / "bin" / "pip"), "install", "--quiet", "-r"]
        subprocess.run([*pip, str(PEERS / "requirements.txt")], check=True)
        _note(PYTHON_HOME, PEERS / "requirements.txt")


def _is_current(home: Path, lock: Path) -> bool:
    note = home / "installed-from"
    return note.exists() and note.read_text() == lock.read_text()


def _note(home: Path, lock: Path) -> None:
    (home / "installed-from").write_text(lock.read_text())


@asynccontextmanager
async def running(
    kind: Kind, rows: Path, *, arguments: Sequence[str] = ()
) -> AsyncGenerator[Running]:
    """Run a server until the block ends."""
    environment = {**os.environ, "ROWS": str(rows), "PEERS": str(NODE_HOME)}
    process = await asyncio.create_subprocess_exec(
        *kind.command,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment | {"NODE_ENV": "production"},
        cwd=CHECKOUT,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            port = int(await process.stdout.readline())
        yield Running(kind, port, process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
