"""A session's last turn, read from its transcript, and what came since."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sidestage.errors import BadUserInput
from sidestage.handover.pastes import unwrap_paste
from sidestage.handover.summary import summarize
from sidestage.ids import SessionId
from sidestage.sessions.transcript import EntryKind, TranscriptEntry, Transcripts

TURN_LIMIT_ENTRIES: Final = 200
"""As much as one page holds: the question and the texts before it are at the end."""

_SILENT: Final = frozenset({EntryKind.THINKING, EntryKind.NOTICE, EntryKind.OPAQUE})
"""Entries that say nothing to or of the person."""
ACTIVITY: Final = frozenset(
    {
        EntryKind.PROMPT,
        EntryKind.MESSAGE,
        EntryKind.TOOL_CALL,
        EntryKind.COMMAND,
        EntryKind.INTERRUPTION,
        EntryKind.COMPACTION,
    }
)
"""What means that a session went on."""


@dataclass(frozen=True, slots=True)
class LastTurn:
    """The agent's last message, and what was said before it."""

    record_uuid: str
    order: str
    text: str = field(repr=False)
    summary: str = field(repr=False)


async def read_last_turn(
    transcripts: Transcripts, session_id: SessionId
) -> LastTurn | None:
    """Return the message the active branch ends in; None if it ends in none.

    Raises `OutsideSessionNotFound`.
    """
    page = await transcripts.page(session_id, last=TURN_LIMIT_ENTRIES)
    return find_last_turn(page.entries)


def find_last_turn(entries: Sequence[TranscriptEntry]) -> LastTurn | None:
    """Return the message that *entries* end in; None if they end in another thing."""
    told = [entry for entry in entries if entry.kind not in _SILENT]
    start = len(told)
    while start and told[start - 1].kind is EntryKind.MESSAGE:
        start -= 1
    message = told[start:]
    if not message:
        return None
    return LastTurn(
        record_uuid=record_uuid(message[-1]),
        order=message[-1].order,
        text="\n\n".join(entry.text for entry in message),
        summary=summarize(told[:start]),
    )


async def went_on(transcripts: Transcripts, session_id: SessionId, order: str) -> bool:
    """Tell whether a session went on behind the entry at *order*.

    It did too if another branch of it is the active one now. Raises
    `OutsideSessionNotFound`.
    """
    entries = await _entries_after(transcripts, session_id, order)
    return entries is None or any(entry.kind in ACTIVITY for entry in entries)


async def was_prompted(
    transcripts: Transcripts, session_id: SessionId, order: str
) -> bool:
    """Tell whether a person prompted a session behind the entry at *order*.

    Raises `OutsideSessionNotFound`.
    """
    entries = await _entries_after(transcripts, session_id, order)
    if entries is None:
        return True
    return any(entry.kind is EntryKind.PROMPT for entry in entries)


async def prompts_since(
    transcripts: Transcripts, session_id: SessionId, since: datetime
) -> frozenset[str]:
    """Return what a session was prompted since, each text `squeezed`.

    White space is not compared: the CLI turns a tab into spaces. Raises
    `OutsideSessionNotFound`.
    """
    page = await transcripts.page(session_id, last=TURN_LIMIT_ENTRIES)
    return frozenset(
        squeezed(unwrap_paste(entry.text))
        for entry in page.entries
        if entry.kind is EntryKind.PROMPT and entry.at is not None and entry.at >= since
    )


async def last_order(transcripts: Transcripts, session_id: SessionId) -> str | None:
    """Return the place of the last entry; None if there is none."""
    page = await transcripts.page(session_id, last=1)
    return page.entries[-1].order if page.entries else None


def squeezed(text: str) -> str:
    """Return *text* without any white space, for comparing."""
    return "".join(text.split())


def record_uuid(entry: TranscriptEntry) -> str:
    """Return the uuid of the record that an entry was read from."""
    return entry.id.split(":")[2]


async def _entries_after(
    transcripts: Transcripts, session_id: SessionId, order: str
) -> tuple[TranscriptEntry, ...] | None:
    """Return what follows *order*; None if it is not in the active branch."""
    try:
        page = await transcripts.page(session_id, first=TURN_LIMIT_ENTRIES, after=order)
    except BadUserInput:
        return None
    return page.entries
