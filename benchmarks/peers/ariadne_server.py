"""ariadne on uvicorn, as its manual starts it; runs in an environment of its own."""

import asyncio
import json
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from ariadne import QueryType, SubscriptionType, make_executable_schema
from ariadne.asgi import GraphQL
from ariadne.asgi.handlers import GraphQLTransportWSHandler

rows: list[dict[str, Any]] = json.loads(Path(os.environ["ROWS"]).read_text())
type_defs = (
    Path(__file__).with_name("schema.mjs").read_text().split("typeDefs = `")[1]
).split("`")[0]
query, subscription = QueryType(), SubscriptionType()
queues: set[asyncio.Queue[dict[str, Any]]] = set()
seq = 0
per_second = 0.0
turned = asyncio.Event()


def message(kind: str, upserts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"cursor": f"c{seq}", "kind": kind, "upserts": upserts, "removedIds": []}


@query.field("hello")
def hello(*_: object) -> str:
    return "hello"


@query.field("sessions")
def sessions(*_: object) -> list[dict[str, Any]]:
    return rows


@subscription.source("sessionFeed")
async def follow(*_: object) -> AsyncIterator[dict[str, Any]]:
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    queues.add(queue)
    try:
        yield message("SNAPSHOT", rows)
        while True:
            yield await queue.get()
    finally:
        queues.discard(queue)


@subscription.field("sessionFeed")
def tell(value: dict[str, Any], *_: object) -> dict[str, Any]:
    return value


async def publish() -> None:
    """Change one row at a time, so often as the runner asks."""
    global seq
    due = time.monotonic()
    while True:
        if not per_second:
            turned.clear()
            await turned.wait()
            due = time.monotonic()
        at = seq % len(rows)
        seq += 1
        rows[at] = {**rows[at], "name": f"t{time.time() * 1000:.3f}"}
        told = message("DELTA", [rows[at]])
        for queue in queues:
            queue.put_nowait(told)
        due += 1 / (per_second or 1)
        await asyncio.sleep(max(0, due - time.monotonic()))


def listen_to_runner(loop: asyncio.AbstractEventLoop) -> None:
    global per_second
    for line in sys.stdin:
        per_second = float(line)
        loop.call_soon_threadsafe(turned.set)
    os._exit(0)


async def main() -> None:
    app = GraphQL(
        make_executable_schema(type_defs, query, subscription),
        websocket_handler=GraphQLTransportWSHandler(),
    )
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(app, access_log=False, log_level="error")
    loop = asyncio.get_running_loop()
    threading.Thread(target=listen_to_runner, args=(loop,), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    await asyncio.gather(uvicorn.Server(config).serve([listener]), publish())


if __name__ == "__main__":
    uvloop.run(main())
