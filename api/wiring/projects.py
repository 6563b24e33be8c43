"""The registry of projects, with what may be one."""

import asyncio

from api.wiring.ground import Ground
from sidestage.projects.bounds import Bounds
from sidestage.projects.registry import ProjectRegistry
from sidestage.settings import Settings
from sidestage.storage.stores import SqlProjectStore, utc_now
from sidestage.terminals.templates import TEMPLATE_IDS


async def load_projects(settings: Settings, ground: Ground) -> ProjectRegistry:
    """Load every project."""
    bounds = await asyncio.to_thread(_find_bounds, settings)
    projects = ProjectRegistry(
        SqlProjectStore(ground.database),
        host_id=ground.host_id,
        check_bounds=bounds.check,
        templates=TEMPLATE_IDS,
        clock=utc_now,
    )
    await projects.load()
    return projects


def _find_bounds(settings: Settings) -> Bounds:
    return Bounds.of(
        home=settings.home,
        state_dir=settings.state_dir,
        agent_dirs=settings.claude_dirs,
    )
