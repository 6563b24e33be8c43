"""Clients that trouble nobody but themselves, over real sockets (api.md, line 13)."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from api.limits import Limits
from tests.e2e.api.serving import Served, served
from tests.fakes.tokens import ADMIN
from tests.fakes.values import a_session

FEED = "subscription { outsideSessionFeed { kind upserts { id name } } }"
ROWS = 50
LONG_NAME_CHARACTERS = 20_000
"""So a change of every row is a megabyte, and no kernel buffer hides a few of them."""


@asynccontextmanager
async def subscriber(
    server: Served, **options: Any
) -> AsyncGenerator[ClientConnection]:
    url = server.base.replace("http", "ws") + "/graphql"
    async with connect(
        url,
        subprotocols=["graphql-transport-ws"],  # type: ignore[list-item]  # a NewType
        max_size=None,
        compression=None,
        ping_interval=None,
        **options,
    ) as client:
        init = {"type": "connection_init", "payload": {"token": ADMIN}}
        await client.send(json.dumps(init))
        subscribe = {"type": "subscribe", "id": "1", "payload": {"query": FEED}}
        await client.send(json.dumps(subscribe))
        while json.loads(await client.recv())["type"] != "next":
            pass
        yield client


async def answer_until(client: ClientConnection, name: str) -> None:
    """Read, and answer pings, until a row has that name."""
    while True:
        message = json.loads(await client.recv())
        if message["type"] == "ping":
            await client.send('{"type":"pong"}')
        elif f'"{name}' in json.dumps(message):
            return


async def test_a_reader_that_stopped_is_dropped_and_slows_nobody() -> None:
    limits = Limits(ping_seconds=0.2, send_seconds=1.0, history_bytes=2 * 1024 * 1024)
    rows = tuple(a_session(number) for number in range(ROWS))
    async with served(sessions=rows, limits=limits) as server:
        stopped = connect_and_stop(server)
        async with subscriber(server) as reader, stopped:
            assert len(server.app.connections) == 2
            async with asyncio.timeout(30):
                turn = 0
                while len(server.app.connections) > 1:
                    turn += 1
                    name = f"turn {turn} " + "x" * LONG_NAME_CHARACTERS
                    for number in range(ROWS):
                        row = a_session(number, name=name)
                        server.world.sessions.feed.upsert(row)
                    await answer_until(reader, f"turn {turn} ")
            assert turn > 1


@asynccontextmanager
async def connect_and_stop(server: Served) -> AsyncGenerator[None]:
    """Subscribe, then read nothing more: `max_queue=1` makes TCP's window close."""
    async with subscriber(server, max_queue=1, close_timeout=0.1):
        yield
