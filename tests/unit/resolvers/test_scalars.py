"""What each scalar takes and writes (api.md, line 10)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from resolvers.scalars import (
    parse_base64,
    parse_big_int,
    parse_datetime,
    parse_feed_cursor,
    write_datetime,
)
from sidestage.errors import BadUserInput


def test_times_are_written_in_utc_with_milliseconds() -> None:
    there = timezone(timedelta(hours=2))
    time = datetime(2026, 11, 30, 23, 0, 0, 123_456, tzinfo=there)
    assert write_datetime(time) == "2026-11-30T21:00:00.123Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T21:00:00Z", datetime(2026, 11, 30, 21, tzinfo=UTC)),
        ("2026-11-30T23:00:00+02:00", datetime(2026, 11, 30, 21, tzinfo=UTC)),
        (
            "2026-11-30t21:00:00.123456789z",
            datetime(2026, 11, 30, 21, 0, 0, 123_456, tzinfo=UTC),
        ),
    ],
)
def test_times_are_read_with_any_offset(text: str, expected: datetime) -> None:
    assert parse_datetime(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30T21:00:00",
        "2026-11-30",
        "2026-13-30T21:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "٢٠٢٦-11-30T21:00:00Z",
        "",
        5,
        None,
    ],
)
def test_what_is_no_time_is_bad_input(text: object) -> None:
    with pytest.raises(BadUserInput):
        parse_datetime(text)


@pytest.mark.parametrize("text", ["-0x1", "1.0", "01", "", " 1", "1" * 50, 5, None])
def test_what_is_no_whole_number_is_bad_input(text: object) -> None:
    with pytest.raises(BadUserInput):
        parse_big_int(text)


def test_whole_numbers_of_any_size_are_read() -> None:
    assert parse_big_int("-9007199254740993") == -9007199254740993


@pytest.mark.parametrize("text", ["QR==", "QQ", "Q Q=", "ä", 1])
def test_only_canonical_base64_is_read(text: object) -> None:
    """`b64decode(validate=True)` takes `QR==` for `QQ==`."""
    with pytest.raises(BadUserInput):
        parse_base64(text)


def test_base64_is_read() -> None:
    assert parse_base64("QQ==") == b"A"


@pytest.mark.parametrize("text", ["x" * 2000, 5])
def test_a_feed_cursor_is_a_string_of_bounded_length(text: object) -> None:
    with pytest.raises(BadUserInput):
        parse_feed_cursor(text)
