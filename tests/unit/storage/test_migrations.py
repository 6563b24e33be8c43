"""Every earlier schema comes up to date, with a row in each table, and loses none."""

from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    DateTime,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    create_engine,
    event,
    insert,
    select,
    text,
)
from sqlalchemy.pool import NullPool

from sidestage.storage import database
from sidestage.storage.backup import MIGRATIONS

Rows = dict[str, dict[str, Any]]
REVISIONS: Final = tuple(
    script.revision
    for script in reversed(list(ScriptDirectory(MIGRATIONS).walk_revisions()))
)


def open_engine(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    event.listen(engine, "connect", database._set_pragmas)
    return engine


def migrate_to(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def value_for(column: Column[Any]) -> object:
    if isinstance(column.type, Boolean):
        return True
    if isinstance(column.type, DateTime):
        return datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001  # SQLite's have no zone
    if isinstance(column.type, JSON):
        return ["x"]
    if isinstance(column.type, Integer | Float):
        return 1
    if isinstance(column.type, LargeBinary):
        return b"x"
    return "x"


def reflect(connection: Connection) -> MetaData:
    tables = MetaData()
    tables.reflect(connection)
    return tables


def fill(connection: Connection) -> None:
    """Put a row into each table; equal values everywhere satisfy the foreign keys."""
    tables = reflect(connection)
    # The audit log's rows, like the others', are made of nothing but fillers.
    for table in tables.sorted_tables:
        if table.name != "alembic_version":
            values = {column.name: value_for(column) for column in table.columns}
            connection.execute(insert(table).values(values))


def read_rows(connection: Connection) -> Rows:
    return {
        table.name: dict(connection.execute(select(table)).mappings().one())
        for table in reflect(connection).sorted_tables
        if table.name != "alembic_version"
        and connection.execute(select(table)).first() is not None
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_rows_of_each_earlier_schema_come_through_every_migration(
    tmp_path: Path, revision: str
) -> None:
    engine = open_engine(tmp_path / "sidestage.db")
    with engine.begin() as connection:
        migrate_to(connection, revision)
    with engine.begin() as connection:
        fill(connection)
        before = read_rows(connection)
    assert before
    with engine.begin() as connection:
        database.migrate(connection)
    with engine.begin() as connection:
        after = read_rows(connection)
        assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
    for table, row in before.items():
        kept = {name: after[table][name] for name in row if name in after[table]}
        assert kept == {name: row[name] for name in kept}, table
        assert kept, table


def test_a_database_that_is_up_to_date_is_left_as_it_is(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "sidestage.db")
    with engine.begin() as connection:
        database.migrate(connection)
    with engine.begin() as connection:
        fill(connection)
        before = read_rows(connection)
        database.migrate(connection)
        assert read_rows(connection) == before
