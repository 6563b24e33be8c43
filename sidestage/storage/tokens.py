"""The table of bearer tokens: hashes and scopes, never a secret."""

from datetime import datetime

from sqlalchemy import (
    Column,
    LargeBinary,
    Row,
    Table,
    Text,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.devices.model import PrincipalKind, Scope
from sidestage.devices.tokens import StoredToken
from sidestage.ids import DeviceId
from sidestage.storage.schema import UtcTime, metadata

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("secret_sha256", LargeBinary, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("device_id", Text),
    Column("created_at", UtcTime, nullable=False),
    Column("last_used_at", UtcTime),
    Column("expires_at", UtcTime),
    Column("replaced_at", UtcTime),
)


async def list_tokens(db: AsyncConnection) -> tuple[StoredToken, ...]:
    """Return every token, oldest first."""
    rows = await db.execute(select(tokens).order_by(tokens.c.created_at))
    return tuple(_token(row) for row in rows)


async def add_token(db: AsyncConnection, token: StoredToken) -> None:
    """Insert *token*."""
    await db.execute(
        insert(tokens).values(
            id=token.id,
            kind=token.kind.value,
            name=token.name,
            secret_sha256=token.secret_sha256,
            scopes=" ".join(sorted(token.scopes)),
            device_id=token.device_id,
            created_at=token.created_at,
            last_used_at=token.last_used_at,
            expires_at=token.expires_at,
            replaced_at=token.replaced_at,
        )
    )


async def mark_token_used(db: AsyncConnection, token_id: str, at: datetime) -> None:
    """Note when the token was last used."""
    await db.execute(
        update(tokens).where(tokens.c.id == token_id).values(last_used_at=at)
    )


async def delete_token(db: AsyncConnection, token_id: str) -> None:
    """Delete the row."""
    await db.execute(delete(tokens).where(tokens.c.id == token_id))


async def delete_tokens_of(db: AsyncConnection, device_id: DeviceId) -> None:
    """Delete every token of the device."""
    await db.execute(delete(tokens).where(tokens.c.device_id == device_id))


async def mark_token_replaced(db: AsyncConnection, token_id: str, at: datetime) -> None:
    """Note that another token took this one's place: showing it is told, not let in."""
    await db.execute(
        update(tokens).where(tokens.c.id == token_id).values(replaced_at=at)
    )


async def delete_replaced_tokens(db: AsyncConnection, device_id: DeviceId) -> None:
    """Delete the device's tokens that were replaced before."""
    await db.execute(
        delete(tokens).where(
            tokens.c.device_id == device_id, tokens.c.replaced_at.is_not(None)
        )
    )


def _token(row: Row[tuple[object, ...]]) -> StoredToken:
    return StoredToken(
        id=row.id,
        kind=PrincipalKind(row.kind),
        name=row.name,
        secret_sha256=row.secret_sha256,
        scopes=frozenset(Scope(word) for word in row.scopes.split()),
        created_at=row.created_at,
        device_id=None if row.device_id is None else DeviceId(row.device_id),
        last_used_at=row.last_used_at,
        expires_at=row.expires_at,
        replaced_at=row.replaced_at,
    )
