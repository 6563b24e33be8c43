from datetime import UTC, datetime

from sidestage.agents.claude_code.usage import HOUR_LIMIT, Hours, count_usage
from sidestage.agents.claude_code.usage_query import collect_usage
from sidestage.sessions.board import UsageBucket, UsagePoint
from sidestage.sessions.model import TokenUsage


def hour(day: int, hour_of_day: int) -> str:
    moment = datetime(2026, 11, day, hour_of_day, tzinfo=UTC)
    return str(int(moment.timestamp()) // 3600)


DAYS: list[Hours] = [
    {hour(1, 9): [1, 2, 3, 4, 1], hour(1, 23): [10, 0, 0, 0, 2]},
    {hour(1, 9): [5, 5, 5, 5, 1], hour(2, 0): [7, 0, 0, 0, 1]},
]


def collect(bucket: UsageBucket, start: datetime, end: datetime) -> list[UsagePoint]:
    return list(collect_usage(DAYS, start=start, end=end, bucket=bucket))


def at(day: int, hour_of_day: int = 0) -> datetime:
    return datetime(2026, 11, day, hour_of_day, tzinfo=UTC)


def test_hours_of_all_transcripts_add_up_to_days() -> None:
    assert collect(UsageBucket.DAY, at(1), at(9)) == [
        UsagePoint(at(1), TokenUsage(16, 7, 8, 9), 4),
        UsagePoint(at(2), TokenUsage(7, 0, 0, 0), 1),
    ]


def test_empty_hours_are_left_out_and_the_end_is_not_in() -> None:
    assert collect(UsageBucket.HOUR, at(1, 9), at(2)) == [
        UsagePoint(at(1, 9), TokenUsage(6, 7, 8, 9), 2),
        UsagePoint(at(1, 23), TokenUsage(10, 0, 0, 0), 2),
    ]
    assert collect(UsageBucket.HOUR, at(3), at(4)) == []


def test_hours_kept_are_bounded() -> None:
    hours: Hours = {}
    total = [0, 0, 0, 0]
    for number in range(HOUR_LIMIT + 10):
        count_usage(
            total,
            hours,
            [],
            message_id=str(number),
            counts={"input_tokens": 1},
            seconds=3600.0 * number,
        )
    assert len(hours) == HOUR_LIMIT
    assert "0" not in hours
    assert total[0] == HOUR_LIMIT + 10


def test_counts_that_are_no_numbers_count_nothing() -> None:
    total = [0, 0, 0, 0]
    counts = {"input_tokens": "7", "output_tokens": -3, "cache_read_input_tokens": True}
    count_usage(total, {}, [], message_id="m", counts=counts, seconds=None)
    assert total == [0, 0, 0, 0]
