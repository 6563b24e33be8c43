"""One line of a transcript as a record: tolerant reading of fields that may be absent.

Types and fields: docs/discovery.md, "Transcripts". Nothing here raises on bad input.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import orjson

Json = Mapping[str, object]
_EMPTY: Final[Json] = {}

TREE_TYPES: Final = frozenset({"user", "assistant", "attachment", "system"})
"""Records that stand in the conversation's tree."""

STATE_TYPES: Final = frozenset(
    {
        "agent-name",
        "ai-title",
        "api-request",
        "api-request-blob",
        "api-request-shape",
        "atis-latch",
        "cost-state",
        "custom-title",
        "file-history-delta",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "progress",
        "queue-operation",
        "summary",
        "tools-used",
    }
)
"""Bookkeeping that is no part of the conversation."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record, with the fields most readers need; *raw* holds them all."""

    type: str
    uuid: str | None
    parent: str | None
    """`parentUuid`; where that is null (after a compaction) `logicalParentUuid`."""
    raw: Json = field(repr=False)

    def text(self, key: str) -> str | None:
        """Return the field if it is a string that is not empty."""
        return text_of(self.raw, key)

    def flag(self, key: str) -> bool:
        """Tell whether the field is exactly true."""
        return self.raw.get(key) is True

    def object(self, key: str) -> Json:
        """Return the field if it is an object, else an empty one."""
        return object_of(self.raw, key)

    @property
    def at(self) -> datetime | None:
        """The record's time (UTC), if it has one that can be read."""
        return parse_time(self.text("timestamp"))

    @property
    def message(self) -> Json:
        """The `message` of a user or assistant record."""
        return self.object("message")

    @property
    def blocks(self) -> tuple[Json, ...]:
        """The content's blocks; a plain string counts as one text block."""
        content = self.message.get("content")
        if isinstance(content, str):
            return ({"type": "text", "text": content},)
        if not isinstance(content, list):
            return ()
        return tuple(block for block in content if isinstance(block, dict))

    @property
    def is_sidechain(self) -> bool:
        """Whether a sub-agent wrote it."""
        return self.flag("isSidechain")


def text_of(values: Json, key: str) -> str | None:
    """Return the value at *key* if it is a string that is not empty."""
    value = values.get(key)
    return value if isinstance(value, str) and value else None


def object_of(values: Json, key: str) -> Json:
    """Return the value at *key* if it is an object, else an empty one."""
    value = values.get(key)
    return value if isinstance(value, dict) else _EMPTY


def int_of(values: Json, key: str) -> int:
    """Return the value at *key* if it is a whole number from 0, else 0."""
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(value, 0)


def parse_record(line: bytes) -> Record | None:
    """Return the record in *line* (without its line feed), or None if it is bad."""
    raw = parse_object(line)
    if raw is None:
        return None
    kind = text_of(raw, "type")
    if kind is None:
        return None
    parent = text_of(raw, "parentUuid") or text_of(raw, "logicalParentUuid")
    return Record(kind, text_of(raw, "uuid"), parent, raw)


def parse_object(data: bytes) -> Json | None:
    """Return the JSON object in *data*, or None. Lone surrogates become U+FFFD."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _parse_leniently(data)
    return value if isinstance(value, dict) else None


def _parse_leniently(data: bytes) -> object:
    # orjson refuses lone surrogates and bytes that are not UTF-8; both occur, and
    # neither is a reason to lose a line.
    try:
        return _without_surrogates(json.loads(data.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return None


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        encoded = value.encode("utf-16-le", "surrogatepass")
        return encoded.decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            str(_without_surrogates(key)): _without_surrogates(item)
            for key, item in value.items()
        }
    return value


def parse_time(text: str | None) -> datetime | None:
    """Return an ISO 8601 time as UTC, or None if it is none."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (
            moment.astimezone(UTC)
            if moment.tzinfo is not None
            else moment.replace(tzinfo=UTC)
        )
    except (ValueError, OverflowError):
        return None
