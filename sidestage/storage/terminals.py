"""The tables of terminals and of the keys that make starting one idempotent."""

import json
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import (
    Boolean,
    Column,
    Integer,
    Row,
    Table,
    Text,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.ids import HostId, ProjectId, SessionId, TemplateId, TerminalId
from sidestage.storage.schema import UtcTime, metadata
from sidestage.terminals.model import SandboxReport, Terminal, TerminalState
from sidestage.terminals.store import StartKey, StoredTerminal

terminals = Table(
    "terminals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("host_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("template", Text, nullable=False),
    Column("project_id", Text),
    Column("directory", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("starting", Boolean, nullable=False),
    Column("cols", Integer, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("title", Text),
    Column("exit_status", Integer),
    Column("started_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("session_id", Text),
    Column("read_only", Boolean, nullable=False),
    Column("sandbox", Text, nullable=False),
    Column("end_reason", Text),
)

start_keys = Table(
    "start_keys",
    metadata,
    Column("key", Text, primary_key=True),
    Column("input_sha256", Text, nullable=False),
    Column("terminal_id", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
)


async def list_terminals(db: AsyncConnection) -> tuple[StoredTerminal, ...]:
    """Return every terminal, oldest first."""
    rows = await db.execute(select(terminals).order_by(terminals.c.started_at))
    return tuple(_stored(row) for row in rows)


async def add_terminal(db: AsyncConnection, stored: StoredTerminal) -> None:
    """Insert the row."""
    await db.execute(insert(terminals).values(_values(stored)))


async def save_terminal(db: AsyncConnection, stored: StoredTerminal) -> bool:
    """Write over the row with that id; False if there is none."""
    result = await db.execute(
        update(terminals)
        .where(terminals.c.id == stored.terminal.id)
        .values(_values(stored))
    )
    return result.rowcount == 1


async def delete_terminal(db: AsyncConnection, terminal_id: TerminalId) -> None:
    """Delete the row. Its start keys stay: a late retry must not start another."""
    await db.execute(delete(terminals).where(terminals.c.id == terminal_id))


async def add_start_key(db: AsyncConnection, key: StartKey) -> None:
    """Insert *key*."""
    await db.execute(
        insert(start_keys).values(
            key=key.key,
            input_sha256=key.input_sha256,
            terminal_id=key.terminal_id,
            created_at=key.created_at,
        )
    )


async def list_start_keys(db: AsyncConnection) -> tuple[StartKey, ...]:
    """Return every key."""
    rows = await db.execute(select(start_keys))
    return tuple(
        StartKey(row.key, row.input_sha256, TerminalId(row.terminal_id), row.created_at)
        for row in rows
    )


async def delete_start_keys_of(db: AsyncConnection, terminal_id: TerminalId) -> None:
    """Delete the keys of a start that came to nothing, so that a retry may start."""
    await db.execute(delete(start_keys).where(start_keys.c.terminal_id == terminal_id))


async def delete_start_keys_before(db: AsyncConnection, at: datetime) -> None:
    """Delete the keys that were made before *at*."""
    await db.execute(delete(start_keys).where(start_keys.c.created_at < at))


def _values(stored: StoredTerminal) -> dict[str, object]:
    terminal = stored.terminal
    return {
        "id": terminal.id,
        "host_id": terminal.host_id,
        "name": terminal.name,
        "template": terminal.template,
        "project_id": terminal.project_id,
        "directory": terminal.directory,
        "state": terminal.state.value,
        "starting": stored.starting,
        "cols": terminal.cols,
        "rows": terminal.rows,
        "title": terminal.title,
        "exit_status": terminal.exit_status,
        "started_at": terminal.started_at,
        "ended_at": terminal.ended_at,
        "session_id": terminal.session_id,
        "read_only": terminal.read_only,
        "sandbox": json.dumps(asdict(terminal.sandbox)),
        "end_reason": terminal.end_reason,
    }


def _stored(row: Row[tuple[object, ...]]) -> StoredTerminal:
    terminal = Terminal(
        id=TerminalId(row.id),
        host_id=HostId(row.host_id),
        name=row.name,
        template=TemplateId(row.template),
        project_id=None if row.project_id is None else ProjectId(row.project_id),
        directory=row.directory,
        state=TerminalState(row.state),
        cols=row.cols,
        rows=row.rows,
        title=row.title,
        exit_status=row.exit_status,
        started_at=row.started_at,
        ended_at=row.ended_at,
        last_output_at=None,
        last_input_at=None,
        bell_at=None,
        session_id=None if row.session_id is None else SessionId(row.session_id),
        read_only=row.read_only,
        sandbox=SandboxReport(**json.loads(row.sandbox)),
        attached_clients=0,
        end_reason=row.end_reason,
    )
    return StoredTerminal(terminal, starting=row.starting)
