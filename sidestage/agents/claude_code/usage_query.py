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
    sums: dict[datetime, list[int]] = {}
    for hours in transcripts:
        for hour, counts in hours.items():
            moment = datetime.fromtimestamp(int(hour) * HOUR_SECONDS, UTC)
            if start <= moment < end:
                total = sums.setdefault(_bucket_start(moment, bucket), [0] * 5)
                for index, number in enumerate(counts):
                    total[index] += number
    return tuple(
        UsagePoint(moment, TokenUsage(*total[:4]), total[4])
        for moment, total in sorted(sums.items())
        if any(total)
    )


def _bucket_start(moment: datetime, bucket: UsageBucket) -> datetime:
    return moment.replace(hour=0) if bucket is UsageBucket.DAY else moment
