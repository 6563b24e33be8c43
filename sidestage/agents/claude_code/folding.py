"""What the list shows of a transcript: a fold over its lines, resumable at any line.

The list never opens transcripts: it reads these rows. A row can be stored, loaded and
folded on from where it stopped.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import orjson

from sidestage.agents.claude_code.lines import Line
from sidestage.agents.claude_code.prompts import find_prompt
from sidestage.agents.claude_code.records import (
    STATE_TYPES,
    TREE_TYPES,
    Record,
    object_of,
    parse_record,
    text_of,
)
from sidestage.agents.claude_code.usage import Hours, RecentAnswers, count_usage
from sidestage.sessions.model import TokenUsage
from sidestage.text import clean_text, shorten

NAME_LIMIT_CHARACTERS: Final = 80
PREVIEW_LIMIT_CHARACTERS: Final = 500
PATH_LIMIT_CHARACTERS: Final = 4096
"""PATH_MAX of Linux: a longer folder is none."""
OPEN_CALL_LIMIT: Final = 32
"""Tool calls without a result that are remembered; the oldest are forgotten."""
FORMAT: Final = 1
"""Raised when a row of an older version must be folded anew."""

# Three quarters of a transcript's bytes are lines the fold has no use for; they are
# told by how they begin, without parsing them (docs/discovery.md, "Speed").
_SKIPPED_STARTS: Final = (
    b'{"type":"api-request',
    b'{"type":"file-history-',
    b'{"type":"cost-state"',
    b'{"type":"tools-used"',
    b'{"type":"atis-latch"',
    b'{"type":"last-prompt"',
    b'{"type":"queue-operation"',
)
_TREE_START: Final = b'{"parentUuid":'
_ATTACHMENT_MARK: Final = b'"isSidechain":false,"attachment":{'
_ATTACHMENT_WINDOW_BYTES: Final = 120


@dataclass(slots=True)
class Fold:
    """The values folded so far. Texts are cleaned; times are seconds since 1970."""

    format: int = FORMAT
    offset: int = 0
    complete: bool = True
    """False: only the head and the tail of the file were read."""
    directory: str | None = None
    """`cwd` of the first record that has one, as recorded."""
    current_directory: str | None = None
    person_title: str | None = None
    cli_title: str | None = None
    first_prompt: str | None = None
    has_prompt: bool = False
    git_branch: str | None = None
    model: str | None = None
    version: str | None = None
    permission_mode: str | None = None
    last_role: str | None = None
    last_text: str | None = None
    last_text_at: float | None = None
    started_at: float | None = None
    last_activity_at: float | None = None
    first_user_uuid: str | None = None
    parent_conversation: str | None = None
    is_sidechain: bool = False
    open_calls: list[list[str]] = field(default_factory=list)
    """`[call id, tool name, message id]` of calls without a result, oldest first."""
    usage: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    hours: Hours = field(default_factory=dict)
    recent_answers: RecentAnswers = field(default_factory=list)
    bad_lines: int = 0
    overlong_lines: int = 0
    unknown_lines: int = 0
    guard: str = ""
    """Digest of the bytes just before *offset*: other bytes are another file."""

    @property
    def token_usage(self) -> TokenUsage:
        """The tokens of every answer this conversation asked for itself."""
        return TokenUsage(*self.usage)

    @property
    def skipped_lines(self) -> int:
        """Lines that could not be read."""
        return self.bad_lines + self.overlong_lines


def dump_fold(fold: Fold) -> bytes:
    """Return the fold as JSON."""
    return orjson.dumps(fold)


def load_fold(body: bytes) -> Fold | None:
    """Return the fold that `dump_fold` wrote, or None if it is another version's."""
    try:
        fold = Fold(**orjson.loads(body))
    except (TypeError, ValueError):
        return None
    return fold if fold.format == FORMAT else None


def fold_line(fold: Fold, line: Line, conversation_id: str) -> None:
    """Fold one line of *conversation_id*'s transcript in."""
    fold.offset = line.offset + line.length
    if line.data is None:
        fold.overlong_lines += 1
    elif line.data and not _is_skipped(fold, line.data):
        _fold_data(fold, line.data, conversation_id)


def is_bookkeeping(data: bytes) -> bool:
    """Tell by its first bytes that a line is no part of the conversation."""
    return data.startswith(_SKIPPED_STARTS)


def _is_skipped(fold: Fold, data: bytes) -> bool:
    if is_bookkeeping(data):
        return True
    return (
        fold.directory is not None
        and data.startswith(_TREE_START)
        and data.find(_ATTACHMENT_MARK, 0, _ATTACHMENT_WINDOW_BYTES) >= 0
    )


def _fold_data(fold: Fold, data: bytes, conversation_id: str) -> None:
    record = parse_record(data)
    if record is None:
        if data.strip():
            fold.bad_lines += 1
    elif record.type in TREE_TYPES:
        _fold_tree_record(fold, record, conversation_id)
    elif record.type in STATE_TYPES:
        _fold_state(fold, record)
    else:
        fold.unknown_lines += 1


def _fold_state(fold: Fold, record: Record) -> None:
    if record.type == "custom-title":
        fold.person_title = _title(record.text("customTitle")) or fold.person_title
    elif record.type == "ai-title":
        fold.cli_title = _title(record.text("aiTitle")) or fold.cli_title
    elif record.type == "summary":  # what older versions wrote instead of a title
        fold.cli_title = _title(record.text("summary")) or fold.cli_title
    elif record.type == "permission-mode":
        fold.permission_mode = _word(record.text("permissionMode"))


def _fold_tree_record(fold: Fold, record: Record, conversation_id: str) -> None:
    if record.is_sidechain:
        # A sub-agent's records say nothing about the session that started it.
        fold.is_sidechain = fold.is_sidechain or fold.first_user_uuid is None
        return
    _fold_place(fold, record)
    moment = record.at
    seconds = moment.timestamp() if moment else None
    if seconds is not None:
        fold.started_at = min(fold.started_at or seconds, seconds)
        fold.last_activity_at = max(fold.last_activity_at or seconds, seconds)
    parent = _parent_conversation(record, conversation_id)
    fold.parent_conversation = parent or fold.parent_conversation
    if record.type == "user":
        _fold_user(fold, record, seconds)
    elif record.type == "assistant":
        _fold_answer(fold, record, seconds, is_copy=parent is not None)


def _fold_place(fold: Fold, record: Record) -> None:
    directory = _path(record.text("cwd"))
    if directory is not None:
        fold.directory = fold.directory or directory
        fold.current_directory = directory
    fold.git_branch = _word(record.text("gitBranch")) or fold.git_branch
    fold.version = _word(record.text("version")) or fold.version


def _parent_conversation(record: Record, conversation_id: str) -> str | None:
    """Return the conversation this record was copied from, if it was.

    `/branch` says so in `forkedFrom`; a fork by `--fork-session` keeps, in each copied
    answer, the conversation that asked for it.
    """
    for parent in (
        text_of(record.object("forkedFrom"), "sessionId"),
        record.text("requestSessionId"),
    ):
        if parent is not None and parent != conversation_id:
            return parent
    return None


def _fold_user(fold: Fold, record: Record, seconds: float | None) -> None:
    fold.first_user_uuid = fold.first_user_uuid or record.uuid
    fold.permission_mode = _word(record.text("permissionMode")) or fold.permission_mode
    answered = {
        text_of(block, "tool_use_id")
        for block in record.blocks
        if block.get("type") == "tool_result"
    }
    if answered:
        fold.open_calls = [call for call in fold.open_calls if call[0] not in answered]
    prompt = find_prompt(record)
    if prompt is None:
        return
    fold.open_calls = []  # a new turn: what had no result by now gets none
    fold.has_prompt = True
    fold.first_prompt = fold.first_prompt or _title(prompt)
    _set_last(fold, "USER", prompt, seconds)


def _fold_answer(
    fold: Fold, record: Record, seconds: float | None, *, is_copy: bool
) -> None:
    message = record.message
    model = text_of(message, "model")
    if model is None or model == "<synthetic>":
        return
    fold.model = _word(model)
    message_id = text_of(message, "id") or record.uuid or ""
    for block in record.blocks:
        _fold_block(fold, block, message_id, seconds)
    del fold.open_calls[:-OPEN_CALL_LIMIT]
    if not is_copy:
        count_usage(
            fold.usage,
            fold.hours,
            fold.recent_answers,
            message_id=message_id,
            counts=object_of(message, "usage"),
            seconds=seconds,
        )


def _fold_block(
    fold: Fold, block: dict[str, object] | object, message_id: str, at: float | None
) -> None:
    if not isinstance(block, dict):
        return
    if block.get("type") == "tool_use":
        call, name = text_of(block, "id"), text_of(block, "name")
        if call and name:
            fold.open_calls.append([call, _word(name) or name, message_id])
    elif block.get("type") == "text" and (text := text_of(block, "text")):
        _set_last(fold, "ASSISTANT", text, at)


def _set_last(fold: Fold, role: str, text: str, at: float | None) -> None:
    # Cut before cleaning: a text may have megabytes, the preview has a few lines.
    shown = clean_text(text[: 4 * PREVIEW_LIMIT_CHARACTERS], multiline=True).strip()
    if shown:
        fold.last_role = role
        fold.last_text = shorten(shown, PREVIEW_LIMIT_CHARACTERS)
        fold.last_text_at = at


def _title(text: str | None) -> str | None:
    if text is None:
        return None
    cleaned = clean_text(text[: 4 * NAME_LIMIT_CHARACTERS], multiline=False)
    return shorten(cleaned, NAME_LIMIT_CHARACTERS) or None


def _word(text: str | None) -> str | None:
    if text is None:
        return None
    return clean_text(text[:NAME_LIMIT_CHARACTERS], multiline=False) or None


def _path(text: str | None) -> str | None:
    if text is None or len(text) > PATH_LIMIT_CHARACTERS or "\0" in text:
        return None
    return text if text.startswith("/") else None


def merge_tail(head: Fold, tail: Fold) -> Fold:
    """Join the folds of a file's head and tail; what lies between is not counted."""
    for name in _TAIL_FIELDS:
        value = getattr(tail, name)
        if value is not None:
            setattr(head, name, value)
    head.has_prompt = head.has_prompt or tail.has_prompt
    head.first_prompt = head.first_prompt or tail.first_prompt
    head.directory = head.directory or tail.directory
    head.open_calls = tail.open_calls
    head.complete = False
    return head


_TAIL_FIELDS: Final = (
    "current_directory",
    "person_title",
    "cli_title",
    "git_branch",
    "model",
    "version",
    "permission_mode",
    "last_role",
    "last_text",
    "last_text_at",
    "last_activity_at",
    "parent_conversation",
)


def moment(seconds: float | None) -> datetime | None:
    """Return seconds since 1970 as UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
