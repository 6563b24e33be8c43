"""Starting a continuation: its arguments, its lock, and what it leaves alone."""

import asyncio

import pytest

from sidestage.audit import AuditOutcome
from sidestage.errors import (
    HostUnavailable,
    OutsideResumeUnavailable,
    OutsideSessionNotFound,
    ProjectNotFound,
    StartFailed,
)
from sidestage.ids import ConversationId, ProjectId, SessionId, TerminalId
from sidestage.sessions.model import Session, SessionState
from sidestage.terminals.forks import Fork, Forks
from sidestage.terminals.model import Terminal, TerminalState
from tests.fakes.terminal_parts import as_host
from tests.unit.terminals.conftest import (
    CONVERSATION,
    OWNER,
    Bench,
    make_session,
    until,
)

OWN = ConversationId("11111111-2222-4333-8444-555555555555")


def live(bench: Bench) -> Session:
    return bench.add_session(
        make_session(state=SessionState.IDLE, project_id=bench.project.id)
    )


def a_fork(session_id: SessionId, **changes: object) -> Fork:
    values: dict[str, object] = {
        "terminal_id": TerminalId("terminal:f"),
        "session_id": session_id,
        "conversation_id": OWN,
        "permission_mode": "manual",
    }
    return Fork(**{**values, **changes})  # type: ignore[arg-type]  # the tests' own


async def fork(bench: Bench, wish: Fork) -> Terminal:
    forks: Forks = bench.desk
    return await forks.fork(wish, actor=OWNER)


async def test_a_live_session_is_forked_without_a_prompt_and_under_its_own_lock(
    bench: Bench,
) -> None:
    session = live(bench)
    terminal = await fork(bench, a_fork(session.id))
    [asked] = bench.host.created
    assert asked.argv[1:] == (
        *("--resume", CONVERSATION, "--fork-session"),
        *("--session-id", OWN, "--permission-mode", "manual"),
    )
    assert asked.conversation_id == OWN
    assert asked.sandbox is not None
    assert terminal.id == "terminal:f"
    assert terminal.name == "fix the bug (continued)"
    assert terminal.session_id == bench.links.session_of(OWN)
    assert terminal.session_id != session.id
    assert as_host(bench.host)


async def test_the_same_fork_again_starts_nothing(bench: Bench) -> None:
    session = live(bench)
    wish = a_fork(session.id)
    first = await fork(bench, wish)
    assert await fork(bench, wish) == first
    assert len(bench.host.created) == 1


async def test_a_fresh_one_knows_no_conversation_but_its_own(bench: Bench) -> None:
    gone = SessionId(f"outside:{0:032x}")
    terminal = await fork(
        bench, a_fork(gone, is_fresh=True, project_id=bench.project.id)
    )
    [asked] = bench.host.created
    assert asked.argv[1:] == ("--session-id", OWN, "--permission-mode", "manual")
    assert terminal.directory == bench.project.path
    with pytest.raises(ProjectNotFound):
        await fork(
            bench,
            a_fork(
                gone,
                is_fresh=True,
                terminal_id=TerminalId("terminal:g"),
                project_id=ProjectId("project:none"),
            ),
        )


async def test_what_cannot_be_resumed_cannot_be_forked(bench: Bench) -> None:
    with pytest.raises(OutsideSessionNotFound):
        await fork(bench, a_fork(SessionId(f"outside:{0:032x}")))
    session = bench.add_session(make_session(state=SessionState.IDLE))
    with pytest.raises(OutsideResumeUnavailable):
        await fork(bench, a_fork(session.id))
    assert bench.host.created == []


async def test_a_failed_fork_leaves_nothing_and_may_be_tried_again(
    bench: Bench,
) -> None:
    session = live(bench)
    bench.host.fails_with = StartFailed("It did not start.")
    with pytest.raises(StartFailed):
        await fork(bench, a_fork(session.id))
    assert await bench.desk.fate(TerminalId("terminal:f")) is None
    bench.host.fails_with = None
    assert await fork(bench, a_fork(session.id))
    entries = await bench.audit.list_entries(limit=10)
    outcomes = [
        it.record.outcome for it in entries if it.record.action == "session.fork"
    ]
    assert outcomes[::-1] == [
        AuditOutcome.BEGUN,
        AuditOutcome.FAILED,
        AuditOutcome.BEGUN,
        AuditOutcome.DONE,
    ]


async def test_what_became_of_an_unanswered_fork_is_told_by_the_hosts_list(
    bench: Bench,
) -> None:
    session = live(bench)
    bench.host.answers = False
    with pytest.raises(HostUnavailable):
        await fork(bench, a_fork(session.id))
    with pytest.raises(HostUnavailable):
        await fork(bench, a_fork(session.id))
    asked = asyncio.create_task(bench.desk.fate(TerminalId("terminal:f")))
    bench.host.answers = True
    bench.host.events.put_nowait(bench.host.list_event())
    terminal = await asked
    assert terminal is not None
    assert terminal.state is TerminalState.RUNNING
    assert len(bench.host.created) == 1


async def test_a_fork_of_a_server_that_died_is_found_or_known_to_be_none(
    bench: Bench,
) -> None:
    session = live(bench)
    await fork(bench, a_fork(session.id))
    await until(lambda: bench.desk.feed.get("terminal:f") is not None)
    assert (await bench.desk.fate(TerminalId("terminal:f"))) is not None
    assert (await bench.desk.fate(TerminalId("terminal:none"))) is None
