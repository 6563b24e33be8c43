"""The stores: each domain port, answered by the tables, one transaction a call."""

from collections.abc import Callable
from datetime import UTC, datetime

from sidestage.audit import AuditEntry, AuditRecord
from sidestage.devices.tokens import StoredToken
from sidestage.ids import ProjectId, TerminalId
from sidestage.projects.adoption import AdoptionPolicy
from sidestage.projects.model import Project
from sidestage.storage import adoption, audit, projects, terminals, tokens
from sidestage.storage.database import Database
from sidestage.terminals.model import Terminal
from sidestage.terminals.store import StartKey, StoredTerminal

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


class SqlAuditLog:
    """`sidestage.audit.AuditLog` on the database."""

    def __init__(self, database: Database, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    async def write(self, record: AuditRecord) -> AuditEntry:
        """Append *record* in a transaction of its own."""
        async with self._database.write() as db:
            return await audit.append_entry(db, record, at=self._clock())

    async def list_entries(
        self, *, limit: int, before_seq: int | None = None, after_seq: int | None = None
    ) -> tuple[AuditEntry, ...]:
        """Return entries newest first."""
        async with self._database.read() as db:
            return await audit.list_entries(
                db, limit=limit, before_seq=before_seq, after_seq=after_seq
            )

    async def head(self) -> AuditEntry | None:
        """Return the newest entry, or None."""
        async with self._database.read() as db:
            return await audit.head_entry(db)

    async def first_broken_seq(self) -> int | None:
        """Walk the chain; return the first entry that does not fit, or None."""
        async with self._database.read() as db:
            return await audit.first_broken_seq(db)


class SqlProjectStore:
    """`sidestage.projects.registry.ProjectStore` on the database."""

    def __init__(self, database: Database, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    async def load(self) -> tuple[Project, ...]:
        """Return every project, oldest first."""
        async with self._database.read() as db:
            return await projects.list_projects(db)

    async def add(self, project: Project, record: AuditRecord) -> None:
        """Insert *project* and say so in the audit log."""
        async with self._database.write() as db:
            await projects.add_project(db, project)
            await audit.append_entry(db, record, at=self._clock())

    async def save(self, project: Project, record: AuditRecord) -> None:
        """Write *project* over its row and say so in the audit log."""
        async with self._database.write() as db:
            await projects.save_project(db, project)
            await audit.append_entry(db, record, at=self._clock())

    async def remove(self, project_id: ProjectId, record: AuditRecord) -> None:
        """Delete the row and say so in the audit log."""
        async with self._database.write() as db:
            await projects.delete_project(db, project_id)
            await audit.append_entry(db, record, at=self._clock())


class SqlAdoptionStore:
    """`sidestage.projects.adoption.AdoptionStore` on the database."""

    def __init__(self, database: Database, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    async def load(self) -> AdoptionPolicy:
        """Return the policy; the default one if none was ever set."""
        async with self._database.read() as db:
            return await adoption.read_policy(db)

    async def save(self, policy: AdoptionPolicy, record: AuditRecord) -> None:
        """Write *policy* over the one before and say so in the audit log."""
        async with self._database.write() as db:
            await adoption.write_policy(db, policy)
            await audit.append_entry(db, record, at=self._clock())


class SqlTokenStore:
    """`sidestage.devices.keeper.TokenStore` on the database."""

    def __init__(self, database: Database, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    async def load(self) -> tuple[StoredToken, ...]:
        """Return every token, oldest first."""
        async with self._database.read() as db:
            return await tokens.list_tokens(db)

    async def add(self, token: StoredToken, record: AuditRecord) -> None:
        """Insert *token* and say so in the audit log."""
        async with self._database.write() as db:
            await tokens.add_token(db, token)
            await audit.append_entry(db, record, at=self._clock())

    async def replace(
        self, old_ids: tuple[str, ...], new: StoredToken, record: AuditRecord
    ) -> None:
        """Delete the old tokens and insert the new one, as one."""
        async with self._database.write() as db:
            for old_id in old_ids:
                await tokens.delete_token(db, old_id)
            await tokens.add_token(db, new)
            await audit.append_entry(db, record, at=self._clock())

    async def remove(self, token_id: str, record: AuditRecord) -> None:
        """Delete the token and say so in the audit log."""
        async with self._database.write() as db:
            await tokens.delete_token(db, token_id)
            await audit.append_entry(db, record, at=self._clock())

    async def mark_used(self, token_id: str, at: datetime) -> None:
        """Note when the token was last used."""
        async with self._database.write() as db:
            await tokens.mark_token_used(db, token_id, at)


class SqlTerminalStore:
    """`sidestage.terminals.store.TerminalStore` on the database."""

    def __init__(self, database: Database, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    async def load(self) -> tuple[tuple[StoredTerminal, ...], tuple[StartKey, ...]]:
        """Return every row, oldest first, and every key."""
        async with self._database.read() as db:
            return (
                await terminals.list_terminals(db),
                await terminals.list_start_keys(db),
            )

    async def begin(
        self, terminal: Terminal, key: StartKey | None, record: AuditRecord
    ) -> None:
        """Write the row of a start that is about to be asked of the host."""
        async with self._database.write() as db:
            await audit.append_entry(db, record, at=self._clock())
            await terminals.add_terminal(db, StoredTerminal(terminal, starting=True))
            if key is not None:
                await terminals.add_start_key(db, key)

    async def save(self, terminal: Terminal, record: AuditRecord | None = None) -> None:
        """Write the row, no longer starting; an unknown one is inserted (adopted)."""
        stored = StoredTerminal(terminal, starting=False)
        async with self._database.write() as db:
            if not await terminals.save_terminal(db, stored):
                await terminals.add_terminal(db, stored)
            if record is not None:
                await audit.append_entry(db, record, at=self._clock())

    async def drop(
        self,
        terminal_id: TerminalId,
        *,
        keys: bool,
        record: AuditRecord | None = None,
    ) -> None:
        """Delete the row, and with *keys* what would make its start idempotent."""
        async with self._database.write() as db:
            await terminals.delete_terminal(db, terminal_id)
            if keys:
                await terminals.delete_start_keys_of(db, terminal_id)
            if record is not None:
                await audit.append_entry(db, record, at=self._clock())

    async def forget_keys_before(self, at: datetime) -> None:
        """Delete the keys that were made before *at*."""
        async with self._database.write() as db:
            await terminals.delete_start_keys_before(db, at)
