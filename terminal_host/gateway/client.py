"""One client of one terminal: its WebSocket, its ticket, its share of the output."""

import asyncio
import logging
from typing import Final, Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect

from sidestage.devices.model import Principal
from sidestage.errors import HostUnavailable, TerminalNotFound
from sidestage.terminals.desk import Admission, TicketMode
from sidestage.terminals.model import TerminalState
from terminal_host.gateway.closing import Closing, client_may_be_gone, close_socket
from terminal_host.gateway.host_attachment import HostAttachment
from terminal_host.gateway.messages import (
    INPUT_LIMIT_BYTES,
    OFFSET_BYTES,
    Ack,
    Attach,
    Attached,
    Claim,
    ClientMessage,
    CloseCode,
    Exit,
    Gap,
    MessageInvalid,
    Ping,
    Pong,
    Repaint,
    Resize,
    Resized,
    ServerMessage,
    encode_message,
    parse_message,
)
from terminal_host.gateway.output import OutputFramer, Window
from terminal_host.gateway.sizes import Size, SizeOwners
from terminal_host.host_messages import Attached as HostAttached
from terminal_host.host_messages import AttachRequest, Holder
from terminal_host.input_kind import InputKind, classify_input
from terminal_host.utf8 import incomplete_suffix

PING_SECONDS: Final = 20.0
"""Below the 30 s after which the strictest mobile networks forget a connection."""
SILENCE_SECONDS: Final = 50.0
"""A client that says nothing for so long let two pings pass: it is gone, whatever its
socket says. With `CLOSE_SECONDS` it is found within a minute."""

_log = logging.getLogger(__name__)


class Host(Protocol):
    """The part of the host's client that attachments need."""

    async def attach(self, request: AttachRequest) -> HostAttachment:
        """Open a client's end of a terminal; raises `TerminalNotFound`."""


class Door(Protocol):
    """Tells whether a client that was admitted still may stay."""

    def is_current(self, principal: Principal) -> bool:
        """Tell whether the principal's token is still good (no I/O)."""


class TerminalClient:
    """An admitted client. `run` serves it; `kick` ends it from outside."""

    def __init__(
        self,
        websocket: WebSocket,
        admission: Admission,
        attach: Attach,
        *,
        host: Host,
        door: Door,
        sizes: SizeOwners,
    ) -> None:
        self.terminal_id = admission.terminal_id
        self.principal = admission.principal
        self.size: Size | None = None
        if attach.cols is not None and attach.rows is not None:
            self.size = (attach.cols, attach.rows)
        self._websocket = websocket
        self._mode = admission.mode
        self._after = attach.after
        self._host = host
        self._door = door
        self._sizes = sizes
        self._window = Window()
        self._framer = OutputFramer(attach.after or 0)
        self._attachment: HostAttachment | None = None
        self._attached = asyncio.Event()
        self._terminal_size: Size = (0, 0)
        self._welcomed = False
        self._clock = asyncio.get_running_loop().time
        self._heard_at = self._clock()
        self._notify = asyncio.Event()
        self._repaint_rest = b""
        self._lost = False
        """Whether the terminal's host went away: there is a screen, and no program."""
        self._shown_size: Size | None = None
        """The size of the repaint that was sent last, once all of it is sent."""
        self._kicked: asyncio.Future[Closing] = (
            asyncio.get_running_loop().create_future()
        )

    def kick(self, code: CloseCode, reason: str) -> None:
        """End this client: no byte passes any more; its socket closes at once."""
        if self._attachment is not None:
            self._attachment.close()
        if not self._kicked.done():
            self._kicked.set_result(Closing(code, reason))

    def resized(self, size: Size) -> None:
        """Tell the client that the terminal has another size."""
        if size != self._terminal_size:
            self._terminal_size = size
            self._notify.set()

    def ownership_changed(self) -> None:
        """Tell the client whether it owns the size."""
        self._notify.set()

    async def run(self) -> None:
        """Serve the client until either side is done; close the socket."""
        closing = Closing(CloseCode.RESTART, "The server stops.")
        try:
            closing = await self._serve()
        finally:
            self._sizes.left(self.terminal_id, self)
            if self._attachment is not None:
                self._attachment.close()
            await close_socket(self._websocket, closing)

    async def _serve(self) -> Closing:
        """Run all parts until the first ends; return how to close."""
        loop = asyncio.get_running_loop()
        work = (
            *(self._copy_output(), self._take_input(), self._tell()),
            *(self._ping(), self._watch_silence()),
        )
        tasks = [loop.create_task(part) for part in work]
        waited: set[asyncio.Future[None] | asyncio.Future[Closing]] = {
            *tasks,
            self._kicked,
        }
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._kicked.done():
            return self._kicked.result()
        return _reason(tasks)

    async def _copy_output(self) -> None:
        """Send output until the program has ended; attach again after each loss."""
        position = self._after
        while True:
            attachment = await self._attach(position)
            try:
                await self._welcome(attachment.attached, position)
                await self._copy(attachment)
            finally:
                self._attached.clear()
                attachment.close()
            position = self._framer.offset
            if self._lost:
                position = None  # it has no output: the screen is shown anew
            elif not attachment.attached.running:
                status = attachment.attached.exit_status
                await self._send(Exit(status=status, offset=position))
                raise Closing(CloseCode.ENDED, "The program has ended.")

    async def _attach(self, position: int | None) -> HostAttachment:
        request = AttachRequest(
            terminal_id=self.terminal_id,
            after=position,
            writable=self._mode is TicketMode.CONTROL,
            holder=Holder(self.principal.token_id or self.principal.actor),
            cols=None if self.size is None else self.size[0],
            rows=None if self.size is None else self.size[1],
        )
        try:
            attachment = await self._host.attach(request)
        except TerminalNotFound as error:
            raise Closing(CloseCode.NOT_FOUND, str(error)) from error
        except HostUnavailable as error:
            raise Closing(CloseCode.RESTART, str(error)) from error
        self._attachment = attachment
        if self._kicked.done():
            attachment.close()
        return attachment

    async def _welcome(self, attached: HostAttached, position: int | None) -> None:
        """Say where the output begins, and whether it begins with a repaint."""
        self._terminal_size = (attached.cols, attached.rows)
        self._lost = attached.lost
        if not self._welcomed:
            self._welcomed = True
            await self._send(self._greeting(attached))
        if attached.offset == position and not attached.repaint_bytes:
            self._attached.set()
            return
        if position is not None and position < attached.offset:
            await self._send(Gap(start=position, end=attached.offset))
        await self._send(
            Repaint(
                offset=attached.offset,
                length=attached.repaint_bytes,
                cols=attached.cols,
                rows=attached.rows,
            )
        )
        self._attached.set()

    def _greeting(self, attached: HostAttached) -> Attached:
        state = TerminalState.RUNNING if attached.running else TerminalState.EXITED
        if attached.lost:
            state = TerminalState.LOST
        return Attached(
            terminalId=self.terminal_id,
            mode=str(self._mode),
            state=str(state),
            cols=attached.cols,
            rows=attached.rows,
            offset=attached.offset,
            owner=self._sizes.owns(self.terminal_id, self),
        )

    async def _copy(self, attachment: HostAttachment) -> None:
        """Send the repaint and the output behind it, as the client acknowledges."""
        attached = attachment.attached
        left = attached.repaint_bytes
        self._repaint_rest, self._shown_size = b"", None
        self._framer = OutputFramer(attached.offset)
        self._window.restart(attached.offset)
        while data := await attachment.receive():
            if left:
                repaint, data = data[:left], data[left:]
                left -= len(repaint)
                await self._send_repaint(repaint, attached.offset, last=not left)
            if not left:
                self._shown_size = self._terminal_size
                self._reflow()
            frame = self._framer.frame(data) if data else None
            if frame is not None:
                await self._send_output(frame)
        rest = self._framer.rest()
        if rest is not None:
            await self._send_output(rest)

    async def _send_output(self, frame: bytes) -> None:
        await self._send_bytes(frame)
        self._window.sent(self._framer.offset)
        await self._window.wait_open()

    async def _send_repaint(self, data: bytes, offset: int, *, last: bool) -> None:
        """Send a piece of the repaint, whose end is a whole character already."""
        pending = self._repaint_rest + data
        cut = 0 if last else incomplete_suffix(pending)
        piece = pending[: len(pending) - cut]
        self._repaint_rest = pending[len(pending) - cut :]
        if piece:
            await self._send_bytes(offset.to_bytes(OFFSET_BYTES, "big") + piece)

    async def _take_input(self) -> None:
        """Act on the client's messages until it goes."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1006))
            if not self._door.is_current(self.principal):
                raise Closing(CloseCode.UNAUTHENTICATED, "The device was revoked.")
            self._heard_at = self._clock()
            data = message.get("bytes")
            if data is not None:
                await self._type(data)
            else:
                await self._act(parse_message(message.get("text") or ""))

    async def _type(self, data: bytes) -> None:
        if self._mode is not TicketMode.CONTROL:
            raise Closing(CloseCode.READ_ONLY, "A VIEW ticket admits no input.")
        if len(data) > INPUT_LIMIT_BYTES:
            raise Closing(CloseCode.TOO_BIG, "That is too much input for one frame.")
        if self._lost:
            return  # no program is there to read it, and no size to be had
        kind = classify_input(data)
        if not data or kind is InputKind.DOUBLE:
            return
        if kind is InputKind.TYPING:
            self._sizes.typed(self.terminal_id, self)
        await self._attached.wait()
        if self._attachment is not None:
            await self._attachment.send(data)

    async def _act(self, message: ClientMessage) -> None:
        if isinstance(message, Ack):
            if not self._window.acknowledged(message.offset):
                raise MessageInvalid("That output was never sent.")
        elif isinstance(message, Ping):
            await self._send(Pong())
        elif isinstance(message, Resize | Claim):
            self._set_size(message)
        elif isinstance(message, Attach):
            raise MessageInvalid("This socket is attached already.")

    def _set_size(self, message: Resize | Claim) -> None:
        size = (message.cols, message.rows)
        if self._lost:
            self.size = size
            self._reflow()
        elif isinstance(message, Resize):
            self._sizes.resized(self.terminal_id, self, size)
        elif self._mode is TicketMode.CONTROL:
            self._sizes.claimed(self.terminal_id, self, size)
        else:
            raise Closing(CloseCode.READ_ONLY, "A VIEW ticket decides no size.")

    def _reflow(self) -> None:
        """Have a LOST screen shown anew if the client has another size now."""
        # Not while it is being sent: the client counts on the whole of it.
        if not self._lost or self._attachment is None or self._shown_size is None:
            return
        if self.size not in (None, self._shown_size):
            self._attachment.hang_up()

    async def _ping(self) -> None:
        """Ping for ever, so that a live client has something to answer."""
        while True:
            await asyncio.sleep(PING_SECONDS)
            await self._send(Ping())

    async def _watch_silence(self) -> None:
        """Close once nothing was heard for too long."""
        # Not at the pings: one may wait in a full buffer, and comes up to 20 s late.
        while True:
            left = self._heard_at + SILENCE_SECONDS - self._clock()
            if left <= 0:
                raise Closing(CloseCode.TIMEOUT, "Nothing was heard for too long.")
            await asyncio.sleep(left)

    async def _tell(self) -> None:
        """Tell the newest size and ownership whenever they change."""
        await self._attached.wait()
        while True:
            await self._notify.wait()
            self._notify.clear()
            cols, rows = self._terminal_size
            owner = self._sizes.owns(self.terminal_id, self)
            await self._send(Resized(cols=cols, rows=rows, owner=owner))

    async def _send(self, message: ServerMessage) -> None:
        with client_may_be_gone():
            await self._websocket.send_text(encode_message(message))

    async def _send_bytes(self, data: bytes) -> None:
        with client_may_be_gone():
            await self._websocket.send_bytes(data)


def _reason(tasks: list[asyncio.Task[None]]) -> Closing:
    """Return how to close after the first of *tasks* has ended."""
    for task in tasks:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Closing):
            return error
        if isinstance(error, MessageInvalid):
            return Closing(error.code, str(error))
        if isinstance(error, WebSocketDisconnect):
            return Closing(CloseCode.ENDED, "The client went.")
        if error is not None:
            _log.error("a terminal's socket failed", exc_info=error)
    return Closing(CloseCode.RESTART, "The server could not go on.")
