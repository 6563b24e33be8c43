"""Stand-ins for who is told of hook events, and for a hook that waits."""

import asyncio
from collections.abc import Mapping
from typing import Any

from sidestage.sessions.hooks import Hold, HookEvent, HookListener


class FakeListener:
    """The port `HookListener`: remembers what it was told; answers if it shall."""

    def __init__(self, decision: Mapping[str, Any] | None = None) -> None:
        self.events: list[HookEvent] = []
        self.holds: list[Hold] = []
        self._decision = decision
        self._told = asyncio.Condition()

    async def heard(self, event: HookEvent) -> None:
        async with self._told:
            self.events.append(event)
            self._told.notify_all()

    async def held(self, event: HookEvent, hold: Hold) -> None:
        self.holds.append(hold)
        if self._decision is not None:
            await hold.answer(self._decision)
        await self.heard(event)

    async def wait_for(self, count: int) -> list[HookEvent]:
        """Return the events once there are *count*."""
        async with asyncio.timeout(5), self._told:
            await self._told.wait_for(lambda: len(self.events) >= count)
        return self.events


class FakeHold:
    """The port `Hold`: remembers the answers it got."""

    def __init__(self, digest: bytes = b"d" * 32, claim: bytes = b"c" * 32) -> None:
        self.digest = digest
        self.claim = claim
        self.answers: list[Mapping[str, Any] | None] = []
        self._closed = asyncio.Event()

    async def answer(self, decision: Mapping[str, Any] | None) -> bool:
        if self._closed.is_set():
            return False
        self.answers.append(decision)
        self._closed.set()
        return True

    async def wait_closed(self) -> None:
        await self._closed.wait()


def _are_the_ports(listener: FakeListener, hold: FakeHold) -> tuple[HookListener, Hold]:
    return listener, hold
