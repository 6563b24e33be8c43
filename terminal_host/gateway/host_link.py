"""One control connection to the terminal host: numbered requests, answers, events."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from sidestage.errors import HostUnavailable, InvalidInput
from terminal_host.host_messages import decode_error
from terminal_host.wire import (
    PROTOCOL_VERSION,
    SPOKEN_VERSIONS,
    Frame,
    FrameDecoder,
    FrameInvalid,
    encode_frame,
)

HELLO_SECONDS: Final = 5.0
"""A host that does not greet by then hangs."""
_READ_BYTES: Final = 1 << 16


class HostLink:
    """A greeted connection. `run` must run for answers to come."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        decoder: FrameDecoder,
        greeting: Frame,
    ) -> None:
        self.greeting = greeting
        self._reader = reader
        self._writer = writer
        self._decoder = decoder
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Frame]] = {}

    async def run(self, on_event: Callable[[Frame], None]) -> None:
        """Hand out answers and events until the connection ends; then fail the rest."""
        try:
            while (frame := await _receive(self._reader, self._decoder)) is not None:
                if "event" in frame:
                    on_event(frame)
                else:
                    self._settle(frame)
        except (ConnectionError, FrameInvalid):
            pass  # a host that breaks the protocol is as good as gone
        finally:
            self.close()

    async def call(self, op: str, *, seconds: float, **fields: object) -> Frame:
        """Ask for *op* and return the answer; raises what the host refuses with.

        Raises `HostUnavailable` when the connection ends or *seconds* pass.
        """
        self._number += 1
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = answer
        number = self._number
        try:
            frame = encode_frame({"id": number, "op": op, **fields})
            async with asyncio.timeout(seconds):
                self._writer.write(frame)
                await self._writer.drain()
                return await answer
        except FrameInvalid as error:
            raise InvalidInput("That is too much for the terminal host.") from error
        except (TimeoutError, ConnectionError) as error:
            raise HostUnavailable("The terminal host does not answer.") from error
        finally:
            self._waiting.pop(number, None)

    def close(self) -> None:
        """Close the connection; calls that wait raise `HostUnavailable`."""
        self._writer.close()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(HostUnavailable("The terminal host went away."))

    async def wait_closed(self) -> None:
        """Return once the connection is closed."""
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    def _settle(self, frame: Frame) -> None:
        answer = self._waiting.get(frame.get("id", 0))
        if answer is None or answer.done():
            return  # it came too late
        if "error" in frame:
            answer.set_exception(decode_error(frame["error"]))
        else:
            answer.set_result(frame.get("ok") or {})


async def open_link(path: Path) -> HostLink:
    """Connect to the host at *path* and greet it.

    Raises `FileNotFoundError` or `ConnectionRefusedError` if no host is there, and
    `HostUnavailable` if it does not greet or speaks no version of ours.
    """
    reader, writer = await asyncio.open_unix_connection(str(path))
    decoder = FrameDecoder()
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            hello = {"versions": list(SPOKEN_VERSIONS), "role": "control"}
            writer.write(encode_frame(hello))
            greeting = await _receive(reader, decoder)
    except (TimeoutError, ConnectionError, FrameInvalid) as error:
        writer.close()
        raise HostUnavailable("The terminal host does not greet.") from error
    if greeting is None or greeting.get("version") not in SPOKEN_VERSIONS:
        writer.close()
        raise HostUnavailable("The terminal host speaks another protocol.")
    return HostLink(reader, writer, decoder, greeting)


async def find_link(path: Path) -> HostLink | None:
    """As `open_link`, but None if no host is there."""
    try:
        return await open_link(path)
    except (FileNotFoundError, ConnectionRefusedError):
        return None


def is_current(link: HostLink) -> bool:
    """Tell whether the host speaks the newest version of the protocol that we do."""
    return link.greeting.get("version") == PROTOCOL_VERSION


async def _receive(reader: asyncio.StreamReader, decoder: FrameDecoder) -> Frame | None:
    while (frame := decoder.take()) is None:
        data = await reader.read(_READ_BYTES)
        if not data:
            return None
        decoder.feed(data)
    return frame
