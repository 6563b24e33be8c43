"""What keeps SQLite from reading or writing, told from our own mistakes.

A full disk, a lock that is never let go and a damaged file happen to a right program;
a wrong statement or a broken constraint does not, and stays what it is: a bug.
"""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from sidestage.errors import StorageUnavailable

_FULL: Final = "the disk is full. Free some space, then try again"
_HELD: Final = (
    "another program holds it (a backup, a database browser). Close that one, then try "
    "again"
)
_DAMAGED: Final = (
    "the file is damaged, or is no database of Sidestage's. Stop the server, move it "
    "away with the files beside it whose names begin with its own, and keep them; then "
    "put a backup in its place, or start anew with an empty one"
)
_FORBIDDEN: Final = (
    "the file cannot be opened for writing. See to it that it and its folder belong to "
    "the user who runs the server, and that the disk is not mounted read-only"
)
_BROKEN_DISK: Final = (
    "the disk reports an error. Look at the system's log before you try again"
)

_SENTENCES: Final = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_BUSY: _HELD,
    sqlite3.SQLITE_LOCKED: _HELD,
    sqlite3.SQLITE_PROTOCOL: _HELD,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CANTOPEN: _FORBIDDEN,
    sqlite3.SQLITE_PERM: _FORBIDDEN,
    sqlite3.SQLITE_READONLY: _FORBIDDEN,
    sqlite3.SQLITE_IOERR: _BROKEN_DISK,
}
_PRIMARY_CODE: Final = 0xFF
"""The low byte of an extended result code (sqlite.org/rescode.html)."""


@contextmanager
def telling_faults() -> Generator[None]:
    """Raise `StorageUnavailable` for what the disk or another program caused."""
    try:
        yield
    except PoolTimeout as error:
        raise StorageUnavailable(_sentence(_HELD)) from error
    except DBAPIError as error:
        why = _why(error.orig)
        if why is None:
            raise
        raise StorageUnavailable(_sentence(why)) from error
    except sqlite3.Error as error:
        why = _why(error)
        if why is None:
            raise
        raise StorageUnavailable(_sentence(why)) from error


def _sentence(why: str) -> str:
    return f"The database cannot be used: {why}."


def _why(error: BaseException | None) -> str | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else _SENTENCES.get(code & _PRIMARY_CODE)
