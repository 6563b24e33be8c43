"""A permission hook that waits on its connection for a decision."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from api.hook_frames import NO_OPINION, render_decision

SEND_SECONDS: Final = 2.0
"""For a decision to leave: the hook waits for nothing else."""


class SocketHold:
    """A permission hook that waits on its connection (the port `Hold`)."""

    def __init__(
        self, writer: asyncio.StreamWriter, *, digest: bytes, claim: bytes
    ) -> None:
        self._writer = writer
        self._digest = digest
        self._claim = claim
        self._closed = asyncio.Event()

    @property
    def digest(self) -> bytes:
        """SHA-256 of the very bytes the agent gave its hook."""
        return self._digest

    @property
    def claim(self) -> bytes:
        """SHA-256 of the random claim with which this hook may come back."""
        return self._claim

    async def answer(self, decision: Mapping[str, Any] | None) -> bool:
        """Send the decision; False if the hook is gone or was answered."""
        if self._closed.is_set():
            return False
        self._closed.set()
        frame = NO_OPINION
        if decision is not None:
            frame = render_decision(decision, digest=self._digest)
        try:
            self._writer.write(frame)
            async with asyncio.timeout(SEND_SECONDS):
                await self._writer.drain()
        except (OSError, TimeoutError):
            return False
        return not self._writer.is_closing()

    async def wait_closed(self) -> None:
        """Return once the hook has gone away, or was answered."""
        await self._closed.wait()

    def gone(self) -> None:
        """Note that the hook went away."""
        self._closed.set()
