"""A terminal's last screen as bytes, and back: `docs/screen-record.md` is the format.

Pure: no file is touched here. What is not exactly a record is refused, so that a file
that a crash or a bad disk left behind counts as absent.
"""

import json
import struct
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from sidestage.ids import ProjectId, TerminalId
from sidestage.terminals.model import SIDE_LIMIT_CELLS, SandboxReport
from terminal_host.fields import read_flag, read_object, read_optional_text, read_text
from terminal_host.host_messages import decode_number, decode_terminal_id
from terminal_host.wire import Frame, FrameInvalid

MAGIC: Final = b"SIDESCRN"
FORMAT_VERSION: Final = 1
RECORD_LIMIT_BYTES: Final = 4 << 20
"""Of a whole record: a screen and its 1,000 lines are 20 to 80 KB, rarely 1.5 MB."""
META_LIMIT_BYTES: Final = 16 * 1024
"""Names and titles are a few hundred characters."""

_CHECKSUM_BYTES = 16
_HEADER = struct.Struct(f">8sHHHIII{_CHECKSUM_BYTES}s")
_UNKNOWN_SANDBOX = SandboxReport(
    enabled=False, kind="unknown", signals_confined=False, project_writable=True
)


class RecordInvalid(Exception):
    """The bytes are no record that this version reads."""


class RecordTooLarge(Exception):
    """The screen alone is beyond the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMeta:
    """What there is to know of the terminal beside its screen. Times are UTC."""

    terminal_id: TerminalId
    cols: int
    rows: int
    project_id: ProjectId | None
    name: str | None
    title: str | None
    started_at: datetime
    ended_at: datetime | None
    """When its program ended; None if it ran when the record was written."""
    exit_status: int | None
    saved_at: datetime
    offset: int
    """How many bytes of output the screen stands for."""
    last_output_at: datetime | None
    last_input_at: datetime | None
    bell_at: datetime | None
    sandbox: SandboxReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenRecord:
    """A screen that outlives its host."""

    meta: RecordMeta
    screen: bytes
    """VT bytes that repaint it in a fresh terminal of that size; whole sequences."""
    continuation: bytes
    """What was unfinished: of a sequence, or of a character. Not for showing."""


def encode_record(
    record: ScreenRecord, *, limit_bytes: int = RECORD_LIMIT_BYTES
) -> bytes:
    """Return *record* as a file's content; raises `RecordTooLarge`."""
    meta = json.dumps(_meta_fields(record.meta), separators=(",", ":")).encode("ascii")
    body = meta + record.screen + record.continuation
    if len(meta) > META_LIMIT_BYTES or _HEADER.size + len(body) > limit_bytes:
        raise RecordTooLarge(f"A record has at most {limit_bytes} bytes.")
    lengths = (len(meta), len(record.screen), len(record.continuation))
    numbers = (FORMAT_VERSION, record.meta.cols, record.meta.rows, *lengths)
    unsummed = _HEADER.pack(MAGIC, *numbers, b"")
    return _HEADER.pack(MAGIC, *numbers, _checksum(unsummed, body)) + body


def decode_record(
    data: bytes, *, limit_bytes: int = RECORD_LIMIT_BYTES
) -> ScreenRecord:
    """Return the record in *data*; raises `RecordInvalid` with what is wrong."""
    if len(data) > limit_bytes:
        raise RecordInvalid("beyond the bound")
    if len(data) < _HEADER.size:
        raise RecordInvalid("a short header")
    magic, version, cols, rows, *lengths, checksum = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise RecordInvalid("not a record")
    if version != FORMAT_VERSION:
        raise RecordInvalid(f"format version {version}")
    body = data[_HEADER.size :]
    if sum(lengths) != len(body):
        raise RecordInvalid("lengths that are not the rest of the file")
    unsummed = data[: _HEADER.size - _CHECKSUM_BYTES] + bytes(_CHECKSUM_BYTES)
    if checksum != _checksum(unsummed, body):
        raise RecordInvalid("a wrong checksum")
    if not (1 <= cols <= SIDE_LIMIT_CELLS and 1 <= rows <= SIDE_LIMIT_CELLS):
        raise RecordInvalid(f"a size of {cols} by {rows}")
    behind_meta, behind_screen = lengths[0], lengths[0] + lengths[1]
    return ScreenRecord(
        meta=_read_meta(body[:behind_meta], cols, rows),
        screen=body[behind_meta:behind_screen],
        continuation=body[behind_screen:],
    )


def _checksum(header: bytes, body: bytes) -> bytes:
    return blake2b(header + body, digest_size=_CHECKSUM_BYTES).digest()


def _meta_fields(meta: RecordMeta) -> dict[str, Any]:
    return {
        "terminal": meta.terminal_id,
        "project": meta.project_id,
        "name": meta.name,
        "title": meta.title,
        "started": meta.started_at.isoformat(),
        "ended": _time(meta.ended_at),
        "exit_status": meta.exit_status,
        "saved": meta.saved_at.isoformat(),
        "offset": meta.offset,
        "last_output": _time(meta.last_output_at),
        "last_input": _time(meta.last_input_at),
        "bell": _time(meta.bell_at),
        "sandbox": {
            "enabled": meta.sandbox.enabled,
            "kind": meta.sandbox.kind,
            "signals_confined": meta.sandbox.signals_confined,
            "project_writable": meta.sandbox.project_writable,
        },
    }


def _read_meta(data: bytes, cols: int, rows: int) -> RecordMeta:
    try:
        fields = read_object(json.loads(data))
        project = read_optional_text(fields, "project")
        started_at = _read_time(fields, "started")
        saved_at = _read_time(fields, "saved")
        if started_at is None or saved_at is None:
            raise RecordInvalid("a time is missing")
        return RecordMeta(
            terminal_id=decode_terminal_id({"terminal_id": fields.get("terminal")}),
            cols=cols,
            rows=rows,
            project_id=None if project is None else ProjectId(project),
            name=read_optional_text(fields, "name"),
            title=read_optional_text(fields, "title"),
            started_at=started_at,
            ended_at=_read_time(fields, "ended"),
            exit_status=None
            if fields.get("exit_status") is None
            else decode_number(fields, "exit_status"),
            saved_at=saved_at,
            offset=decode_number(fields, "offset"),
            last_output_at=_read_time(fields, "last_output"),
            last_input_at=_read_time(fields, "last_input"),
            bell_at=_read_time(fields, "bell"),
            sandbox=_read_sandbox(fields),
        )
    except (ValueError, RecursionError, FrameInvalid) as error:
        raise RecordInvalid(f"a meta field that is wrong: {error}") from error


def _read_sandbox(fields: Frame) -> SandboxReport:
    if fields.get("sandbox") is None:
        return _UNKNOWN_SANDBOX
    sandbox = read_object(fields["sandbox"])
    return SandboxReport(
        enabled=read_flag(sandbox, "enabled"),
        kind=read_text(sandbox, "kind"),
        signals_confined=read_flag(sandbox, "signals_confined"),
        project_writable=read_flag(sandbox, "project_writable"),
    )


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _read_time(fields: Frame, name: str) -> datetime | None:
    text = read_optional_text(fields, name)
    if text is None:
        return None
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise RecordInvalid(f"{name} has no time zone")
    return value
