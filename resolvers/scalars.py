"""The scalars of the schema: how each is written, and what is accepted."""

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NewType

import strawberry
from strawberry.types.scalar import ScalarDefinition

from sidestage.errors import BadUserInput

BigInt = NewType("BigInt", int)
"""A whole number of any size, as a string: JavaScript counts exactly to 2^53 only."""
Base64 = NewType("Base64", bytes)
FeedCursor = NewType("FeedCursor", str)

_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
TIMES_KEPT: Final = 16_384
"""Written times, 200 bytes each: lists are ordered by them, again with every query."""
_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]{0,39})", re.ASCII)
FEED_CURSOR_LIMIT_CHARACTERS: Final = 1024
"""Ours stay below 300; a longer one was made up."""


@lru_cache(TIMES_KEPT)
def write_datetime(value: datetime) -> str:
    """Return *value* as RFC 3339 in UTC with milliseconds and `Z`."""
    return (
        value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def parse_datetime(value: object) -> datetime:
    """Return the UTC time that an RFC 3339 string with an offset names.

    Raises `BadUserInput` for anything else, also for a time that UTC cannot hold.
    """
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise BadUserInput("DateTime must be RFC 3339 with an offset, such as Z.")
    fraction = re.sub(r"(\.\d{6})\d+", r"\1", value.upper())
    try:
        return datetime.fromisoformat(fraction).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadUserInput("There is no such time.") from error


def parse_big_int(value: object) -> int:
    """Return the whole number that a decimal string writes; raises `BadUserInput`."""
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        raise BadUserInput("BigInt must be a whole number in a string.")
    return int(value)


def parse_base64(value: object) -> bytes:
    """Return the bytes that a canonical Base64 string holds; raises `BadUserInput`."""
    if not isinstance(value, str):
        raise BadUserInput("Base64 must be a string.")
    try:
        decoded = base64.b64decode(value.encode("ascii"), validate=True)
    except (ValueError, binascii.Error) as error:
        raise BadUserInput("That is not Base64.") from error
    # `validate=True` still takes `QR==` for `QQ==`: one text for one value.
    if base64.b64encode(decoded).decode() != value:
        raise BadUserInput("That is not canonical Base64.")
    return decoded


def encode_base64(value: bytes) -> str:
    """Return *value* as the scalar writes it."""
    return base64.b64encode(value).decode()


def parse_feed_cursor(value: object) -> str:
    """Return a feed cursor's text; the feed itself judges what it says."""
    if not isinstance(value, str) or len(value) > FEED_CURSOR_LIMIT_CHARACTERS:
        raise BadUserInput("That is not a feed cursor.")
    return value


SCALARS: Final[Mapping[object, ScalarDefinition]] = {
    datetime: strawberry.scalar(
        name="DateTime",
        description="A time as RFC 3339 in UTC, such as 2026-11-30T21:00:00.000Z.",
        specified_by_url="https://datatracker.ietf.org/doc/html/rfc3339",
        serialize=write_datetime,
        parse_value=parse_datetime,
    ),
    BigInt: strawberry.scalar(
        name="BigInt",
        description=(
            "A whole number of any size, written in decimal as a string, because "
            "Int ends at 2^31 and JavaScript's numbers are exact to 2^53 only."
        ),
        specified_by_url="https://datatracker.ietf.org/doc/html/rfc8259#section-6",
        serialize=str,
        parse_value=parse_big_int,
    ),
    Base64: strawberry.scalar(
        name="Base64",
        description="Bytes in Base64 with the standard alphabet and padding.",
        specified_by_url="https://datatracker.ietf.org/doc/html/rfc4648#section-4",
        serialize=encode_base64,
        parse_value=parse_base64,
    ),
    FeedCursor: strawberry.scalar(
        name="FeedCursor",
        description=(
            "A place in one feed. It is opaque: keep the newest one you got and give "
            "it back as `after` to go on where you were. It belongs to the feed, its "
            "filter and the selected fields; with others the feed starts anew."
        ),
        specified_by_url="https://datatracker.ietf.org/doc/html/rfc4648#section-5",
        serialize=str,
        parse_value=parse_feed_cursor,
    ),
}
