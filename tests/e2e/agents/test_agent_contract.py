"""What discovery sees of an agent, and what the scripted one must share with the real.

Each scenario runs against the scripted agent, and against the real Claude Code where
the marker `claude` is selected.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sidestage.agents.claude_code.discovery import Discovery, open_discovery
from sidestage.ids import ConversationId, HostId, SessionId
from sidestage.sessions.model import EvidenceSource, Session, SessionState, WaitingKind
from sidestage.sessions.transcript import EntryKind, TranscriptEntry
from tests.e2e.agents.scripted_claude import AgentHome, ScriptedClaude
from tests.e2e.pty_program import PtyProgram
from tests.e2e.real_claude import RealClaude
from tests.fakes.projects import FakeProjects
from tests.fakes.waiting import wait_for_row

FORK_ID = "5b1f0c9e-7d24-4a38-9c61-0e4b7a2d8f13"
UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"
PATIENCE_SECONDS = 20.0


@pytest.fixture(params=["scripted", pytest.param("real", marks=pytest.mark.claude)])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentHome]:
    """A scratch home with one of the two agents."""
    home = (
        RealClaude.create(tmp_path)
        if request.param == "real"
        else ScriptedClaude(tmp_path)
    )
    with home as opened:
        yield opened


@dataclass
class Watcher:
    """Discovery of the home, and the one session a scenario is about."""

    discovery: Discovery

    async def state(
        self, wanted: SessionState, *, of: SessionId | None = None
    ) -> Session:
        """Return the session (the only one, or *of*) once it is in that state."""
        return await self.session(lambda it: it.state is wanted, of=of)

    async def session(
        self, is_right: Callable[[Session], bool], *, of: SessionId | None = None
    ) -> Session:
        """Return the session once it *is_right*."""
        feed = self.discovery.sessions.feed
        async with asyncio.timeout(PATIENCE_SECONDS):
            while of is None:
                seq = feed.seq
                if rows := feed.values():
                    of = rows[0].id
                else:
                    await feed.wait_beyond(seq)
        return await wait_for_row(feed, of, is_right, deadline_seconds=PATIENCE_SECONDS)

    async def entries(
        self, session: Session, last: EntryKind
    ) -> tuple[TranscriptEntry, ...]:
        """Return the transcript's entries once the last one is of that kind.

        The CLI writes its records up to a second after its state is another one.
        """
        follower = self.discovery.transcripts.follow(session.id, after=None)
        told: list[TranscriptEntry] = []
        async with asyncio.timeout(PATIENCE_SECONDS), aclosing(follower) as updates:
            async for update in updates:
                told += update.entries
                if told and told[-1].kind is last:
                    break
        return tuple(told)

    async def has_said(self, words: str, *, of: SessionId | None = None) -> Session:
        """Return the session once its last message holds *words*."""
        return await self.session(lambda it: words in str(it.last_message), of=of)


@asynccontextmanager
async def watch(agent: AgentHome) -> AsyncIterator[Watcher]:
    async with open_discovery(
        config_dirs=[agent.config_dir],
        machine_secret=b"s" * 32,
        host_id=HostId("host:test"),
        projects=FakeProjects(),
    ) as discovery:
        yield Watcher(discovery)


async def on_screen(terminal: PtyProgram, pattern: str) -> None:
    await asyncio.to_thread(terminal.wait_for, pattern)


async def say(terminal: PtyProgram, prompt: str, answer: str) -> None:
    """Type a prompt and wait for its answer on the screen."""
    await asyncio.to_thread(terminal.send, f"{prompt}\r")
    await on_screen(terminal, answer)


async def start_and_say(terminal: PtyProgram, prompt: str = "hello") -> None:
    await on_screen(terminal, "❯")
    await say(terminal, prompt, f"Stub answer to: {prompt}")


async def leave(terminal: PtyProgram) -> int:
    await asyncio.to_thread(terminal.send, "/exit\r")
    return await asyncio.to_thread(terminal.wait_end)


async def test_a_turn_is_seen_from_its_prompt_to_its_end(agent: AgentHome) -> None:
    project = agent.make_project("project")
    async with watch(agent) as watcher:
        with agent.start(directory=project) as terminal:
            await on_screen(terminal, "❯")
            session = await watcher.state(SessionState.IDLE)
            assert not session.has_prompt
            assert session.directory == str(project)
            await asyncio.to_thread(terminal.send, "stub:slow(2)\r")
            await watcher.state(SessionState.RUNNING)
            await on_screen(terminal, "word8")
            await watcher.state(SessionState.IDLE)
            session = await watcher.has_said("word8")
            assert session.name == "stub:slow(2)"
            assert session.usage is not None
            assert session.usage.output_tokens > 0
            assert [process.pid for process in session.origin.processes] == [
                terminal.pid
            ]
            assert await leave(terminal) == 0
        ended = await watcher.state(SessionState.ENDED)
        assert ended.has_prompt
        assert agent.registry() == []
        prompt, answer = await watcher.entries(ended, EntryKind.MESSAGE)
        assert prompt.kind is EntryKind.PROMPT
        assert "word8" in answer.text


@pytest.mark.parametrize(
    ("prompt", "mode", "kind", "tool", "key", "dialog", "closing"),
    [
        (
            "stub:bash(touch made.txt)",
            "manual",
            WaitingKind.PERMISSION,
            "Bash",
            "1",
            "Do you want to proceed",
            "has been handled",
        ),
        (
            "stub:askuser",
            "manual",
            WaitingKind.QUESTION,
            "AskUserQuestion",
            "2",
            "Enter to select",
            "Thank you",
        ),
        (
            "stub:plan",
            "plan",
            WaitingKind.PLAN,
            "ExitPlanMode",
            "2",
            "Ready to code",
            "has been handled",
        ),
    ],
)
async def test_what_it_asks_is_seen_and_so_is_the_answer(
    agent: AgentHome,
    prompt: str,
    mode: str,
    kind: WaitingKind,
    tool: str,
    key: str,
    dialog: str,
    closing: str,
) -> None:
    project = agent.make_project("project")
    async with watch(agent) as watcher:
        with agent.start("--permission-mode", mode, directory=project) as terminal:
            await on_screen(terminal, "❯")
            await asyncio.to_thread(terminal.send, f"{prompt}\r")
            await on_screen(terminal, dialog)
            # The registry tells the kind, and the transcript the tool, a little later.
            session = await watcher.session(
                lambda it: (
                    it.waiting_for is not None
                    and (it.waiting_for.kind, it.waiting_for.tool_name) == (kind, tool)
                )
            )
            assert session.state is SessionState.ASKING
            assert session.permission_mode in (mode, "default")
            await asyncio.to_thread(terminal.answer, key, dialog=dialog)
            await on_screen(terminal, closing)
            session = await watcher.state(SessionState.IDLE)
            assert session.waiting_for is None
        assert (project / "made.txt").exists() == (tool == "Bash")


async def test_a_refusal_at_the_keyboard_is_seen(agent: AgentHome) -> None:
    async with watch(agent) as watcher:
        with agent.start(directory=agent.make_project("project")) as terminal:
            await on_screen(terminal, "❯")
            await say(terminal, "stub:bash(touch made.txt)", "Do you want to proceed")
            await watcher.state(SessionState.ASKING)
            await asyncio.to_thread(
                terminal.answer, "\x1b", dialog="Do you want to proceed"
            )
            session = await watcher.state(SessionState.IDLE)
            told = await watcher.entries(session, EntryKind.INTERRUPTION)
            assert told[-2].tool_result is not None
            assert told[-2].tool_result.denied


async def test_an_interrupt_ends_the_turn(agent: AgentHome) -> None:
    async with watch(agent) as watcher:
        with agent.start(directory=agent.make_project("project")) as terminal:
            await on_screen(terminal, "❯")
            await asyncio.to_thread(terminal.send, "stub:slow(20)\r")
            await watcher.state(SessionState.RUNNING)
            await on_screen(terminal, "↓ [2-9]")  # before that, nothing is recorded
            await asyncio.to_thread(terminal.send, "\x1b")
            session = await watcher.state(SessionState.IDLE)
            told = await watcher.entries(session, EntryKind.INTERRUPTION)
            assert told[-2].kind is EntryKind.MESSAGE


async def test_a_killed_session_ends_at_once_and_can_be_resumed(
    agent: AgentHome,
) -> None:
    project = agent.make_project("project")
    async with watch(agent) as watcher:
        with agent.start(directory=project) as terminal:
            await start_and_say(terminal, "hello")
            await watcher.has_said("Stub answer")
            session = await watcher.state(SessionState.IDLE)
            os.kill(terminal.pid, signal.SIGKILL)
            ended = await watcher.state(SessionState.ENDED)
            assert ended.state_evidence is not None
            assert ended.state_evidence.source is EvidenceSource.PROCESS
        assert len(agent.registry()) == 1  # the stale file stays, and says nothing
        conversation = session.origin.conversation_id
        (transcript,) = agent.transcripts()
        with agent.start("--resume", conversation, directory=project) as terminal:
            await on_screen(terminal, "Stub answer to: hello")
            again = await watcher.state(SessionState.IDLE, of=session.id)
            assert again.origin.process is not None
            assert again.origin.process.pid == terminal.pid
            await say(terminal, "once more", "Stub answer to: once more")
            await watcher.has_said("Stub answer to: once more")
            assert agent.transcripts() == [transcript]
            os.kill(terminal.pid, signal.SIGTERM)
            assert await asyncio.to_thread(terminal.wait_end) == 128 + signal.SIGTERM
        await watcher.state(SessionState.ENDED)
        assert [it["pid"] for it in agent.registry()] != [terminal.pid]


async def test_a_fork_with_a_chosen_id_names_its_parent(agent: AgentHome) -> None:
    project = agent.make_project("project")
    async with watch(agent) as watcher:
        with agent.start("-n", "the parent", directory=project) as terminal:
            await start_and_say(terminal)
            parent = await watcher.session(lambda it: it.name == "the parent")
            await leave(terminal)
        conversation = parent.origin.conversation_id
        fork_id = watcher.discovery.sessions.session_id(ConversationId(FORK_ID))
        arguments = (
            "--resume",
            conversation,
            "--fork-session",
            "--session-id",
            FORK_ID,
        )
        with agent.start(*arguments, directory=project) as terminal:
            await on_screen(terminal, "Stub answer to: hello")
            await say(terminal, "the other way", "Stub answer to: the other way")
            fork = await watcher.session(
                lambda it: it.continued_from_id is not None, of=fork_id
            )
            assert fork.continued_from_id == parent.id
            await watcher.state(SessionState.ENDED, of=parent.id)
            assert len(agent.transcripts()) == 2


async def test_clear_goes_on_with_another_conversation(agent: AgentHome) -> None:
    async with watch(agent) as watcher:
        with agent.start(directory=agent.make_project("project")) as terminal:
            await start_and_say(terminal)
            first = await watcher.state(SessionState.IDLE)
            await asyncio.to_thread(terminal.send, "/clear\r")
            await watcher.state(SessionState.ENDED, of=first.id)
            (entry,) = agent.registry()
            second = watcher.discovery.sessions.session_id(entry["sessionId"])
            assert second != first.id
            session = await watcher.state(SessionState.IDLE, of=second)
            assert session.origin.process is not None
            assert session.origin.process.pid == terminal.pid


async def test_two_processes_on_one_conversation_are_a_conflict(
    agent: AgentHome,
) -> None:
    project = agent.make_project("project")
    async with watch(agent) as watcher:
        with agent.start(directory=project) as one:
            await start_and_say(one)
            session = await watcher.state(SessionState.IDLE)
            conversation = session.origin.conversation_id
            with agent.start("--resume", conversation, directory=project) as two:
                await on_screen(two, "Stub answer to: hello")
                session = await watcher.session(lambda it: it.conflict is not None)
                pids = {process.pid for process in session.origin.processes}
                assert pids == {one.pid, two.pid}
                os.kill(two.pid, signal.SIGKILL)
                await watcher.session(lambda it: it.conflict is None)


async def test_an_unknown_id_is_refused(agent: AgentHome) -> None:
    project = agent.make_project("project")
    with agent.start("--resume", UNKNOWN_ID, directory=project) as terminal:
        assert await asyncio.to_thread(terminal.wait_end) == 1
        assert b"No conversation found" in terminal.output


async def test_one_that_is_held_by_its_trust_dialog_is_just_starting(
    agent: AgentHome,
) -> None:
    project = agent.home / "untrusted"
    project.mkdir()
    agent.make_project("another")
    async with watch(agent) as watcher:
        starting = watcher.discovery.sessions.starting_agent
        nothing = ConversationId(UNKNOWN_ID)
        assert not await starting(str(project), nothing)
        with agent.start(directory=project) as terminal:
            await on_screen(terminal, "Quick safety check")
            assert await starting(str(project), nothing)
            assert not await starting("/", nothing)
        assert not await starting(str(project), nothing)
