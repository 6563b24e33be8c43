"""The metadata every table is declared on, and the types they share.

Times are stored as integers, microseconds since 1970 in UTC: SQLite has no time type,
and an integer sorts and compares as the instant it stands for.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import BigInteger, Dialect, MetaData
from sqlalchemy.types import TypeDecorator

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class UtcTime(TypeDecorator[datetime]):
    """An aware `datetime`, kept as microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(
        self, value: datetime | None, dialect: Dialect
    ) -> int | None:
        """Turn an aware time into its stored form."""
        del dialect
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(
        self, value: int | None, dialect: Dialect
    ) -> datetime | None:
        """Turn the stored form into an aware time in UTC."""
        del dialect
        return None if value is None else _EPOCH + value * _MICROSECOND
