"""Every part, made and joined: from settings to everything the application needs.

What opens here closes here, in the reverse order, when the block ends. Terminals are
not among it: they belong to the host, which outlives us.
"""

import asyncio
import platform
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sidestage.agents.attribution import runs_inside_agent
from sidestage.agents.claude_code.discovery import Discovery, open_discovery
from sidestage.agents.claude_code.links import ClaudeLinks
from sidestage.agents.claude_code.login_watch import watch_logins
from sidestage.agents.claude_code.private_files import ClaudePrivateFiles
from sidestage.devices.keeper import TokenKeeper
from sidestage.ids import HostId, new_id
from sidestage.projects.bounds import Bounds, check_project
from sidestage.projects.registry import ProjectRegistry
from sidestage.sessions.model import AgentKind
from sidestage.settings import Settings
from sidestage.state import read_machine_secret
from sidestage.storage import meta
from sidestage.storage.database import Database
from sidestage.storage.stores import (
    SqlAuditLog,
    SqlProjectStore,
    SqlTerminalStore,
    SqlTokenStore,
    utc_now,
)
from sidestage.storage.transcripts import SqlTranscriptStore
from sidestage.terminals.launch import Launcher, LaunchSettings
from sidestage.terminals.model import TerminalHost
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.programs import (
    AGENT_PROGRAMS,
    COMPANIONS,
    find_program_dirs,
    read_git_config,
)
from sidestage.terminals.service import TerminalDesk
from sidestage.terminals.store import TerminalStore
from sidestage.terminals.templates import TEMPLATE_IDS, TemplateShelf, find_templates
from terminal_host.gateway.host_client import HostClient, open_host


def _same_host(host: TerminalHost) -> TerminalHost:
    return host


def _same_store(store: TerminalStore) -> TerminalStore:
    return store


@dataclass(frozen=True, slots=True)
class Seams:
    """Where tests put a fault between the parts; the defaults pass everything on."""

    wrap_host: Callable[[TerminalHost], TerminalHost] = _same_host
    wrap_store: Callable[[TerminalStore], TerminalStore] = _same_store


@dataclass(frozen=True, slots=True)
class Wired:
    """The parts, open and running."""

    host_id: HostId
    host_name: str
    database: Database
    keeper: TokenKeeper
    audit: SqlAuditLog
    projects: ProjectRegistry
    discovery: Discovery
    host: HostClient
    desk: TerminalDesk

    def is_agent(self, pid: int) -> bool:
        """Tell whether a process runs inside an agent."""
        return runs_inside_agent(pid, is_registered=self._is_registered)

    def _is_registered(self, pid: int) -> bool:
        return any(
            run.pid == pid
            for row in self.discovery.sessions.feed.values()
            if row.state.is_live
            for run in row.origin.processes
        )


@asynccontextmanager
async def open_parts(
    settings: Settings, seams: Seams | None = None
) -> AsyncGenerator[Wired]:
    """Make every part; the list of sessions is complete when the block begins.

    The caller has prepared and locked the state folder.
    """
    seams = seams or Seams()
    async with AsyncExitStack() as stack:
        database = await Database.open(settings.database)
        stack.push_async_callback(database.close)
        host_id = await _host_id(database)
        audit = SqlAuditLog(database)
        keeper = TokenKeeper(SqlTokenStore(database), audit, clock=utc_now)
        await keeper.load()
        stack.push_async_callback(keeper.close)
        await keeper.ensure_admin(settings.admin_token_file)
        projects = await _open_projects(settings, database, host_id)
        discovery = await stack.enter_async_context(
            open_discovery(
                config_dirs=settings.claude_dirs,
                machine_secret=await asyncio.to_thread(
                    read_machine_secret, settings.state_dir
                ),
                host_id=host_id,
                projects=projects,
                store=SqlTranscriptStore(database),
            )
        )
        host = await stack.enter_async_context(
            open_host(settings.state_dir, arguments=_host_arguments(settings))
        )
        files = ClaudePrivateFiles(state_dir=settings.state_dir, home=settings.home)
        parts = DeskParts(
            host_id=host_id,
            host=seams.wrap_host(host),
            store=seams.wrap_store(SqlTerminalStore(database)),
            projects=projects,
            sessions=discovery.sessions,
            links=ClaudeLinks(discovery, files),
            launcher=await _launcher(settings, files),
            templates=TemplateShelf(
                partial(
                    find_templates,
                    path=settings.path,
                    shell=settings.environment.get("SHELL"),
                )
            ),
            terminals_limit=settings.terminals_limit,
            check_project=check_project,
            clock=utc_now,
        )
        desk = TerminalDesk(parts)
        await desk.load()
        await stack.enter_async_context(
            _running(desk, keeper, files, settings.claude_dirs)
        )
        yield Wired(
            host_id=host_id,
            host_name=platform.node() or "this machine",
            database=database,
            keeper=keeper,
            audit=audit,
            projects=projects,
            discovery=discovery,
            host=host,
            desk=desk,
        )


@asynccontextmanager
async def _running(
    desk: TerminalDesk,
    keeper: TokenKeeper,
    files: ClaudePrivateFiles,
    config_dirs: tuple[Path, ...],
) -> AsyncGenerator[None]:
    tasks = [
        asyncio.create_task(desk.run(), name="terminals"),
        asyncio.create_task(_void_tickets(desk, keeper), name="tickets"),
        asyncio.create_task(watch_logins(files, config_dirs), name="logins"),
        asyncio.create_task(files.removal.run(), name="ended terminals' files"),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def _void_tickets(desk: TerminalDesk, keeper: TokenKeeper) -> None:
    async for token_id in keeper.watch_revocations():
        desk.drop_token(token_id)


async def _host_id(database: Database) -> HostId:
    async with database.write() as db:
        return HostId(await meta.get_or_add(db, "host_id", new_id("host")))


async def _open_projects(
    settings: Settings, database: Database, host_id: HostId
) -> ProjectRegistry:
    bounds = await asyncio.to_thread(
        lambda: Bounds.of(
            home=settings.home,
            state_dir=settings.state_dir,
            agent_dirs=settings.claude_dirs,
        )
    )
    projects = ProjectRegistry(
        SqlProjectStore(database),
        host_id=host_id,
        check_bounds=bounds.check,
        templates=TEMPLATE_IDS,
        clock=utc_now,
    )
    await projects.load()
    return projects


async def _launcher(settings: Settings, files: ClaudePrivateFiles) -> Launcher:
    launch = LaunchSettings(
        home=settings.home,
        state_dir=settings.state_dir,
        sandbox=settings.sandbox,
        environment=settings.environment,
        pass_environment=settings.pass_environment,
        find_program_dirs=partial(_program_dirs, settings),
        git_config=await asyncio.to_thread(read_git_config, dict(settings.environment)),
        hidden=settings.claude_dirs,
    )
    return Launcher(launch, {AgentKind.CLAUDE_CODE: files})


def _program_dirs(settings: Settings) -> tuple[Path, ...]:
    return find_program_dirs(
        (*AGENT_PROGRAMS, *COMPANIONS),
        path=settings.path,
        home=settings.home,
        listed=map(Path, settings.sandbox_path_dirs),
    )


def _host_arguments(settings: Settings) -> tuple[str, ...]:
    limits = (
        *("--running-limit", str(settings.terminals_limit)),
        *("--records-limit", str(settings.records_limit)),
        *("--record-bytes", str(settings.record_limit_bytes)),
    )
    return (*limits, "--allow-root") if settings.allow_root else limits
