"""Copies of the database file: taken while it is used, and looked at before use."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from alembic.script import ScriptDirectory

PAGES_AT_ONCE: Final = 1_024
"""Copied between two looks for writers: 4 MB, some milliseconds."""
MIGRATIONS: Final = Path(__file__).with_name("migrations")


class DatabaseUnusable(Exception):
    """A file that is no database of ours, or a damaged or newer one; says which."""


def copy_database(source: Path, target: Path) -> None:
    """Copy the database at *source*, which may be in use, to the new file *target*.

    Blocking. The copy is of one moment and has no side files
    (https://www.sqlite.org/backup.html). Raises `DatabaseUnusable`.
    """
    try:
        with (
            closing(sqlite3.connect(f"file:{_quoted(source)}?mode=ro", uri=True)) as db,
            closing(sqlite3.connect(target)) as copy,
        ):
            db.backup(copy, pages=PAGES_AT_ONCE)
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise DatabaseUnusable(f"{source} cannot be copied: {error}.") from error


def check_database(path: Path) -> None:
    """Raise `DatabaseUnusable` if this version cannot use the database at *path*."""
    try:
        with closing(sqlite3.connect(path)) as db:
            [[word]] = db.execute("PRAGMA quick_check(1)").fetchall()
            revisions = db.execute("SELECT version_num FROM alembic_version").fetchall()
    except (sqlite3.Error, ValueError) as error:
        raise DatabaseUnusable(
            f"The database in it cannot be read: {error}."
        ) from error
    if word != "ok":
        raise DatabaseUnusable(f"The database in it is damaged: {word}.")
    known = {script.revision for script in ScriptDirectory(MIGRATIONS).walk_revisions()}
    if not {revision for (revision,) in revisions} <= known:
        raise DatabaseUnusable(
            "It was made by a newer version of Sidestage. Upgrade first."
        )


def _quoted(path: Path) -> str:
    return path.absolute().as_uri().removeprefix("file:")
