"""Entries of a transcript out of its lines: typed, cleaned and cut. No I/O."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sidestage.agents.claude_code.lines import Line
from sidestage.agents.claude_code.prompts import (
    UserText,
    classify_user,
    command_text,
    notice_text,
)
from sidestage.agents.claude_code.records import (
    STATE_TYPES,
    TREE_TYPES,
    Json,
    Record,
    parse_record,
    text_of,
)
from sidestage.agents.claude_code.tree import Node
from sidestage.sessions.transcript import (
    ENTRY_TEXT_LIMIT_CHARACTERS,
    EntryKind,
    ToolCall,
    ToolResult,
    TranscriptEntry,
)
from sidestage.text import clean_text

ID_LIMIT_CHARACTERS: Final = 128
"""Ids and names are cut to this: real ones have 36 characters."""
BLOCK_LIMIT: Final = 1_000
"""Blocks told of one record; more are left out."""

OVERLONG: Final = "over-long line"
UNREADABLE: Final = "unreadable line"

_KIND_OF_USER_TEXT: Final = {
    UserText.PROMPT: EntryKind.PROMPT,
    UserText.COMMAND: EntryKind.COMMAND,
    UserText.NOTICE: EntryKind.NOTICE,
    UserText.SUMMARY: EntryKind.COMPACTION,
    UserText.INTERRUPTION: EntryKind.INTERRUPTION,
}
# What the CLI writes in the model's place when there was nothing to answer.
_NO_ANSWER: Final = "No response requested."
_ORDER: Final = re.compile(r"([0-9a-f]{12})\.([0-9a-f]{4})")
_TOO_DEEP: Final = '"[nested too deeply to show]"'
_QUIET_SUBTYPES: Final = frozenset(
    {"turn_duration", "stop_hook_summary", "compact_boundary"}
)


@dataclass(frozen=True, slots=True)
class _Piece:
    """An entry before it has its id and place."""

    kind: EntryKind
    text: str = ""
    model: str | None = None
    tool_call: ToolCall | None = None
    tool_result: ToolResult | None = None
    record_type: str | None = None


def find_node(record: Record, offset: int) -> Node | None:
    """Return the record's node in the conversation's tree, or None if it has none."""
    if record.uuid is None or record.is_sidechain:
        return None
    blocks = record.blocks if record.type in ("user", "assistant") else ()
    return Node(
        offset=offset,
        uuid=record.uuid,
        parent=record.parent,
        time=record.text("timestamp") or "",
        message_id=(
            text_of(record.message, "id") if record.type == "assistant" else None
        ),
        calls=_ids(blocks, "tool_use", "id"),
        results=_ids(blocks, "tool_result", "tool_use_id"),
        is_turn=_is_turn(record, blocks),
    )


def _ids(blocks: tuple[Json, ...], kind: str, key: str) -> tuple[str, ...]:
    return tuple(
        id_
        for block in blocks
        if block.get("type") == kind and (id_ := text_of(block, key)) is not None
    )


def _is_turn(record: Record, blocks: tuple[Json, ...]) -> bool:
    """Tell whether the record is something said: not context, not a tool's result."""
    if record.type == "assistant":
        return True
    return record.type == "user" and any(
        block.get("type") == "text" for block in blocks
    )


def read_entries(line: Line, session_hex: str) -> tuple[TranscriptEntry, ...]:
    """Return the entries that one line tells, in their order."""
    if line.data is None:
        pieces = [_opaque(OVERLONG)]
        return _entries(None, line.offset, session_hex, iter(pieces))
    if not line.data.strip():
        return ()
    record = parse_record(line.data)
    if record is None:
        pieces = [_opaque(UNREADABLE)]
        return _entries(None, line.offset, session_hex, iter(pieces))
    return _entries(record, line.offset, session_hex, _pieces(record))


def count_entries(record: Record) -> int:
    """Return how many entries the record's line has."""
    return sum(1 for _ in zip(range(BLOCK_LIMIT), _pieces(record), strict=False))


def order_of(offset: int, block: int = 0) -> str:
    """Return the place of a line's block: it sorts as the file does."""
    return f"{offset:012x}.{block:04x}"


def parse_order(order: str) -> tuple[int, int] | None:
    """Return the offset and the block in an `order`, or None if it is none."""
    match = _ORDER.fullmatch(order)
    return (int(match[1], 16), int(match[2], 16)) if match else None


def _entries(
    record: Record | None, offset: int, session_hex: str, pieces: Iterator[_Piece]
) -> tuple[TranscriptEntry, ...]:
    name = _short(record.uuid) if record and record.uuid else f"{offset:x}"
    at = record.at if record else None
    return tuple(
        _entry(
            piece, f"entry:{session_hex}:{name}:{block}", order_of(offset, block), at
        )
        for block, piece in zip(range(BLOCK_LIMIT), pieces, strict=False)
    )


def _entry(piece: _Piece, id_: str, order: str, at: datetime | None) -> TranscriptEntry:
    text = piece.text
    return TranscriptEntry(
        id=id_,
        order=order,
        kind=piece.kind,
        at=at,
        text=clean_text(text[:ENTRY_TEXT_LIMIT_CHARACTERS], multiline=True),
        truncated=len(text) > ENTRY_TEXT_LIMIT_CHARACTERS,
        model=piece.model,
        tool_call=piece.tool_call,
        tool_result=piece.tool_result,
        record_type=piece.record_type,
    )


def _pieces(record: Record) -> Iterator[_Piece]:
    if record.is_sidechain or record.type in STATE_TYPES:
        return
    if record.type == "user":
        yield from _user_pieces(record)
    elif record.type == "assistant":
        yield from _assistant_pieces(record)
    elif record.type == "system":
        yield from _system_pieces(record)
    elif record.type not in TREE_TYPES:
        yield _opaque(_short(record.type))


def _user_pieces(record: Record) -> Iterator[_Piece]:
    for block in record.blocks:
        kind = block.get("type")
        if kind == "text":
            yield from _user_text(record, text_of(block, "text") or "")
        elif kind == "tool_result":
            yield _result(record, block)
        elif kind in ("image", "document"):
            yield _Piece(EntryKind.PROMPT, f"[{kind}]")
        else:
            yield _opaque(f"user/{_short(str(kind))}")


def _user_text(record: Record, text: str) -> Iterator[_Piece]:
    what = classify_user(record, text)
    if what is UserText.HIDDEN or not text:
        return
    if what is UserText.COMMAND:
        text = command_text(text)
    elif what is UserText.NOTICE:
        text = notice_text(text)
    if text:
        yield _Piece(_KIND_OF_USER_TEXT[what], text)


def _result(record: Record, block: Json) -> _Piece:
    return _Piece(
        EntryKind.TOOL_RESULT,
        _result_text(block.get("content")),
        tool_result=ToolResult(
            call_id=_short(text_of(block, "tool_use_id") or ""),
            is_error=block.get("is_error") is True,
            denied=record.text("toolDenialKind") is not None,
        ),
    )


def _result_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        text_of(block, "text") or f"[{_short(str(block.get('type')))}]"
        for block in content
        if isinstance(block, dict)
    )


def _assistant_pieces(record: Record) -> Iterator[_Piece]:
    model = text_of(record.message, "model")
    if model is None or model == "<synthetic>":
        for block in record.blocks:
            text = text_of(block, "text")
            if text and text != _NO_ANSWER:
                yield _Piece(EntryKind.NOTICE, text)
        return
    for block in record.blocks:
        yield from _answer_block(block, _short(model))


def _answer_block(block: Json, model: str) -> Iterator[_Piece]:
    kind = block.get("type")
    if kind == "text":
        if text := text_of(block, "text"):
            yield _Piece(EntryKind.MESSAGE, text, model)
    elif kind in ("thinking", "redacted_thinking"):
        yield _Piece(EntryKind.THINKING, text_of(block, "thinking") or "", model)
    elif kind in ("tool_use", "server_tool_use"):
        yield _Piece(EntryKind.TOOL_CALL, "", model, tool_call=_call(block))
    else:
        yield _opaque(f"assistant/{_short(str(kind))}")


def _call(block: Json) -> ToolCall:
    # Not cut: whoever decides on a call must see all of it.
    try:
        inputs = json.dumps(block.get("input"), ensure_ascii=False)
    except RecursionError:
        inputs = _TOO_DEEP
    return ToolCall(
        id=_short(text_of(block, "id") or ""),
        name=_short(text_of(block, "name") or ""),
        input_json=clean_text(inputs, multiline=True),
    )


def _system_pieces(record: Record) -> Iterator[_Piece]:
    subtype = record.text("subtype") or ""
    text = record.text("content")
    if text is None or subtype in _QUIET_SUBTYPES:
        return
    shown = command_text(text)
    if shown:
        is_command = subtype == "local_command"
        yield _Piece(EntryKind.COMMAND if is_command else EntryKind.NOTICE, shown)


def _opaque(record_type: str) -> _Piece:
    return _Piece(EntryKind.OPAQUE, record_type=record_type)


def _short(text: str) -> str:
    return clean_text(text[:ID_LIMIT_CHARACTERS], multiline=False)
