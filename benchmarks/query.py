"""A list of 200 sessions by HTTP, beside GraphQL Yoga and ariadne, in one run.

    .venv/bin/python -m benchmarks.query [--quick] [--json]

The servers take turns in every round, so that other work on the machine meets all of
them; the figures are medians of the rounds. Eight keep-alive connections ask for twelve
flat fields. We answer two pages of a hundred, the peers one list of the same rows.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks.http_load import Load, measure
from benchmarks.peer_servers import (
    ARIADNE,
    OURS,
    YOGA,
    Running,
    install_peers,
    running,
)
from benchmarks.sample_rows import FIELDS, ROW_MARK, make_sessions, write_rows
from tests.fakes.tokens import ADMIN

ROWS: Final = 200
BAR: Final = 1.3
"""Times the requests a second of the best peer."""
THEIR_QUERY: Final = f"{{ sessions {{ {FIELDS} }} }}"
OUR_PAGE: Final = f"pageInfo {{ endCursor }} nodes {{ {FIELDS} }}"
OUR_FIRST: Final = f"{{ outsideSessions(first: 100) {{ {OUR_PAGE} }} }}"
OUR_QUERY: Final = f"""query List($after: String!) {{
  a: outsideSessions(first: 100) {{ nodes {{ {FIELDS} }} }}
  b: outsideSessions(first: 100, after: $after) {{ nodes {{ {FIELDS} }} }}
}}"""


def main() -> None:
    """Measure, and print the figures beside their bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", action="store_true", help="figures as JSON lines")
    options = parser.parse_args()
    rounds, seconds = (1, 2.0) if options.quick else (5, 4.0)
    install_peers()
    with tempfile.TemporaryDirectory(prefix="query-") as folder:
        loads = uvloop.run(run(Path(folder) / "rows.json", rounds, seconds))
    report(loads, as_json=options.json)


async def run(rows: Path, rounds: int, seconds: float) -> dict[str, list[Load]]:
    """Return what each server stood in each round."""
    write_rows(make_sessions(ROWS), rows)
    loads: dict[str, list[Load]] = defaultdict(list)
    async with (
        running(OURS, rows) as ours,
        running(YOGA, rows) as yoga,
        running(ARIADNE, rows) as ariadne,
    ):
        for _ in range(rounds):
            for server in (ours, yoga, ariadne):
                loads[server.kind.name].append(await _measure(server, seconds))
    return loads


async def _measure(server: Running, seconds: float) -> Load:
    body = await asyncio.to_thread(_body_for, server)
    return await measure(
        server.port, body, token=ADMIN, seconds=seconds, warm_up_seconds=1.0
    )


def _body_for(server: Running) -> bytes:
    """Return the request, after a look that its answer is whole."""
    body: dict[str, Any] = {"query": THEIR_QUERY}
    if server.kind is OURS:
        first = json.loads(_ask(server.port, {"query": OUR_FIRST}))
        after = first["data"]["outsideSessions"]["pageInfo"]["endCursor"]
        body = {"query": OUR_QUERY, "variables": {"after": after}}
    answer = _ask(server.port, body)
    assert answer.count(ROW_MARK) == ROWS, answer[:500]
    return json.dumps(body).encode()


def _ask(port: int, body: dict[str, Any]) -> bytes:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {ADMIN}"},
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        data: bytes = response.read()
        return data


def report(loads: dict[str, list[Load]], *, as_json: bool) -> None:
    """Print a line a server, and last the ratio to the best peer."""
    medians = {
        name: Load(
            *(
                statistics.median(getattr(load, field) for load in rounds)
                for field in ("per_second", "p50_ms", "p99_ms")
            )
        )
        for name, rounds in loads.items()
    }
    best = max(load.per_second for name, load in medians.items() if name != OURS.name)
    ratio = round(medians[OURS.name].per_second / best, 2)
    for name, load in medians.items():
        if as_json:
            figures = {"per_second": load.per_second, "p50_ms": load.p50_ms}
            print(json.dumps({"server": name, **figures, "p99_ms": load.p99_ms}))
        else:
            print(
                f"{name:16} {load.per_second:8.0f} requests/s"
                f"   p50 {load.p50_ms:6.1f} ms   p99 {load.p99_ms:6.1f} ms"
            )
    if as_json:
        print(json.dumps({"ratio": ratio}))
    else:
        print(f"{ratio} times the best peer (bar {BAR})")


if __name__ == "__main__":
    main()
