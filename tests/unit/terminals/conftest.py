import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from sidestage.feeds import Feed
from sidestage.ids import ConversationId, HostId, ProjectId, SessionId, session_id
from sidestage.projects.model import Project
from sidestage.projects.registry import ProjectRegistry
from sidestage.sessions.model import (
    AgentKind,
    Session,
    SessionOrigin,
    SessionState,
    SourceHealth,
)
from sidestage.storage.database import Database
from sidestage.storage.stores import SqlAuditLog, SqlProjectStore, SqlTerminalStore
from sidestage.terminals.desk import Template
from sidestage.terminals.launch import Launcher, LaunchSettings
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.service import TerminalDesk
from sidestage.terminals.templates import (
    CLAUDE_CODE,
    SHELL,
    TEMPLATE_IDS,
    TemplateShelf,
)
from tests.fakes.terminal_parts import SECRET, FakeHost, FakeLinks, FakePreparer

HERE = HostId("host:1")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
CONVERSATION = ConversationId("2f70c0de-0000-4000-8000-00000000abcd")
OWNER = Principal(PrincipalKind.ADMIN, ADMIN_SCOPES, "admin", token_id="t1")


@dataclass
class FakeSessions:
    """The rows the desk sees; `refresh` answers with what the test prepared."""

    feed: Feed[Session]
    truth: dict[str, Session]

    def find(self, session_id: SessionId) -> Session | None:
        return self.feed.get(session_id)

    def health(self) -> SourceHealth:
        return SourceHealth(watching=True)

    async def refresh(self, session_id: SessionId) -> Session | None:
        return self.truth.get(session_id, self.feed.get(session_id))

    async def usage(self, **_: object) -> tuple[()]:
        return ()


def make_session(
    *,
    conversation: str = CONVERSATION,
    state: SessionState = SessionState.ENDED,
    project_id: ProjectId | None = None,
    has_prompt: bool = True,
    directory: str | None = "/srv/p",
    directory_exists: bool | None = True,
    host_id: HostId = HERE,
) -> Session:
    return Session(
        id=session_id("CLAUDE_CODE", conversation, machine_secret=SECRET),
        agent=AgentKind.CLAUDE_CODE,
        host_id=host_id,
        name="fix the bug",
        directory=directory,
        directory_exists=directory_exists,
        current_directory=directory,
        project_id=project_id,
        state=state,
        state_since=NOW,
        state_evidence=None,
        waiting_for=None,
        terminal_id=None,
        started_at=NOW,
        last_activity_at=NOW,
        ended_at=None,
        git_branch=None,
        model=None,
        permission_mode=None,
        agent_version=None,
        usage=None,
        last_message=None,
        conflict=None,
        continued_from_id=None,
        handed_off_at=None,
        has_prompt=has_prompt,
        origin=SessionOrigin(
            conversation_id=ConversationId(conversation),
            config_dir=Path("/home/dev/.claude"),
            transcript=Path("/home/dev/.claude/projects/-srv-p/x.jsonl"),
            process=None,
        ),
    )


@dataclass
class Bench:
    """A desk with its parts at hand."""

    desk: TerminalDesk
    host: FakeHost
    links: FakeLinks
    preparer: FakePreparer
    sessions: FakeSessions
    projects: ProjectRegistry
    store: SqlTerminalStore
    audit: SqlAuditLog
    project: Project
    parts: DeskParts

    def add_session(self, session: Session) -> Session:
        self.sessions.feed.upsert(session)
        return session


def find_templates() -> tuple[Template, ...]:
    """Find both programs, wherever the tests run."""
    agent, argv = AgentKind.CLAUDE_CODE, ("/usr/bin/claude",)
    return (
        Template(CLAUDE_CODE, "Claude Code", "", agent, available=True, argv=argv),
        Template(SHELL, "Shell", "", None, available=True, argv=("/bin/sh",)),
    )


def no_bounds(path: Path) -> None:
    """Let any folder be a project."""


def no_check(path: str, device: int, inode: int) -> None:
    """Let any folder be the one that was registered."""


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    database = await Database.open(tmp_path / "sidestage.db")
    made = await make_bench(database, tmp_path)
    running = asyncio.create_task(made.desk.run())
    yield made
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await database.close()


async def make_bench(
    database: Database,
    tmp_path: Path,
    *,
    host: FakeHost | None = None,
    store: SqlTerminalStore | None = None,
) -> Bench:
    """Make a desk over *database*; the caller runs it."""
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    projects = ProjectRegistry(
        SqlProjectStore(database),
        host_id=HERE,
        check_bounds=no_bounds,
        templates=TEMPLATE_IDS,
        clock=lambda: NOW,
    )
    await projects.load()
    project = next(iter(projects.feed.values()), None) or await projects.register(
        str(folder), name=None, read_only=False, templates=None, actor=OWNER
    )
    preparer = FakePreparer()
    parts = DeskParts(
        host_id=HERE,
        host=host or FakeHost(),
        store=store or SqlTerminalStore(database),
        projects=projects,
        sessions=(sessions := FakeSessions(Feed(lambda s: s.id), {})),
        links=(links := FakeLinks()),
        launcher=Launcher(
            LaunchSettings(
                home=Path("/home/dev"),
                state_dir=Path("/state"),
                sandbox=True,
                environment={"HOME": "/home/dev", "PATH": "/usr/bin"},
                pass_environment=(),
                find_program_dirs=tuple,
                git_config="",
            ),
            {AgentKind.CLAUDE_CODE: preparer},
        ),
        templates=TemplateShelf(find_templates),
        terminals_limit=3,
        check_project=no_check,
        clock=lambda: NOW,
    )
    desk = TerminalDesk(parts)
    await desk.load()
    fake_host = parts.host
    assert isinstance(fake_host, FakeHost)
    return Bench(
        desk=desk,
        host=fake_host,
        links=links,
        preparer=preparer,
        sessions=sessions,
        projects=projects,
        store=SqlTerminalStore(database),
        audit=SqlAuditLog(database),
        project=project,
        parts=parts,
    )


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until *holds*, for at most five seconds."""
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.to_thread(lambda: None)
