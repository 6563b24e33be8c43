"""Tokens over time, from the hours that each transcript's row holds."""

from collections.abc import Iterable
from datetime import UTC, datetime

from sidestage.agents.claude_code.usage import HOUR_SECONDS, Hours
from sidestage.sessions.board import UsageBucket, UsagePoint
from sidestage.sessions.model import TokenUsage


def collect_usage(
    transcripts: Iterable[Hours], *, start: datetime, end: datetime, bucket: UsageBucket
) -> tuple[UsagePoint, ...]:
    """Add up what the hours from *start* to before *end* hold, oldest first.

    An hour counts if it begins in the range.
    """
    low, high = start.timestamp(), end.timestamp()
    width = 24 if bucket is UsageBucket.DAY else 1
    sums: dict[int, list[int]] = {}
    for hours in transcripts:
        for hour, counts in hours.items():
            if low <= int(hour) * HOUR_SECONDS < high:
                # Hours are counted from 1970-01-01T00:00Z, so 24 of them are a day.
                total = sums.setdefault(int(hour) // width * width, [0] * 5)
                for index, number in enumerate(counts):
                    total[index] += number
    return tuple(
        UsagePoint(
            datetime.fromtimestamp(hour * HOUR_SECONDS, UTC),
            TokenUsage(*total[:4]),
            total[4],
        )
        for hour, total in sorted(sums.items())
        if any(total)
    )
