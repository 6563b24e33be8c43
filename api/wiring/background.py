"""Tasks that run as long as their part is open."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def running(**work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    """Run each coroutine as a task of that name until the block ends."""
    tasks = [asyncio.create_task(it, name=name) for name, it in work.items()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
