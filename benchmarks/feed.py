"""A thousand subscribers of one feed, beside Node graphql-ws and ariadne, in one run.

    .venv/bin/python -m benchmarks.feed [--quick] [--json]

Measured, the servers taking turns in every round: rows delivered a second when 100
and when 500 rows change a second; how late they come at 10 changes a second; and how
long it takes until all have a snapshot of 200 rows that they asked for at once. Each
server publishes in its own process; one that is overloaded falls behind with that, too.

The ratio printed last compares the most rows a second that each server delivered.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import uvloop

from api.doorway import raise_descriptor_limit
from benchmarks.feed_load import PATIENCE_SECONDS, Subscriber, open_subscribers
from benchmarks.peer_servers import (
    ARIADNE,
    GRAPHQL_WS,
    OURS,
    Kind,
    Running,
    install_peers,
    running,
)
from benchmarks.sample_rows import FIELDS, make_sessions, write_rows
from tests.fakes.tokens import ADMIN

SUBSCRIBERS: Final = 1000
ROWS: Final = 200
BUSY_PER_SECOND: Final = 100.0
CALM_PER_SECOND: Final = 10.0
FLOOD_PER_SECOND: Final = 500.0
"""More than any of them delivers: at 100 changes a second nobody can be told of more
than 100,000 rows a second, however fast it is."""
WARM_UP_SECONDS: Final = 1.0
DELIVERIES_BAR: Final = 5
SNAPSHOTS_BAR: Final = 5
P99_BAR_MS: Final = 100
_SELECTION: Final = f"{{ cursor kind removedIds upserts {{ {FIELDS} }} }}"
OUR_FEED: Final = f"subscription {{ outsideSessionFeed {_SELECTION} }}"
THEIR_FEED: Final = f"subscription {{ sessionFeed {_SELECTION} }}"


@dataclass(frozen=True, slots=True)
class Figures:
    """What one server did in one round."""

    rows_per_second: float
    busy_p50_ms: float
    busy_p99_ms: float
    cpu_share: float
    """Of one core, while busy."""
    most_rows_per_second: float
    """While 100 or 500 rows changed a second."""
    calm_p50_ms: float
    calm_p99_ms: float
    snapshots_seconds: float


def main() -> None:
    """Measure, and print the figures beside their bars."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", action="store_true", help="figures as JSON lines")
    options = parser.parse_args()
    rounds, seconds = (1, 3.0) if options.quick else (3, 5.0)
    raise_descriptor_limit()
    install_peers()
    with tempfile.TemporaryDirectory(prefix="feed-") as folder:
        figures = uvloop.run(run(Path(folder) / "rows.json", rounds, seconds))
    report(figures, as_json=options.json)


async def run(rows: Path, rounds: int, seconds: float) -> dict[str, Figures]:
    """Return each server's medians."""
    write_rows(make_sessions(ROWS), rows)
    measured: dict[str, list[Figures]] = defaultdict(list)
    for _ in range(rounds):
        for kind in (OURS, GRAPHQL_WS, ARIADNE):
            async with running(kind, rows) as server:
                measured[kind.name].append(await _measure(server, seconds))
    return {name: _median(figures) for name, figures in measured.items()}


def _median(figures: list[Figures]) -> Figures:
    return Figures(
        *(
            statistics.median(getattr(each, field.name) for each in figures)
            for field in fields(Figures)
        )
    )


async def _measure(server: Running, seconds: float) -> Figures:
    snapshots = await _snapshots(server)
    calm, _ = await _follow(server, CALM_PER_SECOND, seconds)
    busy, cpu_share = await _follow(server, BUSY_PER_SECOND, seconds)
    flood, _ = await _follow(server, FLOOD_PER_SECOND, seconds)
    calm_delays = _delays(calm)
    busy_delays = _delays(busy)
    return Figures(
        rows_per_second=busy.rows / busy.seconds,
        busy_p50_ms=busy_delays[0],
        busy_p99_ms=busy_delays[1],
        cpu_share=cpu_share,
        most_rows_per_second=max(heard.rows / heard.seconds for heard in (busy, flood)),
        calm_p50_ms=calm_delays[0],
        calm_p99_ms=calm_delays[1],
        snapshots_seconds=snapshots,
    )


@dataclass(frozen=True, slots=True)
class _Heard:
    rows: int
    seconds: float
    delays_ms: list[float]


def _delays(heard: _Heard) -> tuple[float, float]:
    """Return the median and the 99th percentile."""
    delays = sorted(heard.delays_ms) or [float("inf")]
    return delays[len(delays) // 2], delays[int(len(delays) * 0.99)]


async def _snapshots(server: Running) -> float:
    """Return how long it takes until everyone has all rows, in seconds."""
    async with _subscribers(server) as subscribers:
        awaited = [each.expect(ROWS) for each in subscribers]
        began = time.perf_counter()
        _subscribe(server.kind, subscribers)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return max(await asyncio.gather(*awaited)) - began


async def _follow(
    server: Running, per_second: float, seconds: float
) -> tuple[_Heard, float]:
    """Return what all heard while rows changed, and the server's share of a core."""
    async with _subscribers(server) as subscribers:
        awaited = [each.expect(ROWS) for each in subscribers]
        _subscribe(server.kind, subscribers)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*awaited)
        server.publish(per_second)
        await asyncio.sleep(WARM_UP_SECONDS)
        for each in subscribers:
            each.rows = 0
            each.delays_ms.clear()
        began, cpu = time.perf_counter(), server.cpu_seconds()
        await asyncio.sleep(seconds)
        took = time.perf_counter() - began
        cpu_share = (server.cpu_seconds() - cpu) / took
        heard = _Heard(
            sum(each.rows for each in subscribers),
            took,
            [delay for each in subscribers for delay in each.delays_ms],
        )
        server.publish(0)
    return heard, cpu_share


@asynccontextmanager
async def _subscribers(server: Running) -> AsyncGenerator[list[Subscriber]]:
    subscribers = await open_subscribers(server.port, ADMIN, SUBSCRIBERS)
    try:
        yield subscribers
    finally:
        for each in subscribers:
            each.close()


def _subscribe(kind: Kind, subscribers: list[Subscriber]) -> None:
    document = OUR_FEED if kind is OURS else THEIR_FEED
    for each in subscribers:
        each.subscribe(document)


def report(figures: dict[str, Figures], *, as_json: bool) -> None:
    """Print a line a server, and last the ratio of deliveries to the best peer."""
    ours = figures[OURS.name]
    peers = [each for name, each in figures.items() if name != OURS.name]
    best = max(each.most_rows_per_second for each in peers)
    ratio = ours.most_rows_per_second / best
    at_100 = ours.rows_per_second / max(each.rows_per_second for each in peers)
    faster = min(each.snapshots_seconds for each in peers) / ours.snapshots_seconds
    for name, each in figures.items():
        told = {f.name: round(getattr(each, f.name), 3) for f in fields(Figures)}
        if as_json:
            print(json.dumps({"server": name, **told}))
        else:
            print(name, *(f"\n  {what:18} {value}" for what, value in told.items()))
    if as_json:
        print(json.dumps({"snapshots_ratio": round(faster, 2)}))
        print(json.dumps({"ratio_at_100_per_second": round(at_100, 2)}))
        print(json.dumps({"ratio": round(ratio, 2)}))
    else:
        print(f"deliveries at 100 changes a second: {at_100:.1f} times the best peer")
        print(f"deliveries at most: {ratio:.1f} times that (bar {DELIVERIES_BAR})")
        print(f"snapshots: {faster:.1f} times as fast (bar {SNAPSHOTS_BAR})")
        print(f"calm p99: {ours.calm_p99_ms:.0f} ms (bar {P99_BAR_MS})")


if __name__ == "__main__":
    main()
