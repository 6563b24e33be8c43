import asyncio
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sidestage.agents.claude_code import discovery as discovery_module
from sidestage.agents.claude_code.discovery import Discovery
from sidestage.agents.claude_code.live import look
from sidestage.agents.watching import open_notifier
from sidestage.ids import (
    ConversationId,
    ProjectId,
    SessionId,
    TerminalId,
)
from sidestage.sessions.board import UsageBucket
from sidestage.sessions.evidence import Activity
from sidestage.sessions.model import EvidenceSource, Process, Session, SessionState
from tests.fakes.agent_records import (
    CONVERSATION,
    FOLDER,
    answer,
    lines,
    prompt,
    registry,
    text_block,
    write_registry,
    write_transcript,
)
from tests.fakes.processes import DOMAIN, FakeProcesses, agent
from tests.fakes.projects import FakeProjects
from tests.fakes.waiting import wait_for_row
from tests.unit.agents.claude_code.conftest import Opener, row_id, silent

OTHER = "7c1d9a52-0e3b-4c64-9f18-5a2e8b4d6f01"
IDLE, ENDED = SessionState.IDLE, SessionState.ENDED


def row(opened: Discovery, conversation: str = CONVERSATION) -> Session:
    found = opened.sessions.find(row_id(conversation))
    assert found is not None
    return found


def hello() -> bytes:
    return lines(prompt(1, None, "hello"), answer(2, 1, text_block("hi")))


async def test_a_config_dir_may_be_a_link(tmp_path: Path, discovery: Opener) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    async with discovery(tmp_path / "link") as opened:
        write_transcript(tmp_path / "real", hello())
        session = await wait_for_row(
            opened.sessions.feed, row_id(), lambda it: it.has_prompt
        )
        assert session.origin.config_dir == tmp_path / "link"


async def test_what_a_watch_misses_is_found_by_the_regular_look(
    tmp_path: Path, discovery: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOOK_SECONDS", "RESCAN_SECONDS", "SAVE_SECONDS"):
        monkeypatch.setattr(discovery_module, name, 0.01)
    table = FakeProcesses({7: "70"})
    async with discovery(tmp_path, table=table, notifier=silent) as opened:
        feed = opened.sessions.feed
        path = write_transcript(tmp_path, hello())
        await wait_for_row(feed, row_id(), lambda it: it.has_prompt)
        write_registry(tmp_path, registry(7, "70", DOMAIN, status="idle"))
        await wait_for_row(feed, row_id(), lambda it: it.state is IDLE)
        table.ticks.clear()
        await wait_for_row(feed, row_id(), lambda it: it.state is ENDED)
        table.agents = [agent(9, FOLDER)]
        await wait_for_row(feed, row_id(), lambda it: it.state is SessionState.UNKNOWN)
        path.write_bytes(lines(prompt(5, None, "another file")))
        await wait_for_row(feed, row_id(), lambda it: it.name == "another file")
        path.unlink()
        await wait_for_row(feed, row_id(), lambda it: it.origin.transcript is None)


async def test_a_bug_in_one_work_is_logged_and_the_work_starts_again(
    tmp_path: Path,
    discovery: Opener,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A path in an error's text names a conversation, so it is not logged."""
    monkeypatch.setattr(discovery_module, "RESTART_SECONDS", 0.01)
    failures = [RuntimeError(f"/projects/{CONVERSATION}.jsonl")]

    def fails_once(folders: list[str]) -> Any:
        if failures:
            raise failures.pop()
        return open_notifier(folders)

    with caplog.at_level(logging.ERROR):
        async with discovery(tmp_path, notifier=fails_once) as opened:
            write_transcript(tmp_path, hello())
            await wait_for_row(opened.sessions.feed, row_id(), lambda it: it.has_prompt)
    assert "watching files failed: RuntimeError" in caplog.text
    assert CONVERSATION not in caplog.text


async def test_pipes_and_links_that_a_sandbox_left_are_not_opened(
    tmp_path: Path, discovery: Opener
) -> None:
    """A pipe in the registry folder would have stopped discovery for ever."""
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(hello())
    path = write_transcript(tmp_path / "home", hello(), OTHER)
    (path.parent / f"{CONVERSATION}.jsonl").symlink_to(secret)
    os.mkfifo(path.parent / "pipe.jsonl")
    sessions = tmp_path / "home" / "sessions"
    sessions.mkdir()
    os.mkfifo(sessions / "7.json")
    (sessions / "8.json").symlink_to(
        write_registry(tmp_path, registry(8, "80", DOMAIN, status="idle"))
    )
    table = FakeProcesses({7: "70", 8: "80"})
    async with asyncio.timeout(5), discovery(tmp_path / "home", table=table) as opened:
        assert [it.id for it in opened.sessions.feed.values()] == [row_id(OTHER)]


async def test_a_program_cannot_fill_the_list_by_changing_its_id(
    tmp_path: Path, discovery: Opener
) -> None:
    """A sandboxed program rewrote its registry file, each time with another id."""
    table = FakeProcesses({7: "70"})
    async with discovery(tmp_path, table=table, notifier=silent) as opened:
        for number in range(500):
            values = registry(7, "70", DOMAIN, conversation=f"c{number}", status="idle")
            path = write_registry(tmp_path, values)
            await opened.sessions.read_registry([str(path)])
        assert len(opened.sessions.feed.values()) <= 201
        assert row(opened, "c499").state is IDLE
        assert len(opened.sessions.live._evidence) <= 202


async def test_a_look_that_comes_late_does_not_bring_a_conversation_back(
    tmp_path: Path, discovery: Opener
) -> None:
    """Two looks at once: the older one, taken in last, left two live conversations."""
    table = FakeProcesses({7: "70"})
    async with discovery(tmp_path, table=table, notifier=silent) as opened:
        (folder,) = opened.sessions.registry_folders()
        path = str(write_registry(tmp_path, registry(7, "70", DOMAIN, status="busy")))
        old = look(folder, path, table, datetime.fromtimestamp(1, UTC))
        cleared = registry(7, "70", DOMAIN, conversation=OTHER, status="idle")
        write_registry(tmp_path, cleared)
        await opened.sessions.read_registry()
        assert opened.sessions.live.apply(old) == set()
        assert opened.sessions.live.live_runs() == {Process(7, "70"): OTHER}


async def test_what_hooks_say_counts_if_it_is_newer(
    tmp_path: Path, discovery: Opener
) -> None:
    table = FakeProcesses({7: "70"})
    registered = registry(7, "70", DOMAIN, status="idle", statusUpdatedAt=1796066338671)
    write_registry(tmp_path, registered)
    async with discovery(tmp_path, table=table) as opened:
        said = datetime.fromtimestamp(1796066338.0, UTC)
        run, hook = Process(7, "70"), EvidenceSource.HOOK
        conversation = ConversationId(CONVERSATION)
        older = Activity(run, SessionState.RUNNING, said, hook)
        opened.sessions.observe(conversation, older)
        assert row(opened).state is IDLE
        # A moment ago: the registry has a second to say the same.
        newer = Activity(run, SessionState.ASKING, datetime.now(UTC), hook, "x")
        opened.sessions.observe(conversation, newer)
        assert row(opened).state is SessionState.ASKING
        await opened.sessions.read_registry()  # the poll says what it said before
        assert row(opened).state is SessionState.ASKING


async def test_a_handed_off_session_says_so(tmp_path: Path, discovery: Opener) -> None:
    write_transcript(tmp_path, hello())
    moment = datetime(2026, 11, 30, tzinfo=UTC)
    async with discovery(tmp_path) as opened:
        opened.sessions.set_handed_off(row_id(), moment)
        assert row(opened).handed_off_at == moment
        opened.sessions.set_handed_off(row_id(), None)
        assert row(opened).handed_off_at is None
        opened.sessions.set_handed_off(SessionId("outside:none"), moment)


async def test_usage_is_asked_by_project(tmp_path: Path, discovery: Opener) -> None:
    write_transcript(tmp_path, hello())
    elsewhere = answer(1, None, text_block("x")) | {"cwd": "/elsewhere"}
    write_transcript(tmp_path, lines(elsewhere), OTHER)
    projects = FakeProjects()
    project = projects.put(FOLDER)
    async with discovery(tmp_path, projects=projects) as opened:

        async def tokens(project_id: ProjectId | None) -> int:
            points = await opened.sessions.usage(
                start=datetime(2026, 1, 1, tzinfo=UTC),
                end=datetime(2027, 1, 1, tzinfo=UTC),
                bucket=UsageBucket.DAY,
                project_id=project_id,
            )
            return sum(point.usage.output_tokens for point in points)

        assert await tokens(None) == 10
        assert await tokens(project.id) == 5
        assert await tokens(ProjectId("project:none")) == 0


async def test_a_process_that_all_see_is_no_terminals(
    tmp_path: Path, discovery: Opener
) -> None:
    """The private folder was read first; the shared registry then knew better."""
    home, private = tmp_path / "home", tmp_path / "private"
    table = FakeProcesses({7: "70"})
    async with discovery(home, table=table, notifier=silent) as opened:
        opened.add_terminal(TerminalId("terminal:1"), private / "sessions")
        write_registry(private, registry(7, "70", DOMAIN, status="idle"))
        await opened.sessions.read_registry()
        assert row(opened).terminal_id == "terminal:1"
        shared = registry(7, "70", DOMAIN, conversation=OTHER, status="idle")
        write_registry(home, shared)
        await opened.sessions.read_registry()
        assert row(opened, OTHER).state is IDLE
        assert row(opened, OTHER).terminal_id is None
        assert row(opened).terminal_id is None


async def test_an_agent_in_a_linked_folder_is_in_the_way(
    tmp_path: Path, discovery: Opener
) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    nowhere = agent(8, FOLDER)
    table = FakeProcesses(agents=[agent(7, str(real)), nowhere])
    async with discovery(tmp_path / "home", table=table) as opened:
        id_ = ConversationId(CONVERSATION)
        assert await opened.sessions.starting_agent(str(link), id_)
        assert not await opened.sessions.starting_agent("/not/there", id_)
        assert not await opened.sessions.starting_agent(str(tmp_path), id_)


async def test_one_that_registers_while_we_look_is_in_the_way_too(
    tmp_path: Path, discovery: Opener
) -> None:
    table = FakeProcesses({7: "70"})
    async with discovery(tmp_path, table=table, notifier=silent) as opened:
        write_registry(tmp_path, registry(7, "70", DOMAIN, status="idle"))
        id_ = ConversationId(CONVERSATION)
        assert await opened.sessions.starting_agent(FOLDER, id_)


async def test_health_counts_what_could_not_be_read(
    tmp_path: Path, discovery: Opener
) -> None:
    write_transcript(tmp_path, hello() + b"{bad\n" + lines({"type": "hologram"}))
    async with discovery(tmp_path) as opened:
        counters = opened.sessions.health().counters
        assert counters["transcripts"] == 1
        assert counters["bad_lines"] == 1
        assert counters["unknown_records"] == 1


async def test_two_config_dirs_make_one_list(tmp_path: Path, discovery: Opener) -> None:
    write_transcript(tmp_path / "one", hello())
    write_transcript(tmp_path / "two", hello(), OTHER)
    newer = write_transcript(tmp_path / "two", lines(prompt(1, None, "a copy")))
    os.utime(newer, (2**31, 2**31))
    async with discovery(tmp_path / "one", tmp_path / "two") as opened:
        assert row(opened, OTHER).origin.config_dir == tmp_path / "two"
        assert row(opened).name == "a copy"
        newer.unlink()
        await opened.sessions.rescan()
        assert row(opened).name == "hello"


async def test_a_process_may_come_back_to_a_conversation(
    tmp_path: Path, discovery: Opener
) -> None:
    table = FakeProcesses({7: "70"})
    async with discovery(tmp_path, table=table, notifier=silent) as opened:
        for conversation in (CONVERSATION, OTHER, CONVERSATION):
            values = registry(7, "70", DOMAIN, conversation=conversation, status="idle")
            write_registry(tmp_path, values)
            await opened.sessions.read_registry()
        assert row(opened).state is IDLE
        assert row(opened, OTHER).state is ENDED


async def test_a_terminal_cannot_claim_a_conversation_of_another_folder(
    tmp_path: Path, discovery: Opener
) -> None:
    home, private = tmp_path / "home", tmp_path / "private"
    write_transcript(home, hello())
    write_registry(private, registry(7, "70", DOMAIN, status="idle"))
    table = FakeProcesses({7: "70"})
    async with discovery(home, table=table) as opened:
        opened.add_terminal(
            TerminalId("terminal:1"), private / "sessions", directory="/elsewhere"
        )
        await opened.sessions.read_registry()
        assert row(opened).state is ENDED
        assert row(opened).terminal_id is None


async def test_only_an_agent_nobody_accounts_for_makes_a_folder_unknown(
    tmp_path: Path, discovery: Opener
) -> None:
    write_transcript(tmp_path, hello())
    write_registry(tmp_path, registry(8, "80", DOMAIN, conversation=OTHER))
    table = FakeProcesses({8: "80"})
    async with discovery(tmp_path, table=table, notifier=silent) as opened:
        ours = TerminalId("terminal:1")
        opened.add_terminal(ours, tmp_path / "private", directory=FOLDER)
        for accounted_for in (
            agent(7, FOLDER, age_seconds=1),  # just starting
            agent(7, FOLDER, terminal_id="terminal:1"),
            agent(7, FOLDER, parent_pid=8),  # a worker of a registered one
            agent(7, FOLDER, "mcp", "serve"),
            agent(7, FOLDER, "/usr/bin/claude", "doctor"),
            agent(7, "/elsewhere"),
        ):
            table.agents = [accounted_for]
            await opened.sessions.look_for_agents()
            assert row(opened).state is ENDED
        table.agents = [agent(7, "/elsewhere", "--resume", CONVERSATION)]
        await opened.sessions.look_for_agents()
        assert row(opened).state is SessionState.UNKNOWN
