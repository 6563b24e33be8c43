"""The control connection: requests in, answers and changes out."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Final

from sidestage.errors import SidestageError
from sidestage.ids import TerminalId
from sidestage.terminals.model import SIDE_LIMIT_CELLS
from terminal_host.fields import read_text
from terminal_host.host.screen_queries import bound_lines, bound_text, find_matches
from terminal_host.host.terminals import AnyTerminal, HostedTerminals
from terminal_host.host_messages import (
    decode_conversation_id,
    decode_create,
    decode_holder,
    decode_number,
    decode_side,
    decode_terminal_id,
    encode_error,
    encode_terminal,
)
from terminal_host.screen import SCROLLBACK_LINES
from terminal_host.screen_messages import encode_line, encode_matches
from terminal_host.wire import Frame, FrameInvalid, encode_frame

REQUESTS_LIMIT: Final = 64
"""Requests in work on one connection; the next is not read before one is answered."""
TEXT_LIMIT_LINES: Final = 1000
"""As many lines as a screen keeps."""
STYLED_LIMIT_LINES: Final = 200
"""Four tall screens of runs, each with its colours."""
MATCHES_LIMIT: Final = 100
"""Each with its line of up to 500 characters."""

_log = logging.getLogger(__name__)

Operation = Callable[["ControlPeer", Frame], Awaitable[Frame]]


class ControlPeer:
    """One client of the control protocol. `run` lasts as long as the connection."""

    def __init__(
        self,
        terminals: HostedTerminals,
        send: Callable[[bytes], Awaitable[None]],
        *,
        stop: Callable[[], None],
    ) -> None:
        self.terminals = terminals
        self.stop = stop
        self._send = send
        self._room = asyncio.Semaphore(REQUESTS_LIMIT)
        self._changed: dict[TerminalId, AnyTerminal | None] = {}
        self._outbox: list[Frame] = []
        self._something = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, request: Frame) -> None:
        """Start work on *request*; its answer is sent when it is done.

        Raises `FrameInvalid` if it has no number.
        """
        number = decode_number(request, "id")
        await self._room.acquire()
        task = asyncio.get_running_loop().create_task(self._work(number, request))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def send_all(self) -> None:
        """Send answers and changes as they come, until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            outbox, self._outbox = self._outbox, []
            # A terminal that changed ten times since the last frame is told once.
            changed, self._changed = self._changed, {}
            frames = outbox + [_describe(*item) for item in changed.items()]
            await self._send(b"".join(map(encode_frame, frames)))

    async def close(self) -> None:
        """Tell nothing more; wait for the requests in work."""
        self.terminals.unwatch(self.note)
        if self._tasks:
            await asyncio.wait(self._tasks)

    def note(self, terminal_id: TerminalId, terminal: AnyTerminal | None) -> None:
        """Tell the client of a change with the next frame."""
        self._changed[terminal_id] = terminal
        self._something.set()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _work(self, number: int, request: Frame) -> None:
        try:
            operation = _OPERATIONS.get(str(request.get("op")), _refuse)
            answer: Frame = {"id": number, "ok": await operation(self, request)}
        except SidestageError as error:
            answer = {"id": number, "error": encode_error(error)}
        except FrameInvalid as error:
            invalid = {"code": "INVALID_REQUEST", "message": str(error)}
            answer = {"id": number, "error": invalid}
        except Exception:  # noqa: BLE001  # a task's top: a bug must not cost an answer
            _log.exception("the operation %s failed", request.get("op"))
            failed = {"code": "INTERNAL", "message": "The terminal host failed."}
            answer = {"id": number, "error": failed}
        self._outbox.append(answer)
        self._something.set()


def _describe(terminal_id: TerminalId, terminal: AnyTerminal | None) -> Frame:
    if terminal is None:
        return {"event": "removed", "terminal_id": terminal_id}
    return {"event": "changed", "terminal": encode_terminal(terminal.describe())}


async def _refuse(_peer: ControlPeer, _: Frame) -> Frame:
    raise FrameInvalid("the operation is unknown")


async def _create(peer: ControlPeer, request: Frame) -> Frame:
    terminal = await peer.terminals.create(decode_create(request.get("request")))
    return {"terminal": encode_terminal(terminal.describe())}


async def _list(peer: ControlPeer, _: Frame) -> Frame:
    # A start that a server asked for before it died must not be missing: the next
    # server would take it back, and its files from under the program.
    await peer.terminals.wait_started()
    values = peer.terminals.values()
    return {"terminals": [encode_terminal(t.describe()) for t in values]}


async def _watch(peer: ControlPeer, request: Frame) -> Frame:
    # First watch, then list: a change in between is told twice rather than never.
    peer.terminals.watch(peer.note)
    return await _list(peer, request)


async def _resize(peer: ControlPeer, request: Frame) -> Frame:
    terminal = peer.terminals.get(decode_terminal_id(request))
    terminal.resize(decode_side(request, "cols"), decode_side(request, "rows"))
    return {}


async def _rename(peer: ControlPeer, request: Frame) -> Frame:
    peer.terminals.get(decode_terminal_id(request)).rename(read_text(request, "name"))
    return {}


async def _end(peer: ControlPeer, request: Frame) -> Frame:
    await peer.terminals.end(decode_terminal_id(request))
    return {}


async def _remove(peer: ControlPeer, request: Frame) -> Frame:
    await peer.terminals.remove(decode_terminal_id(request))
    return {}


async def _hold_conversation(peer: ControlPeer, request: Frame) -> Frame:
    peer.terminals.hold_conversation(
        decode_terminal_id(request), decode_conversation_id(request)
    )
    return {}


async def _had_input(peer: ControlPeer, request: Frame) -> Frame:
    return {"had_input": peer.terminals.get(decode_terminal_id(request)).had_input}


async def _screen_text(peer: ControlPeer, request: Frame) -> Frame:
    terminal = peer.terminals.get(decode_terminal_id(request))
    lines = min(decode_number(request, "lines"), TEXT_LIMIT_LINES)
    return {"text": bound_text(await terminal.text(lines))}


async def _screen_lines(peer: ControlPeer, request: Frame) -> Frame:
    terminal = peer.terminals.get(decode_terminal_id(request))
    lines = min(decode_number(request, "lines"), STYLED_LIMIT_LINES)
    styled = await terminal.styled(lines)
    return {"lines": [encode_line(line) for line in bound_lines(styled)]}


async def _search(peer: ControlPeer, request: Frame) -> Frame:
    terminal = peer.terminals.get(decode_terminal_id(request))
    wanted = read_text(request, "text")
    limit = min(decode_number(request, "limit"), MATCHES_LIMIT)
    # All there is: the lines of the history, and the rows of the highest screen.
    text = await terminal.text(SCROLLBACK_LINES + SIDE_LIMIT_CELLS)
    found = await asyncio.to_thread(find_matches, text, wanted, limit)
    return encode_matches(found)


async def _drop(peer: ControlPeer, request: Frame) -> Frame:
    return {"dropped": peer.terminals.drop(decode_holder(request))}


async def _drain(peer: ControlPeer, _: Frame) -> Frame:
    peer.terminals.draining = True
    return {}


async def _shutdown(peer: ControlPeer, _: Frame) -> Frame:
    peer.stop()
    return {}


async def _ping(_peer: ControlPeer, _: Frame) -> Frame:
    return {"pid": os.getpid()}


_OPERATIONS: Final[dict[str, Operation]] = {
    "create": _create,
    "list": _list,
    "watch": _watch,
    "resize": _resize,
    "rename": _rename,
    "end": _end,
    "remove": _remove,
    "hold_conversation": _hold_conversation,
    "had_input": _had_input,
    "screen_text": _screen_text,
    "screen_lines": _screen_lines,
    "search": _search,
    "drop": _drop,
    "drain": _drain,
    "shutdown": _shutdown,
    "ping": _ping,
}
OPERATIONS: Final = tuple(_OPERATIONS)
"""Every operation of the control connection, as `docs/host-protocol.md` lists them."""
