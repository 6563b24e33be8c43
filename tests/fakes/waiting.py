"""Waiting for a condition of the event loop, with a deadline instead of a sleep."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sidestage.feeds import Feed

Value = TypeVar("Value")

DEADLINE_SECONDS = 5.0
"""Long enough for a busy machine; a test that waits so long fails."""


async def wait_for_row(
    feed: Feed[Value],
    id_: str,
    is_right: Callable[[Value], bool],
    *,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Value:
    """Return the feed's value under *id_* once it *is_right*."""
    last: Value | None = None
    try:
        async with asyncio.timeout(deadline_seconds):
            while True:
                seq = feed.seq
                last = feed.get(id_)
                if last is not None and is_right(last):
                    return last
                await feed.wait_beyond(seq)
    except TimeoutError:
        raise AssertionError(f"it never came; the last value was {last}") from None


async def wait_until_gone(
    feed: Feed[Any], id_: str, *, deadline_seconds: float = DEADLINE_SECONDS
) -> None:
    """Return once the feed has no value under *id_*."""
    async with asyncio.timeout(deadline_seconds):
        while True:
            seq = feed.seq
            if feed.get(id_) is None:
                return
            await feed.wait_beyond(seq)
