"""Everything at once, for ten minutes: nothing may be lost, and nothing may grow.

    .venv/bin/python -m benchmarks.soak [--seconds 600] [--json]

Run it as an ordinary user. A real `sidestage serve` on a scratch home with 2,000 ended
sessions; 50 scripted agents that are given prompts; 200 subscribers, of whom 10 stop
reading for a while again and again and 20 a second lose their connection and come back;
10 terminals whose programs print without end. Each second some transcripts get a record
that says when it was written: how late its row comes is a change's delay.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import uvloop

from api.doorway import raise_descriptor_limit
from benchmarks.push import answer, append, make_transcript
from benchmarks.soak_client import Subscriber, now_ms
from benchmarks.terminal_servers import START
from tests.e2e.agents.scripted_claude import ScriptedClaude
from tests.e2e.running_server import RunningServer

ENDED: Final = 2_000
AGENTS: Final = 50
SUBSCRIBERS: Final = 200
STALLERS: Final = 10
RECONNECTS_PER_SECOND: Final = 20
TERMINALS: Final = 10
CHANGES_PER_SECOND: Final = 10
PROMPTS_PER_SECOND: Final = 2
STALL_SECONDS: Final = 30.0
"""Longer than a reader may take nothing (20 s): some are put out, and come back."""
LOOK_SECONDS: Final = 5.0
LAG_LOOK_SECONDS: Final = 0.05
KNOCK_SECONDS: Final = 0.1
SETTLE_SECONDS: Final = 20.0
"""From the last change to the comparison of all rows."""
P99_BAR_MS: Final = 250
GROWTH_LIMIT: Final = 0.10
"""Of memory, from the second fifth of the time to the last."""
GROWTH_FLOOR_MB: Final = 8.0
DESCRIPTORS_SLACK: Final = 25
"""Connections that are just ending or beginning."""
FLOOD: Final = "yes 'the quick brown fox jumps over the lazy dog'\r"


@dataclass(slots=True)
class Sample:
    """What a process holds at a time."""

    rss_mb: float
    descriptors: int


@dataclass(slots=True)
class Soak:
    """What is at work, and what was measured."""

    server: RunningServer
    files: list[Path]
    subscribers: list[Subscriber] = field(default_factory=list)
    agents: list[int] = field(default_factory=list)
    delays_ms: list[float] = field(default_factory=list)
    samples: dict[str, list[Sample]] = field(
        default_factory=lambda: {"serve": [], "host": []}
    )
    lags_ms: list[float] = field(default_factory=list)
    """How late this program's own loop wakes: what of the delays is the machine's."""
    knocks_ms: list[float] = field(default_factory=list)
    """How long `/healthz` takes: what of the delays is a busy event loop's."""
    changes: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def heard(self, row: dict[str, Any]) -> None:
        """Note how late a row came, if it tells when its change was made."""
        text = (row["lastMessage"] or {}).get("text", "")
        if text.startswith("at "):
            self.delays_ms.append(now_ms() - float(text.split()[1]))


def main() -> None:
    """Run it, and print what was found beside what may be; 1 if it was too much."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        verdict = uvloop.run(run(Path(folder), options.seconds))
    if options.json:
        print(json.dumps(verdict))
    else:
        print(*(f"{name:24} {value}" for name, value in verdict.items()), sep="\n")
    raise SystemExit(0 if verdict["ok"] else 1)


async def run(folder: Path, seconds: float) -> dict[str, Any]:
    """Run the soak below *folder*; return the verdict."""
    claude = ScriptedClaude(folder)
    project = claude.make_project("project")
    files = await asyncio.to_thread(
        lambda: [make_transcript(claude.home, number) for number in range(ENDED)]
    )
    server = RunningServer(
        environment=claude.environment(), arguments=["--no-sandbox", "--allow-root"]
    )
    async with AsyncExitStack() as stack:
        await asyncio.to_thread(server.start)
        stack.push_async_callback(asyncio.to_thread, server.__exit__, None, None, None)
        soak = Soak(server, files)
        await asyncio.to_thread(flood_terminals, server, project)
        for _ in range(AGENTS):
            agent = await stack.enter_async_context(open_agent(claude, project))
            soak.agents.append(agent)
        stack.push_async_callback(end_subscribers, soak)
        start_subscribers(soak)
        await work(soak, seconds)
        await asyncio.sleep(SETTLE_SECONDS)
        return await judge(soak)


def flood_terminals(server: RunningServer, project: Path) -> None:
    """Start terminals whose programs print without end; nobody watches them."""
    project_id = server.register_project(project)
    for _ in range(TERMINALS):
        given = {"projectId": project_id, "template": "template:shell"}
        size = {"cols": 80, "rows": 24}
        started = server.query(START, {"input": given | size})["startTerminal"]
        with server.attach(started["ticket"]) as client:
            client.until(lambda client=client: client.offset, "a prompt")  # type: ignore[misc]  # this turn's client
            client.type(FLOOD)
            client.until(lambda client=client: client.offset > 4096, "the flood")  # type: ignore[misc]  # as above


@asynccontextmanager
async def open_agent(claude: ScriptedClaude, project: Path) -> AsyncGenerator[int]:
    """Run a scripted agent in a PTY; yield the descriptor that types to it."""
    terminal, inner = os.openpty()
    os.set_blocking(terminal, False)
    process = await asyncio.create_subprocess_exec(
        claude.program,
        cwd=project,
        env=claude.environment(),
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
    )
    os.close(inner)
    loop = asyncio.get_running_loop()

    def drain() -> None:
        try:
            os.read(terminal, 65_536)
        except OSError:
            loop.remove_reader(terminal)

    loop.add_reader(terminal, drain)
    try:
        yield terminal
    finally:
        loop.remove_reader(terminal)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        os.close(terminal)


def start_subscribers(soak: Soak) -> None:
    """Start them all; one of those that only read tells the delays."""
    port = int(soak.server.url.rpartition(":")[2])
    for number in range(SUBSCRIBERS):
        on_row = soak.heard if number == SUBSCRIBERS - 1 else None
        soak.subscribers.append(Subscriber(port, soak.server.token, on_row))
        soak.subscribers[-1].start()


async def end_subscribers(soak: Soak) -> None:
    """End them all."""
    await asyncio.gather(*(each.stop() for each in soak.subscribers))


async def work(soak: Soak, seconds: float) -> None:
    """Let everything happen for so long."""
    jobs = (
        change(soak),
        prompt(soak),
        reconnect(soak),
        stall(soak),
        look(soak),
        lag(soak),
        knock(soak),
    )
    tasks = [asyncio.create_task(job) for job in jobs]
    done, _ = await asyncio.wait(
        tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION
    )
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
    for each in soak.subscribers[:STALLERS]:
        each.go_on()


async def change(soak: Soak) -> None:
    """Append records that tell when they were written."""
    while True:
        await asyncio.sleep(1 / CHANGES_PER_SECOND)
        path = soak.chance.choice(soak.files)
        append(path, answer(f"at {now_ms():.3f} change {soak.changes}"))
        soak.changes += 1


async def prompt(soak: Soak) -> None:
    """Give the agents something to do."""
    while True:
        await asyncio.sleep(1 / PROMPTS_PER_SECOND)
        terminal = soak.chance.choice(soak.agents)
        os.write(terminal, f"prompt {soak.chance.random()}".encode())
        await asyncio.sleep(0.05)
        os.write(terminal, b"\r")


async def reconnect(soak: Soak) -> None:
    """Cut connections of those who neither stall nor measure."""
    while True:
        await asyncio.sleep(1 / RECONNECTS_PER_SECOND)
        soak.chance.choice(soak.subscribers[STALLERS:-1]).cut()


async def stall(soak: Soak) -> None:
    """Let the first ten stop reading, and read again."""
    while True:
        await asyncio.sleep(STALL_SECONDS / 3)
        for each in soak.subscribers[:STALLERS]:
            each.stall()
        await asyncio.sleep(STALL_SECONDS)
        for each in soak.subscribers[:STALLERS]:
            each.go_on()


async def look(soak: Soak) -> None:
    """Note memory and descriptors of both processes."""
    host = soak.server.host_pid()
    assert host is not None
    processes = {"serve": soak.server.pid, "host": host}
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for name, pid in processes.items():
            process = psutil.Process(pid)
            rss = process.memory_info().rss / 2**20
            soak.samples[name].append(Sample(rss, process.num_fds()))


async def lag(soak: Soak) -> None:
    """Note how late this loop wakes."""
    while True:
        wanted = time.monotonic() + LAG_LOOK_SECONDS
        await asyncio.sleep(LAG_LOOK_SECONDS)
        soak.lags_ms.append((time.monotonic() - wanted) * 1000)


async def knock(soak: Soak) -> None:
    """Note how long the server takes to say that it is alive."""
    async with httpx.AsyncClient(base_url=soak.server.url) as client:
        while True:
            await asyncio.sleep(KNOCK_SECONDS)
            began = time.monotonic()
            (await client.get("/healthz")).raise_for_status()
            soak.knocks_ms.append((time.monotonic() - began) * 1000)


async def judge(soak: Soak) -> dict[str, Any]:
    """Compare everybody's rows with the server's, and what it holds with before."""
    truth = await asyncio.to_thread(read_all, soak.server)
    wrong = [each for each in soak.subscribers if each.rows != truth]
    delays = sorted(soak.delays_ms)
    verdict: dict[str, Any] = {
        "changes": soak.changes,
        "rows": len(truth),
        "subscribers_behind": len(wrong),
        "connections_made": sum(each.connections for each in soak.subscribers),
        "resets": sum(each.resets for each in soak.subscribers),
        "delays_measured": len(delays),
        "change_p50_ms": round(statistics.median(delays), 1),
        "change_p95_ms": _part(delays, 0.95),
        "change_p99_ms": _part(delays, 0.99),
        "healthz_p99_ms": _part(soak.knocks_ms, 0.99),
        "own_lag_p99_ms": _part(soak.lags_ms, 0.99),
    }
    is_flat = True
    for name, samples in soak.samples.items():
        fifth = max(1, len(samples) // 5)
        early, late = samples[fifth : 2 * fifth], samples[-fifth:]
        before = statistics.median(each.rss_mb for each in early)
        after = statistics.median(each.rss_mb for each in late)
        descriptors = [max(s.descriptors for s in part) for part in (early, late)]
        verdict[f"{name}_mb"] = f"{before:.1f} -> {after:.1f}"
        verdict[f"{name}_descriptors"] = f"{descriptors[0]} -> {descriptors[1]}"
        grown = after - before
        is_flat &= grown <= max(before * GROWTH_LIMIT, GROWTH_FLOOR_MB)
        is_flat &= descriptors[1] - descriptors[0] <= DESCRIPTORS_SLACK
    verdict["flat"] = is_flat
    verdict["ok"] = bool(
        is_flat and not wrong and verdict["change_p99_ms"] <= P99_BAR_MS
    )
    return verdict


def _part(times: list[float], part: float) -> float:
    return round(sorted(times)[int(len(times) * part)], 1)


def read_all(server: RunningServer) -> dict[str, dict[str, Any]]:
    """Return the rows by id, page by page."""
    rows: dict[str, dict[str, Any]] = {}
    after: str | None = None
    while True:
        page = server.query(
            """query($after: String) { outsideSessions(first: 100, after: $after) {
              pageInfo { hasNextPage endCursor }
              nodes { id state lastMessage { text } } } }""",
            {"after": after},
        )["outsideSessions"]
        rows |= {row["id"]: row for row in page["nodes"]}
        if not page["pageInfo"]["hasNextPage"]:
            return rows
        after = page["pageInfo"]["endCursor"]


if __name__ == "__main__":
    main()
