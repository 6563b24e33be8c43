"""The keeper of tokens."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from api.wiring.ground import Ground
from sidestage.devices.keeper import TokenKeeper
from sidestage.settings import Settings
from sidestage.storage.stores import SqlTokenStore, utc_now


@asynccontextmanager
async def open_keeper(
    settings: Settings, ground: Ground
) -> AsyncGenerator[TokenKeeper]:
    """Load every token, and make sure that the owner has one."""
    store = SqlTokenStore(ground.database)
    keeper = TokenKeeper(store, ground.audit, clock=utc_now)
    await keeper.load()
    try:
        await keeper.ensure_admin(settings.admin_token_file)
        yield keeper
    finally:
        await keeper.close()
