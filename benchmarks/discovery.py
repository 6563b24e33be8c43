"""Discovery at scale: the first list cold and warm, memory, idle CPU, latency.

    python benchmarks/discovery.py --folder /tmp/bench --transcripts 2000 --bytes 2e9

Makes synthetic transcripts (kept for the next run; `--remove` deletes them afterwards),
starts discovery in processes of its own, and prints one line a figure. The bars stand
in docs/performance.md, "Discovery".
"""

import argparse
import asyncio
import json
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from sidestage.agents.claude_code.discovery import Discovery, open_discovery
from sidestage.feeds import Feed
from sidestage.ids import HostId
from sidestage.projects.model import Project
from sidestage.storage.database import Database
from sidestage.storage.transcripts import SqlTranscriptStore

FOLDERS = 40
LATENCY_ROUNDS = 200
IDLE_SECONDS = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--transcripts", type=int, default=2000)
    parser.add_argument("--bytes", type=float, default=2e9)
    parser.add_argument("--idle-seconds", type=float, default=IDLE_SECONDS)
    parser.add_argument("--remove", action="store_true")
    parser.add_argument("--run", choices=["cold", "warm"])
    arguments = parser.parse_args()
    if arguments.run:
        asyncio.run(_measure(arguments))
        return
    _make_transcripts(arguments.folder, arguments.transcripts, int(arguments.bytes))
    database = arguments.folder / "sidestage.db"
    for suffix in ("", "-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    for run in ("cold", "warm"):
        subprocess.run([sys.executable, *sys.argv, "--run", run], check=True)
    if arguments.remove:
        shutil.rmtree(arguments.folder)


def _record(kind: str, number: int, session: str, folder: str, **more: object) -> bytes:
    values = {
        "parentUuid": _uuid(number - 1) if number else None,
        "isSidechain": False,
        **({"attachment": more.pop("attachment")} if "attachment" in more else {}),
        "type": kind,
        "uuid": _uuid(number),
        "timestamp": f"2026-11-{1 + number % 28:02}T{number % 24:02}:00:00.000Z",
        "sessionId": session,
        "cwd": folder,
        "version": "2.1.328",
        "gitBranch": "main",
        **more,
    }
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def _uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def _content(session: str, folder: str, size: int) -> bytes:
    """Return a transcript in the proportions of real ones: mostly context."""
    parts: list[bytes] = []
    total = number = 0
    while total < size:
        turn = [
            _record(
                "user",
                number,
                session,
                folder,
                message={"role": "user", "content": f"question {number} of {session}"},
                origin={"kind": "human"},
                promptSource="typed",
            ),
            _record(
                "attachment",
                number + 1,
                session,
                folder,
                attachment={"type": "prompt_snapshot", "text": "context " * 1500},
            ),
            json.dumps(
                {"type": "api-request", "params": "p" * 9000}, separators=(",", ":")
            ).encode()
            + b"\n",
            _record(
                "assistant",
                number + 2,
                session,
                folder,
                message={
                    "id": f"msg_{number}",
                    "model": "claude-opus-5-5",
                    "content": [
                        {"type": "text", "text": "words of an answer " * 60},
                        {
                            "type": "tool_use",
                            "id": f"c{number}",
                            "name": "Bash",
                            "input": {"command": "make"},
                        },
                    ],
                    "usage": {"input_tokens": 100, "output_tokens": 50},
                },
            ),
            _record(
                "user",
                number + 3,
                session,
                folder,
                message={
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": f"c{number}",
                            "content": "output\n" * 700,
                        }
                    ],
                },
            ),
        ]
        block = b"".join(turn)
        parts.append(block)
        total += len(block)
        number += 4
    return b"".join(parts)


def _make_transcripts(root: Path, count: int, size: int) -> None:
    projects = root / "claude" / "projects"
    if projects.exists() and sum(1 for _ in projects.glob("*/*.jsonl")) == count:
        return
    for number in range(count):
        name = f"{number:08x}-0000-4000-8000-000000000000"
        folder = f"/tmp/bench-project-{number % FOLDERS}"
        path = projects / folder.replace("/", "-") / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_content(name, folder, size // count))


class _Projects:
    """No projects are registered."""

    feed: Feed[Project] = Feed(lambda project: project.id)

    def find_for(self, directory: str) -> Project | None:
        del directory
        return None


async def _measure(arguments: argparse.Namespace) -> None:
    home = arguments.folder / "claude"
    database = await Database.open(arguments.folder / "sidestage.db")
    started = time.perf_counter()
    async with open_discovery(
        config_dirs=[home],
        machine_secret=b"s" * 32,
        host_id=HostId("host:bench"),
        projects=_Projects(),  # type: ignore[arg-type]  # what readers use of it
        store=SqlTranscriptStore(database),
    ) as discovery:
        first = time.perf_counter() - started
        rows = len(discovery.sessions.feed.values())
        _tell(arguments.run, f"first list ({rows} rows)", f"{first:.2f} s")
        await _index(discovery, arguments.run, started)
        await _idle(arguments.run, arguments.idle_seconds)
        await _latency(discovery, home, arguments.run)
    await database.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    _tell(arguments.run, "peak RSS of the process", f"{peak:.0f} MB")


async def _index(discovery: Discovery, run: str, started: float) -> None:
    worst = 0.0
    while discovery.sessions.health().counters["transcripts_to_index"]:
        before = time.perf_counter()
        await asyncio.sleep(0.01)
        worst = max(worst, time.perf_counter() - before - 0.01)
    _tell(run, "everything indexed", f"{time.perf_counter() - started:.1f} s")
    _tell(run, "longest stall of the event loop meanwhile", f"{worst * 1000:.0f} ms")
    _tell(run, "RSS then", f"{_rss_mb():.0f} MB")


async def _idle(run: str, seconds: float) -> None:
    await asyncio.sleep(2)
    before = time.process_time()
    await asyncio.sleep(seconds)
    percent = 100 * (time.process_time() - before) / seconds
    _tell(run, "idle CPU", f"{percent:.2f} %")


async def _latency(discovery: Discovery, home: Path, run: str) -> None:
    """Append to one transcript and wait for its row, again and again."""
    path = next((home / "projects").glob("*/*.jsonl"))
    folder = discovery.sessions.feed
    taken: list[float] = []
    with path.open("ab", buffering=0) as file:
        for number in range(LATENCY_ROUNDS):
            seq = folder.seq
            line = _record(
                "assistant",
                10**9 + number,
                path.stem,
                "/tmp",
                message={
                    "id": f"m{number}",
                    "model": "m",
                    "content": [{"type": "text", "text": f"round {number}"}],
                },
            )
            before = time.perf_counter()
            file.write(line)
            await folder.wait_beyond(seq)
            taken.append(1000 * (time.perf_counter() - before))
            await asyncio.sleep(0.02)
    cuts = statistics.quantiles(taken, n=20)
    _tell(run, "file change to feed, median", f"{statistics.median(taken):.0f} ms")
    _tell(run, "file change to feed, p95", f"{cuts[-1]:.0f} ms")


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _tell(run: str, what: str, figure: str) -> None:
    print(f"{run:5} {what:45} {figure}", flush=True)


if __name__ == "__main__":
    main()
