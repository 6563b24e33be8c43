"""A client of the companion WebSocket that knows only what its document says."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

DEADLINE_SECONDS = 20.0


class SocketClient:
    """Keeps what the server sent: output by offset, repaints, and messages."""

    def __init__(
        self, connection: ClientConnection, *, acknowledge: bool = True
    ) -> None:
        self.connection = connection
        self.acknowledge = acknowledge
        self.messages: list[dict[str, Any]] = []
        self.output = bytearray()
        """The output behind the latest repaint or `after`."""
        self.repaint = bytearray()
        self.offset = 0
        self.frames: list[bytes] = []
        self._repaint_left = 0

    async def send(self, **message: object) -> None:
        await self.connection.send(json.dumps(message))

    async def type(self, data: bytes) -> None:
        await self.connection.send(data)

    async def receive(self) -> dict[str, Any] | bytes:
        """Take one frame in; return the message or the bytes of output."""
        frame = await self.connection.recv()
        if isinstance(frame, str):
            message: dict[str, Any] = json.loads(frame)
            self._take_message(message)
            if message["type"] == "ping":
                await self.send(type="pong")
            return message
        offset, data = int.from_bytes(frame[:8], "big"), frame[8:]
        self.frames.append(data)
        await self._take_bytes(offset, data)
        return data

    async def until_message(self, kind: str) -> dict[str, Any]:
        """Return the first message of that type, whether it came already or comes."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                for message in self.messages:
                    if message["type"] == kind:
                        return message
                await self.receive()

    async def until_output(
        self, text: bytes, *, deadline_seconds: float = DEADLINE_SECONDS
    ) -> bytes:
        """Take frames in until *text* was printed, or is in the repaint."""
        looked_at = 0
        async with asyncio.timeout(deadline_seconds):
            # Only what is new: looking through a flood anew for each frame takes longer
            # than the flood.
            while not self._shows(text, looked_at):
                looked_at = max(0, len(self.output) - len(text))
                await self.receive()
                looked_at = min(looked_at, len(self.output))
        return bytes(self.output)

    def _shows(self, text: bytes, start: int) -> bool:
        begin = self.repaint + self.output[: len(text)]
        return text in begin or self.output.find(text, start) >= 0

    async def until_closed(self) -> tuple[int, str]:
        """Take frames in until the server closes; return code and reason."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            with suppress(ConnectionClosed):
                while True:
                    await self.receive()
        assert self.connection.close_code is not None, "closed without a code"
        return self.connection.close_code, self.connection.close_reason or ""

    def _take_message(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        if message["type"] == "attached":
            self.offset = message["offset"]
        elif message["type"] == "repaint":
            self._repaint_left = message["length"]
            self.offset = message["offset"]
            self.repaint.clear()
            self.output.clear()

    async def _take_bytes(self, offset: int, data: bytes) -> None:
        assert offset == self.offset, "output was lost or doubled"
        if self._repaint_left:
            self._repaint_left -= len(data)
            assert self._repaint_left >= 0, "a repaint and output in one frame"
            self.repaint += data
            return
        self.output += data
        self.offset += len(data)
        if self.acknowledge:
            await self.send(type="ack", offset=self.offset)
