"""The real application on parts in memory, served as `sidestage serve` does.

A process of its own, which the other benchmarks start:

    python -m benchmarks.memory_server --sessions 200

It prints its port, and takes from stdin how many changes a second to publish. Only the
caller's rate limit is lifted: eight connections with one token stand for many callers.
"""

import argparse
import asyncio
import os
import sys
import time
from dataclasses import replace
from itertools import count
from typing import Final

import uvicorn
import uvloop

from api.app import create_app
from api.doorway import CONNECTIONS_LIMIT, Doorway, raise_descriptor_limit
from api.limits import Limits
from api.listener import open_listener
from api.network_protocols import network_protocols
from api.server import server_config
from benchmarks.sample_rows import make_sessions
from sidestage.settings import read_settings
from tests.fakes.parts import World, make_world

LIMITS: Final = Limits(points_burst=1e12, points_per_second=1e12)


class Publisher:
    """Changes one row after the other; its name tells when."""

    def __init__(self, world: World) -> None:
        self._feed = world.sessions.feed
        self._rows = list(self._feed.values())
        self._places = count()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def listen(self) -> None:
        """Take the runner's word from stdin."""
        self._loop.add_reader(sys.stdin, self._hear)

    def _hear(self) -> None:
        line = sys.stdin.readline()
        if self._timer is not None:
            self._timer.cancel()
        if not line:
            os._exit(0)  # the runner is done, and so is this
        elif per_second := float(line):
            self._publish(self._loop.time(), 1 / per_second)

    def _publish(self, due: float, pause_seconds: float) -> None:
        # One a turn of the loop: a server that is late catches up as it can.
        place = next(self._places) % len(self._rows)
        row = replace(self._rows[place], name=f"t{time.time() * 1000:.3f}")
        self._rows[place] = row
        self._feed.upsert(row)
        due += pause_seconds
        self._timer = self._loop.call_at(due, self._publish, due, pause_seconds)


async def main() -> None:
    """Serve until the runner closes stdin."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=200)
    sessions = make_sessions(parser.parse_args().sessions)
    raise_descriptor_limit()
    listener = open_listener("127.0.0.1", 0)
    port = listener.getsockname()[1]
    world = make_world(sessions=sessions)
    server = replace(world.parts.server, bound_port=lambda: port)
    app = create_app(replace(world.parts, server=server), limits=LIMITS)
    Publisher(world).listen()
    protocols = network_protocols(Doorway(CONNECTIONS_LIMIT))
    config = server_config(app, read_settings(), protocols, "on")
    print(port, flush=True)
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
