"""Tokens of a transcript, counted once an answer, by hour."""

from typing import Final

from sidestage.agents.claude_code.records import Json, int_of

HOUR_SECONDS: Final = 3600
HOUR_LIMIT: Final = 24 * 366
"""Hours kept a transcript: a year of a session that never rests."""
RECENT_LIMIT: Final = 8
"""Answers whose blocks may still come: two processes may interleave theirs."""

Hours = dict[str, list[int]]
"""By hour since 1970 (text, because it is stored as JSON): four counts, answers."""
RecentAnswers = list[list[object]]
"""`[message id, hour, four counts]` of the newest answers."""

_FIELDS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


def count_usage(
    total: list[int],
    hours: Hours,
    recent: RecentAnswers,
    *,
    message_id: str,
    counts: Json,
    seconds: float | None,
) -> None:
    """Count the answer *message_id* at *seconds*; each block tells the usage so far.

    There is a record for each block of an answer, and all carry the answer's usage. The
    newest one replaces what the earlier ones told.
    """
    fresh = [int_of(counts, name) for name in _FIELDS]
    hour = str(int((seconds or 0) // HOUR_SECONDS))
    known = next((answer for answer in recent if answer[0] == message_id), None)
    if known is None:
        before, answers = [0, 0, 0, 0], 1
        recent.append([message_id, hour, fresh])
        del recent[:-RECENT_LIMIT]
    else:
        before, answers = _counts(known[2]), 0
        hour = str(known[1])
        known[2] = fresh
    change = [new - old for new, old in zip(fresh, before, strict=True)]
    _add(total, change)
    _add_hour(hours, hour, [*change, answers])


def _counts(value: object) -> list[int]:
    return list(value) if isinstance(value, list) else [0, 0, 0, 0]


def _add(total: list[int], change: list[int]) -> None:
    for index, number in enumerate(change):
        total[index] += number


def _add_hour(hours: Hours, hour: str, change: list[int]) -> None:
    if hour not in hours:
        if len(hours) >= HOUR_LIMIT:
            del hours[min(hours, key=int)]
        hours[hour] = [0, 0, 0, 0, 0]
    _add(hours[hour], change)
