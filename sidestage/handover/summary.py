"""What was said before a question: a few lines, made without a model.

The last texts of person and agent, each in one line, the oldest first. Tool calls,
requests and what the CLI injected are left out. The same transcript always gives the
same summary: a device that was paired later gets the very text the others have.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from sidestage.sessions.transcript import EntryKind, TranscriptEntry
from sidestage.text import ELLIPSIS, shorten

TEXTS_LIMIT: Final = 6
TEXT_LIMIT_CHARACTERS: Final = 300
SUMMARY_LIMIT_CHARACTERS: Final = 1_500

_SPEAKERS: Final = {EntryKind.PROMPT: "You", EntryKind.MESSAGE: "Agent"}


def summarize(entries: Iterable[TranscriptEntry]) -> str:
    """Return the last texts among *entries*, oldest first; "" if there are none.

    Of what is too long in all the end is kept: it is nearest to the question.
    """
    texts = [line for entry in entries if (line := _line(entry))]
    return _fit(texts[-TEXTS_LIMIT:])


def _line(entry: TranscriptEntry) -> str | None:
    speaker = _SPEAKERS.get(entry.kind)
    text = " ".join(entry.text.split())
    if speaker is None or not text:
        return None
    return shorten(f"{speaker}: {text}", TEXT_LIMIT_CHARACTERS)


def _fit(lines: Sequence[str]) -> str:
    summary = "\n".join(lines)
    if len(summary) <= SUMMARY_LIMIT_CHARACTERS:
        return summary
    return ELLIPSIS + summary[-(SUMMARY_LIMIT_CHARACTERS - 1) :].lstrip()
