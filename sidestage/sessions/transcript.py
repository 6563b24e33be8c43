"""A conversation's entries, as every agent's transcript is told."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from sidestage.ids import SessionId

ENTRY_TEXT_LIMIT_CHARACTERS = 65_536
"""A longer text is cut, and the entry says so; the whole stays in the CLI's file."""


class EntryKind(StrEnum):
    """What an entry of a transcript is."""

    PROMPT = "PROMPT"
    """A person's (or an SDK's) prompt."""
    MESSAGE = "MESSAGE"
    """Text of the model."""
    THINKING = "THINKING"
    TOOL_CALL = "TOOL_CALL"
    TOOL_RESULT = "TOOL_RESULT"
    COMPACTION = "COMPACTION"
    """The conversation was compacted here; the text is the summary."""
    INTERRUPTION = "INTERRUPTION"
    COMMAND = "COMMAND"
    """A slash or shell command of the person, or its output."""
    NOTICE = "NOTICE"
    """Something the CLI itself said: an API error, a notification of a task."""
    OPAQUE = "OPAQUE"
    """A record of a type this version does not know, or a line it had to skip."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the model asked for; *input_json* is the input as JSON text."""

    id: str
    name: str
    input_json: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What became of a tool call."""

    call_id: str
    is_error: bool
    denied: bool
    """The person, a rule or an interrupt refused the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEntry:
    """One entry: cleaned text, in the order of its branch."""

    id: str
    """`entry:<32 hex of the session>:<uuid or line>:<block>`; stable."""
    order: str
    """Sorts entries of one branch as they follow each other; the paging cursor."""
    kind: EntryKind
    at: datetime | None
    text: str
    truncated: bool
    model: str | None = None
    tool_call: ToolCall | None = None
    tool_result: ToolResult | None = None
    record_type: str | None = None
    """The CLI's own type of an OPAQUE entry."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the conversation's tree, named by its last entry."""

    id: str
    is_active: bool
    entries: int
    last_at: datetime | None
    preview: str


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """Some entries of one branch, oldest first, and what surrounds them."""

    entries: tuple[TranscriptEntry, ...]
    has_previous: bool
    has_next: bool
    branch_id: str | None
    branches: tuple[Branch, ...]
    total: int
    skipped_lines: int
    """Lines that could not be read: malformed, torn, over the limit."""


@dataclass(frozen=True, slots=True)
class TranscriptUpdate:
    """What a follower of a transcript gets."""

    reset: bool
    """True: another branch became active, or the file was replaced; start over."""
    entries: tuple[TranscriptEntry, ...]


class Transcripts(Protocol):
    """Reads conversations. Every call raises `OutsideSessionNotFound`."""

    async def page(
        self,
        session_id: SessionId,
        *,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
        branch: str | None = None,
    ) -> TranscriptPage:
        """Return entries of the active branch, or of *branch*.

        *after* and *before* are `order` values; one that is not of this branch raises
        `BadUserInput`.
        """

    def follow(
        self, session_id: SessionId, *, after: str | None, backlog: int = 50
    ) -> AsyncIterator[TranscriptUpdate]:
        """Yield the entries after *after*, or the last *backlog*, then what comes.

        The first update has `reset` set when *after* is not in the active branch.
        """
