"""Terminals: the connection to the host, the desk, and what runs beside them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from api.hook_program import HOOK_PROGRAM, terminal_command
from api.wiring.background import running
from api.wiring.ground import Ground
from api.wiring.hooks import Hooks
from api.wiring.launcher import make_launcher, make_templates
from api.wiring.seams import Seams
from sidestage.agents.claude_code.discovery import Discovery
from sidestage.agents.claude_code.hook_settings import render_settings
from sidestage.agents.claude_code.links import ClaudeLinks
from sidestage.agents.claude_code.login_watch import watch_logins
from sidestage.agents.claude_code.private_files import (
    ClaudePrivateFiles,
    TerminalHooks,
)
from sidestage.devices.keeper import TokenKeeper
from sidestage.projects.bounds import check_project
from sidestage.projects.registry import ProjectRegistry
from sidestage.settings import Settings
from sidestage.storage.stores import SqlTerminalStore, utc_now
from sidestage.terminals.environment import HOOK_FOLDER_INSIDE
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.service import TerminalDesk
from terminal_host.gateway.host_client import HostClient, open_host
from terminal_host.gateway.host_start import host_arguments


@dataclass(frozen=True, slots=True)
class Terminals:
    """The host as we reach it, and the desk that answers for its terminals."""

    host: HostClient
    desk: TerminalDesk


@asynccontextmanager
async def open_terminals(
    settings: Settings,
    seams: Seams,
    ground: Ground,
    keeper: TokenKeeper,
    projects: ProjectRegistry,
    discovery: Discovery,
    hooks: Hooks,
    *,
    descriptors: int,
) -> AsyncGenerator[Terminals]:
    """Reach the host, started if need be, until the block ends.

    Terminals belong to the host, which outlives us: none ends with the block.
    """
    files = ClaudePrivateFiles(
        state_dir=settings.state_dir,
        home=settings.home,
        hooks=TerminalHooks(
            program=HOOK_PROGRAM,
            settings=render_settings(terminal_command(settings)),
            folder_inside=HOOK_FOLDER_INSIDE if settings.sandbox else None,
        ),
    )
    arguments = host_arguments(settings, descriptors)
    async with open_host(settings.state_dir, arguments=arguments) as host:
        desk = TerminalDesk(
            DeskParts(
                host_id=ground.host_id,
                host=seams.wrap_host(host),
                store=seams.wrap_store(SqlTerminalStore(ground.database)),
                projects=projects,
                sessions=discovery.sessions,
                links=ClaudeLinks(discovery, files, hooks.sockets),
                launcher=await make_launcher(settings, files),
                templates=make_templates(settings),
                terminals_limit=settings.terminals_limit,
                check_project=check_project,
                clock=utc_now,
            )
        )
        await desk.load()
        async with running(
            terminals=desk.run(),
            tickets=_void_tickets(desk, keeper),
            logins=watch_logins(files, settings.claude_dirs),
            ended_files=files.removal.run(),
        ):
            yield Terminals(host, desk)


async def _void_tickets(desk: TerminalDesk, keeper: TokenKeeper) -> None:
    async for token_id in keeper.watch_revocations():
        desk.drop_token(token_id)
