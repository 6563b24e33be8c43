"""The SQLite file: opened once, migrated, read by many, written by one at a time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from sidestage.errors import StorageUnavailable
from sidestage.storage.faults import telling_faults

BUSY_TIMEOUT_MS: Final = 5_000
"""How long a statement waits for another process (a backup, a shell) to let go."""
READERS: Final = 4
"""Connections that read at once; more would only wait for the two cores."""

# WAL: readers never wait for the writer. NORMAL: after a power cut the last
# transactions may be missing, the file is never corrupt (sqlite.org/wal.html).
# secure_delete: what is deleted is overwritten (docs/security.md).
_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",
    f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}",
)


class Database:
    """The server's database. Made by `Database.open`, closed by `close`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._writing = asyncio.Lock()

    @classmethod
    async def open(cls, path: Path) -> "Database":
        """Open or make the file at *path* (mode 0600) and bring it up to date.

        Raises `StorageUnavailable`, with a sentence that names the file.
        """
        await asyncio.to_thread(_prepare, path)
        engine = create_async_engine(
            f"sqlite+aiosqlite:///{path}", pool_size=READERS, max_overflow=1
        )
        event.listen(engine.sync_engine, "connect", _set_pragmas)
        return cls(engine)

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """Give a connection for reading; raises `StorageUnavailable`."""
        with telling_faults():
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[AsyncConnection]:
        """Give the one writing transaction: committed at the end, or rolled back.

        Raises `StorageUnavailable`, and then nothing was written.
        """
        with telling_faults():
            async with self._writing, self._engine.begin() as connection:
                yield connection


def migrate(connection: Connection) -> None:
    """Bring the database of *connection* to the newest revision."""
    config = Config()
    folder = Path(__file__).with_name("migrations")
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _prepare(path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    event.listen(engine, "connect", _set_pragmas)
    try:
        path.touch(mode=0o600, exist_ok=True)
        with telling_faults(), engine.begin() as connection:
            migrate(connection)
            _check(connection)
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be made: {error.strerror}.") from error
    except StorageUnavailable as error:
        raise StorageUnavailable(f"{path}: {error}") from error
    finally:
        engine.dispose()


def _check(connection: Connection) -> None:
    """Raise what a first write would: a file may open for reading alone."""
    connection.execute(text("PRAGMA user_version = 0"))


def _set_pragmas(connection: Any, _record: object) -> None:  # noqa: ANN401 the DBAPI's
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    cursor.close()
