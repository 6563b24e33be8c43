"""Discovery: the sessions that agents started by themselves."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from api.wiring.ground import Ground
from sidestage.agents.claude_code.discovery import Discovery, open_discovery
from sidestage.projects.registry import ProjectRegistry
from sidestage.settings import Settings
from sidestage.state import read_machine_secret
from sidestage.storage.transcripts import SqlTranscriptStore


@asynccontextmanager
async def open_sessions(
    settings: Settings, ground: Ground, projects: ProjectRegistry
) -> AsyncGenerator[Discovery]:
    """Discover until the block ends; the list is complete when it begins."""
    secret = await asyncio.to_thread(read_machine_secret, settings.state_dir)
    async with open_discovery(
        config_dirs=settings.claude_dirs,
        machine_secret=secret,
        host_id=ground.host_id,
        projects=projects,
        store=SqlTranscriptStore(ground.database),
    ) as discovery:
        yield discovery
