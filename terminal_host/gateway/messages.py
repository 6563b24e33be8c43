"""Every message of the companion WebSocket, both directions, and their strict parsing.

Text frames hold one JSON object each; `docs/terminal-protocol.md` has the same table.
Binary frames are no messages: input from the client, output prefixed by its offset from
the server.
"""

import json
from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from typing import ClassVar, Final

from sidestage.terminals.model import SIDE_LIMIT_CELLS

SUBPROTOCOL: Final = "sidestage.terminal.v1"
OFFSET_BYTES: Final = 8
"""Each binary frame of the server begins with a big-endian offset of this length."""
TEXT_LIMIT_BYTES: Final = 4096
"""The longest message is the first one, with its ticket: under 200 bytes."""
INPUT_LIMIT_BYTES: Final = 256 * 1024
"""One paste; a larger one is sent in pieces."""
TICKET_LIMIT_CHARACTERS: Final = 256
_OFFSET_LIMIT: Final = 1 << 53
"""Beyond it a JavaScript client cannot count."""


class CloseCode(IntEnum):
    """Why a socket is closed by the server."""

    ENDED = 1000
    """The program has ended and all of its output was sent."""
    TOO_BIG = 1009
    """A frame is above its limit."""
    RESTART = 1012
    """The server or the terminal host restarts: come back with a fresh ticket."""
    OVERLOAD = 1013
    """Too many sockets are open: come back later."""
    INVALID = 4400
    """A message that this protocol does not have, or not now."""
    UNAUTHENTICATED = 4401
    """The ticket was refused, or the device has been revoked since."""
    NOT_FOUND = 4404
    """There is no such terminal (any more)."""
    TIMEOUT = 4408
    """No first message in time, or nothing heard for 50 seconds."""
    QUOTA = 4429
    """This token has as many sockets open as one may: close one first."""
    READ_ONLY = 4409
    """A VIEW ticket admits no input and no size."""


class MessageInvalid(Exception):
    """What the client sent is no message of this protocol; *code* says how to close."""

    def __init__(self, reason: str, *, code: CloseCode = CloseCode.INVALID) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class Attach:
    """The first message: admits the client, once."""

    type: ClassVar = "attach"
    ticket: str
    after: int | None = None
    """The offset up to which the client has the output already."""
    cols: int | None = None
    """The client's own size; it does not change the terminal's until it is claimed."""
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Resize:
    """The client's size is this now; the terminal follows its size's owner only."""

    type: ClassVar = "resize"
    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Claim:
    """The client takes the size over, as typing does."""

    type: ClassVar = "claim"
    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Ack:
    """The client has processed the output up to *offset*."""

    type: ClassVar = "ack"
    offset: int


@dataclass(frozen=True, slots=True)
class Ping:
    """The other side answers with `pong`."""

    type: ClassVar = "ping"


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer to `ping`."""

    type: ClassVar = "pong"


@dataclass(frozen=True, slots=True)
class Attached:
    """The answer to `attach`: output comes from *offset* on."""

    type: ClassVar = "attached"
    terminalId: str  # noqa: N815  # names on the wire are camelCase
    mode: str
    state: str
    cols: int
    rows: int
    offset: int
    owner: bool
    """Whether this client decides the size."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The output between these offsets is no longer held; a `repaint` follows."""

    type: ClassVar = "gap"
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Repaint:
    """Reset the emulator to this size: the next *length* bytes repaint the screen.

    Their frames carry *offset*, for which the repainted screen stands; the output goes
    on from there.
    """

    type: ClassVar = "repaint"
    offset: int
    length: int
    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Resized:
    """The terminal has this size now."""

    type: ClassVar = "resized"
    cols: int
    rows: int
    owner: bool


@dataclass(frozen=True, slots=True)
class Exit:
    """The program has ended; its output ends at *offset*. The socket closes."""

    type: ClassVar = "exit"
    status: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class Error:
    """What went wrong; the socket closes with a code of its own."""

    type: ClassVar = "error"
    code: str
    message: str


ClientMessage = Attach | Resize | Claim | Ack | Ping | Pong
ServerMessage = Attached | Gap | Repaint | Resized | Exit | Error | Ping | Pong

CLIENT_MESSAGES: Final = (Attach, Resize, Claim, Ack, Ping, Pong)
SERVER_MESSAGES: Final = (
    Attached,
    Gap,
    Repaint,
    Resized,
    Exit,
    Error,
    Ping,
    Pong,
)

_BY_TYPE = {kind.type: kind for kind in CLIENT_MESSAGES}
_SIDES = ("cols", "rows")
_OFFSETS = ("offset", "after")


def encode_message(message: ServerMessage | ClientMessage) -> str:
    """Return *message* as the text of a frame; absent fields are left out."""
    values = {name: v for name, v in asdict(message).items() if v is not None}
    return json.dumps({"type": message.type, **values}, separators=(",", ":"))


def parse_message(text: str) -> ClientMessage:
    """Return the client's message in *text*; raises `MessageInvalid`."""
    if len(text) > TEXT_LIMIT_BYTES:
        raise MessageInvalid("The message is too long.", code=CloseCode.TOO_BIG)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageInvalid("The message is not JSON.") from error
    if not isinstance(values, dict):
        raise MessageInvalid("The message is not a JSON object.")
    kind = _BY_TYPE.get(str(values.pop("type", None)))
    if kind is None:
        raise MessageInvalid("The message's type is unknown.")
    _check_fields(kind, values)
    return kind(**values)


def _check_fields(kind: type[ClientMessage], values: dict[str, object]) -> None:
    known = {field.name: field for field in fields(kind)}
    for name, value in values.items():
        # Strictly none but ours: a misspelt `after` would cost a silent repaint.
        if name not in known:
            raise MessageInvalid(f"{kind.type} has no field like that.")
        if value is None or not _fits(name, value):
            raise MessageInvalid(f"{kind.type}: {name} cannot be that.")
    for name, field in known.items():
        if name not in values and name in _required(kind):
            raise MessageInvalid(f"{kind.type} needs {field.name}.")


def _required(kind: type[ClientMessage]) -> tuple[str, ...]:
    return ("ticket",) if kind is Attach else tuple(f.name for f in fields(kind))


def _fits(name: str, value: object) -> bool:
    if name == "ticket":
        return isinstance(value, str) and 0 < len(value) <= TICKET_LIMIT_CHARACTERS
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    if name in _OFFSETS:
        return 0 <= value < _OFFSET_LIMIT
    return name in _SIDES and 1 <= value <= SIDE_LIMIT_CELLS
