import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sidestage.agents.claude_code.discovery import Discovery, open_discovery
from sidestage.agents.processes import LinuxProcesses, ProcessTable
from sidestage.ids import ConversationId, HostId, SessionId, TerminalId, session_id
from sidestage.sessions.board import Sessions
from sidestage.sessions.index import StoredTranscript
from sidestage.sessions.model import (
    EvidenceSource,
    OpenCall,
    Process,
    Session,
    SessionState,
    WaitingKind,
)
from tests.fakes.agent_records import (
    CONVERSATION,
    FOLDER,
    answer,
    call_block,
    lines,
    prompt,
    registry,
    text_block,
    write_registry,
    write_transcript,
)
from tests.fakes.processes import DOMAIN, FakeProcesses, agent
from tests.fakes.projects import FakeProjects
from tests.fakes.waiting import wait_for_row, wait_until_gone

DATA = Path(__file__).parents[1] / "data" / "claude"
SECRET = b"s" * 32
OTHER = "7c1d9a52-0e3b-4c64-9f18-5a2e8b4d6f01"
ENDED, UNKNOWN = SessionState.ENDED, SessionState.UNKNOWN
RUNNING, ASKING, IDLE = SessionState.RUNNING, SessionState.ASKING, SessionState.IDLE


def row_id(conversation: str = CONVERSATION) -> SessionId:
    return session_id("claude-code", conversation, machine_secret=SECRET)


@asynccontextmanager
async def discovery(
    *config_dirs: Path, table: ProcessTable | None = None, **more: Any
) -> AsyncIterator[Discovery]:
    more.setdefault("projects", FakeProjects())
    async with open_discovery(
        config_dirs=config_dirs,
        machine_secret=SECRET,
        host_id=HostId("host:test"),
        table=table or FakeProcesses(),
        **more,
    ) as opened:
        yield opened


def row(opened: Discovery, conversation: str = CONVERSATION) -> Session:
    found = opened.sessions.find(row_id(conversation))
    assert found is not None
    return found


def hello(*more: dict[str, Any]) -> bytes:
    return lines(prompt(1, None, "hello"), answer(2, 1, text_block("hi")), *more)


def in_state(state: SessionState) -> Callable[[Session], bool]:
    return lambda session: session.state is state


@pytest.mark.parametrize(
    ("scenario", "alive", "states"),
    [
        ("new-session", {}, {"2123": ENDED}),
        ("killed-mid-stream", {}, {"76a4": ENDED}),
        ("killed-mid-stream", {3780: "134734"}, {"76a4": RUNNING}),
        ("killed-mid-stream", {3780: "999999"}, {"76a4": ENDED}),
        ("background-job", {4073: "136252"}, {"76a4": ASKING, "813c": ENDED}),
        ("concurrent-resume", {26453: "95842"}, {"8419": IDLE, "1697": ENDED}),
        (
            "concurrent-resume",
            {26453: "95842", 26795: "98392"},
            {"8419": ASKING, "3047": ENDED},
        ),
    ],
)
async def test_recorded_homes_show_the_states_their_processes_prove(
    scenario: str, alive: dict[int, str], states: dict[str, SessionState]
) -> None:
    home = DATA / "homes" / scenario / ".claude"
    async with discovery(home, table=FakeProcesses(dict(alive))) as opened:
        found = {
            session.origin.conversation_id[:4]: session.state
            for session in opened.sessions.feed.values()
        }
        assert {start: found[start] for start in states} == states


async def test_two_live_processes_on_one_conversation_are_a_conflict() -> None:
    home = DATA / "homes" / "concurrent-resume" / ".claude"
    both = FakeProcesses({26453: "95842", 26795: "98392"})
    async with discovery(home, table=both) as opened:
        session = row(opened, "8419ead8-d695-437d-9b6a-673a9f84f964")
        assert session.conflict is not None
        assert [process.pid for process in session.origin.processes] == [26453, 26795]


async def test_every_recorded_session_is_listed_and_no_sub_agent() -> None:
    homes = sorted((DATA / "homes").glob("*/.claude"))
    async with discovery(*homes) as opened:
        names = {session.name for session in opened.sessions.feed.values()}
        assert "my-task" in names
        assert "Stub title ce7daa" in names
        assert "My renamed session" in names
        assert len(opened.sessions.feed.values()) == 25
        assert not any(
            "agent-" in session.origin.conversation_id
            for session in opened.sessions.feed.values()
        )


async def test_the_recorded_day_replays_as_changes_of_state(tmp_path: Path) -> None:
    """Each change of a real registry file reaches the feed, `/clear` included."""
    table = FakeProcesses({14781: "198052"})
    first = "404f5bbb-92c1-4788-bbfb-8a36841b0c17"
    after_clear = "f1913ffd-d73b-4989-becd-44687380a493"
    path = tmp_path / "sessions" / "14781.json"
    path.parent.mkdir()
    async with discovery(tmp_path, table=table) as opened:
        sessions = opened.sessions
        waits: list[WaitingKind] = []
        for text in (DATA / "sessions-timeline.jsonl").read_text().splitlines():
            change = json.loads(text)
            content = change.get("content")
            if change["file"] != path.name or content is None:
                continue
            path.write_text(json.dumps(content))
            await sessions.read_registry([str(path)])
            session = row(opened, content["sessionId"])
            wanted = {"busy": RUNNING, "idle": IDLE, "waiting": ASKING, None: UNKNOWN}
            assert session.state is wanted[content.get("status")]
            if session.waiting_for is not None:
                waits.append(session.waiting_for.kind)
        assert waits == [
            WaitingKind.PERMISSION,
            WaitingKind.QUESTION,
            WaitingKind.PERMISSION,
        ]
        assert row(opened, first).state is ENDED
        assert row(opened, after_clear).state is IDLE
        # The regular look finds the process, but that is on another conversation now.
        await sessions.read_registry()
        assert row(opened, first).state is ENDED
        assert row(opened, after_clear).conflict is None
        del table.ticks[14781]
        path.unlink()
        await sessions.read_registry()
        assert row(opened, after_clear).state is ENDED


async def test_a_change_of_files_reaches_the_feed_by_push(tmp_path: Path) -> None:
    table = FakeProcesses({7: "70"})
    path = write_transcript(tmp_path, hello())
    async with discovery(tmp_path, table=table) as opened:
        feed = opened.sessions.feed
        write_registry(tmp_path, registry(7, "70", DOMAIN, status="busy"))
        await wait_for_row(feed, row_id(), in_state(RUNNING))
        with path.open("ab") as file:
            file.write(lines(answer(3, 2, text_block("pushed"))))
        session = await wait_for_row(
            feed, row_id(), lambda it: "pushed" in str(it.last_message)
        )
        assert session.state is RUNNING
        path.unlink()
        table.ticks.clear()
        await opened.sessions.read_registry()
        await wait_for_row(feed, row_id(), lambda it: it.origin.transcript is None)


async def test_folders_that_come_later_are_watched(tmp_path: Path) -> None:
    home = tmp_path / "not" / "there" / "yet"
    async with discovery(home) as opened:
        await wait_until_watching(opened)
        write_transcript(home, hello())
        await wait_for_row(opened.sessions.feed, row_id(), in_state(ENDED))
        other = home / "projects" / "-another" / f"{OTHER}.jsonl"
        other.parent.mkdir()
        other.write_bytes(hello())
        await wait_for_row(opened.sessions.feed, row_id(OTHER), in_state(ENDED))


async def wait_until_watching(opened: Discovery) -> None:
    async with asyncio.timeout(5):
        while not opened.sessions.health().watching:
            await asyncio.to_thread(lambda: None)


@asynccontextmanager
async def sleeping_child() -> AsyncIterator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_killed_processes_end_at_once(tmp_path: Path) -> None:
    """`kill -9` fires no hook and leaves the registry file saying `busy`."""
    table = LinuxProcesses()
    async with sleeping_child() as child:
        ticks = table.find_start_ticks(child.pid)
        assert ticks is not None
        write_transcript(tmp_path, hello())
        now = {"startedAt": 1e12 * 1.9, "updatedAt": 1e12 * 1.9}
        write_registry(
            tmp_path, registry(child.pid, ticks, table.domain, status="busy") | now
        )
        async with discovery(tmp_path, table=table) as opened:
            assert row(opened).state is RUNNING
            child.send_signal(signal.SIGKILL)
            session = await wait_for_row(
                opened.sessions.feed, row_id(), in_state(ENDED), deadline_seconds=1
            )
            assert session.state_evidence is not None
            assert session.state_evidence.source is EvidenceSource.PROCESS
            assert session.ended_at == session.state_since


async def test_a_stale_entry_whose_pid_was_reused_is_ended(tmp_path: Path) -> None:
    table = LinuxProcesses()
    async with sleeping_child() as child:
        write_registry(tmp_path, registry(child.pid, "1", table.domain, status="busy"))
        async with discovery(tmp_path, table=table) as opened:
            assert row(opened).state is ENDED


async def test_an_entry_of_another_namespace_is_unknown(tmp_path: Path) -> None:
    write_transcript(tmp_path, hello())
    write_registry(tmp_path, registry(2, "20", "linux:1:pid:[77]", status="idle"))
    async with discovery(tmp_path, table=FakeProcesses({2: "20"})) as opened:
        assert row(opened).state is UNKNOWN


async def test_a_failed_probe_changes_nothing(tmp_path: Path) -> None:
    table = FakeProcesses({7: "70"})
    write_registry(tmp_path, registry(7, "70", DOMAIN, status="idle"))
    async with discovery(tmp_path, table=table) as opened:
        assert row(opened).state is IDLE
        table.broken = True
        await opened.sessions.read_registry()
        await opened.sessions.look_for_agents()
        assert row(opened).state is IDLE


@pytest.mark.parametrize(
    ("label", "tool", "kind"),
    [
        ("permission prompt", "Bash", WaitingKind.PERMISSION),
        ("permission prompt", "ExitPlanMode", WaitingKind.PLAN),
        ("input needed", "AskUserQuestion", WaitingKind.QUESTION),
        ("input needed", None, WaitingKind.QUESTION),
        ("dialog open", "Bash", WaitingKind.DIALOG),
        ("something new", None, WaitingKind.UNKNOWN),
        ("something new", "ExitPlanMode", WaitingKind.PLAN),
    ],
)
async def test_what_is_asked_comes_from_registry_and_open_call(
    tmp_path: Path, label: str, tool: str | None, kind: WaitingKind
) -> None:
    calls = [answer(3, 2, call_block("c", tool))] if tool else []
    write_transcript(tmp_path, hello(*calls))
    write_registry(
        tmp_path, registry(7, "70", DOMAIN, status="waiting", waitingFor=label)
    )
    async with discovery(tmp_path, table=FakeProcesses({7: "70"})) as opened:
        waiting = row(opened).waiting_for
        assert waiting is not None
        assert (waiting.kind, waiting.label, waiting.tool_name) == (kind, label, tool)


async def test_a_row_tells_the_server_its_open_calls_and_runs_without_dialogs(
    tmp_path: Path,
) -> None:
    write_transcript(tmp_path, hello(answer(3, 2, call_block("c", "Bash"))))
    write_registry(
        tmp_path, registry(7, "70", DOMAIN, status="busy", entrypoint="sdk-cli")
    )
    async with discovery(tmp_path, table=FakeProcesses({7: "70"})) as opened:
        origin = row(opened).origin
    assert origin.open_calls == (OpenCall("c", "Bash"),)
    assert origin.headless == {Process(7, "70")}


async def test_an_agent_without_a_registry_makes_its_folder_unknown(
    tmp_path: Path,
) -> None:
    write_transcript(tmp_path, hello())
    write_transcript(
        tmp_path,
        lines(
            prompt(
                1,
                None,
                "x",
            )
            | {"cwd": "/other"}
        ),
        OTHER,
    )
    table = FakeProcesses(agents=[agent(7, FOLDER)])
    async with discovery(tmp_path, table=table) as opened:
        assert row(opened).state is UNKNOWN
        assert row(opened, OTHER).state is ENDED
        table.agents.clear()
        await opened.sessions.look_for_agents()
        assert row(opened).state is ENDED


async def test_an_agent_that_just_starts_is_told_to_whoever_resumes(
    tmp_path: Path,
) -> None:
    write_transcript(tmp_path, hello())
    table = FakeProcesses(ticks={8: "80"})
    async with discovery(tmp_path, table=table) as opened:
        id_ = ConversationId(CONVERSATION)
        starting = opened.sessions.starting_agent
        assert not await starting(FOLDER, id_)
        table.agents = [agent(7, FOLDER, age_seconds=0.1)]
        assert await starting(FOLDER, id_)
        assert row(opened).state is ENDED
        table.agents = [agent(7, "/elsewhere", "--resume", CONVERSATION.upper())]
        assert await starting(FOLDER, id_)
        opened.add_terminal(TerminalId("terminal:1"), tmp_path / "private")
        table.agents = [agent(7, FOLDER, terminal_id="terminal:1")]
        assert not await starting(FOLDER, id_)
        table.agents = [agent(7, FOLDER, CONVERSATION, terminal_id="terminal:1")]
        assert await starting(FOLDER, id_)
        table.agents = [agent(7, FOLDER, "mcp", "serve")]
        assert not await starting(FOLDER, id_)
        # One that has its registry entry is live or not; it is not starting.
        table.agents = [agent(8, FOLDER)]
        write_registry(tmp_path, registry(8, "80", DOMAIN, conversation=OTHER))
        assert not await starting(FOLDER, id_)


async def test_a_resume_by_hand_is_seen_by_a_refresh(tmp_path: Path) -> None:
    write_transcript(tmp_path, hello())
    table = FakeProcesses()
    async with discovery(tmp_path, table=table) as opened:
        assert row(opened).state is ENDED
        table.ticks[7] = "70"
        write_registry(tmp_path, registry(7, "70", DOMAIN, status="idle"))
        fresh = await opened.sessions.refresh(row_id())
        assert fresh is not None
        assert fresh.state is IDLE
        assert await opened.sessions.refresh(SessionId("outside:none")) is None


async def test_a_terminals_private_registry_links_its_session(tmp_path: Path) -> None:
    home, private = tmp_path / "home", tmp_path / "private"
    write_transcript(home, hello())
    table = FakeProcesses({7: "70", 8: "80"})
    terminal = TerminalId("terminal:1")
    async with discovery(home, table=table) as opened:
        opened.add_terminal(terminal, private / "sessions", directory=FOLDER)
        watching = opened.sessions.watch_terminals()
        write_registry(private, registry(7, "70", DOMAIN, status="idle"))
        session = await wait_for_row(opened.sessions.feed, row_id(), in_state(IDLE))
        assert session.terminal_id == terminal
        sighting = await anext(watching)
        assert sighting.conversation_id == CONVERSATION
        assert sighting.foreign == ()
        # Someone opens the same conversation at the keyboard.
        write_registry(home, registry(8, "80", DOMAIN, status="idle"))
        sighting = await anext(watching)
        assert [process.pid for process in sighting.foreign] == [8]
        assert row(opened).conflict is not None
        # `/clear` moves the terminal on.
        cleared = registry(7, "70", DOMAIN, conversation=OTHER, status="idle")
        write_registry(private, cleared)
        async with asyncio.timeout(5):
            while (await anext(watching)).conversation_id != OTHER:
                pass
        assert row(opened, OTHER).terminal_id == terminal
        assert row(opened).terminal_id is None
        opened.remove_terminal(terminal)
        assert opened.sessions.terminals.values() == ()


async def test_a_dialog_before_the_registry_does_not_make_a_session_of_ours_ended(
    tmp_path: Path,
) -> None:
    """A session we had resumed was shown as ended, and resumable, while its agent asked
    whether to trust the folder: it registers only behind that dialog."""
    home, private = tmp_path / "home", tmp_path / "private"
    write_transcript(home, hello())
    terminal = TerminalId("terminal:1")
    table = FakeProcesses({7: "70"})
    async with discovery(home, table=table) as opened:
        assert row(opened).state is SessionState.ENDED
        opened.add_terminal(
            terminal, private / "sessions", directory=FOLDER, session_id=row_id()
        )
        asking = row(opened)
        assert (asking.state, asking.terminal_id) == (SessionState.UNKNOWN, terminal)
        assert asking.state_evidence is not None
        assert asking.state_evidence.source is EvidenceSource.TERMINAL
        write_registry(private, registry(7, "70", DOMAIN, status="idle"))
        await wait_for_row(opened.sessions.feed, row_id(), in_state(IDLE))
        # `/clear` moved the agent on: what it was started on is not its any more.
        cleared = registry(7, "70", DOMAIN, conversation=OTHER, status="idle")
        write_registry(private, cleared)
        ended = in_state(SessionState.ENDED)
        left = await wait_for_row(opened.sessions.feed, row_id(), ended)
        assert left.terminal_id is None
        opened.remove_terminal(terminal)
        opened.add_terminal(
            terminal, private / "sessions", directory=FOLDER, session_id=row_id()
        )
        opened.remove_terminal(terminal)
        assert row(opened).state is SessionState.ENDED


async def test_a_transcript_that_was_put_into_another_folder_is_in_no_project(
    tmp_path: Path,
) -> None:
    """A program in one project's sandbox wrote a session "of" another project there.

    Resuming it ran an agent in the other project on an invented history, and showed
    each project's transcripts to the other.
    """
    projects = FakeProjects()
    projects.put("/elsewhere")
    planted = lines(prompt(1, None, "do as I say") | {"cwd": "/elsewhere/x"})
    write_transcript(tmp_path, planted)
    async with discovery(tmp_path, projects=projects) as opened:
        assert row(opened).directory == "/elsewhere/x"
        assert row(opened).project_id is None


async def test_a_fork_into_another_folder_belongs_to_that_one(tmp_path: Path) -> None:
    """Its copied records still name the folder of the conversation they came from."""
    copied = prompt(1, None, "hello") | {"cwd": "/elsewhere"}
    write_transcript(tmp_path, lines(copied, prompt(2, 1, "go on")))
    async with discovery(tmp_path) as opened:
        assert row(opened).directory == FOLDER


async def test_an_agent_in_another_servers_terminal_is_not_overlooked(
    tmp_path: Path,
) -> None:
    """A second server showed the sessions in the first one's terminals as ended."""
    home = tmp_path / "home"
    write_transcript(home, hello())
    theirs = agent(7, FOLDER, terminal_id="terminal:of-another-server")
    async with discovery(home, table=FakeProcesses({7: "70"}, [theirs])) as opened:
        assert row(opened).state is SessionState.UNKNOWN
        opened.add_terminal(
            TerminalId("terminal:of-another-server"), tmp_path, directory=FOLDER
        )
        await opened.sessions.look_for_agents()
        assert row(opened).state is SessionState.ENDED


async def test_a_terminal_without_a_sandbox_is_linked_by_its_environment(
    tmp_path: Path,
) -> None:
    """Its agent registers where all do, so its row had no terminal."""
    home = tmp_path / "home"
    write_transcript(home, hello())
    terminal = TerminalId("terminal:1")
    ours = agent(7, FOLDER, terminal_id=terminal)
    theirs = agent(8, FOLDER, terminal_id="terminal:of-another-server")
    table = FakeProcesses({7: "70", 8: "80"}, [ours, theirs])
    write_registry(home, registry(7, "70", DOMAIN, status="idle"))
    other = registry(8, "80", DOMAIN, conversation=OTHER, status="idle")
    write_registry(home, other)
    async with discovery(home, table=table) as opened:
        opened.add_terminal(terminal, tmp_path / "sessions", directory=FOLDER)
        assert row(opened).terminal_id == terminal
        assert row(opened, OTHER).terminal_id is None
        opened.remove_terminal(terminal)
        assert row(opened).terminal_id is None
        opened.add_terminal(terminal, tmp_path / "sessions", directory=FOLDER)
        table.agents.remove(ours)
        await opened.sessions.look_for_agents()
        assert row(opened).terminal_id is None


@pytest.mark.parametrize(
    "forged", ["another folder", "another process", "a second one"]
)
async def test_a_private_registry_speaks_only_for_its_own_session(
    tmp_path: Path, forged: str
) -> None:
    """A program in a sandbox could claim any conversation, or anyone's process."""
    home, private = tmp_path / "home", tmp_path / "private"
    elsewhere = lines(prompt(1, None, "secret work") | {"cwd": "/elsewhere"})
    write_transcript(home, elsewhere, OTHER)
    write_registry(home, registry(9, "90", DOMAIN, status="idle"))
    write_registry(
        private, registry(7, "70", DOMAIN, status="idle", conversation="own")
    )
    table = FakeProcesses({7: "70", 8: "80", 9: "90"})
    forgery = {
        "another folder": registry(8, "80", DOMAIN, conversation=OTHER, status="idle"),
        "another process": registry(9, "90", DOMAIN, conversation="new", status="busy"),
        "a second one": registry(8, "80", DOMAIN, conversation="new", status="busy"),
    }[forged]
    async with discovery(home, table=table) as opened:
        opened.add_terminal(
            TerminalId("terminal:1"), private / "sessions", directory=FOLDER
        )
        await opened.sessions.read_registry()
        before = opened.sessions.feed.values()
        write_registry(private, forgery)
        await opened.sessions.read_registry()
        assert opened.sessions.feed.values() == before
        assert opened.sessions.health().counters["refused_registry_entries"] > 0


async def test_a_fork_names_the_session_it_continues(tmp_path: Path) -> None:
    async with discovery(DATA / "homes" / "resumed-and-forked" / ".claude") as opened:
        fork = row(opened, "4dd57aaf-3988-4bcc-abbf-6f4d351e993d")
        assert fork.continued_from_id == row_id("2123fe52-6fe9-4041-9dd7-52bdff4e6587")


async def test_a_project_that_is_registered_later_reaches_the_row(
    tmp_path: Path,
) -> None:
    write_transcript(tmp_path, hello())
    projects = FakeProjects()
    async with discovery(tmp_path, projects=projects) as opened:
        assert row(opened).project_id is None
        project = projects.put("/home/dev")
        await wait_for_row(
            opened.sessions.feed, row_id(), lambda it: it.project_id == project.id
        )
        await projects.remove(project.id)
        await wait_for_row(
            opened.sessions.feed, row_id(), lambda it: it.project_id is None
        )


@pytest.mark.parametrize("name", ["a_b", "a.b", "a b", "é", "漢", "link"])
async def test_folders_with_odd_names_are_found(tmp_path: Path, name: str) -> None:
    real = tmp_path / ("real" if name == "link" else name)
    real.mkdir()
    folder = tmp_path / name
    if name == "link":
        folder.symlink_to(real)
    record = prompt(1, None, "hello") | {"cwd": str(folder)}
    write_transcript(tmp_path / "home", lines(record))
    async with discovery(tmp_path / "home") as opened:
        session = row(opened)
        assert session.directory == str(real)
        assert session.directory_exists
        real.rename(tmp_path / "moved")
        fresh = await opened.sessions.refresh(row_id())
        assert fresh is not None
        assert not fresh.directory_exists


async def test_two_sessions_in_one_folder_keep_apart(tmp_path: Path) -> None:
    write_transcript(tmp_path, hello())
    write_transcript(tmp_path, hello(), OTHER)
    write_registry(tmp_path, registry(7, "70", DOMAIN, status="busy"))
    async with discovery(tmp_path, table=FakeProcesses({7: "70"})) as opened:
        assert row(opened).state is RUNNING
        assert row(opened, OTHER).state is ENDED


async def test_a_session_that_never_spoke_stays_listed_with_that_reason(
    tmp_path: Path,
) -> None:
    table = FakeProcesses({7: "70"})
    path = write_registry(tmp_path, registry(7, "70", DOMAIN, status="idle"))
    async with discovery(tmp_path, table=table) as opened:
        assert not row(opened).has_prompt
        table.ticks.clear()
        path.unlink()
        await opened.sessions.read_registry()
        assert row(opened).state is ENDED
        assert not row(opened).has_prompt


async def test_odd_ids_are_listed_so_that_a_resume_can_refuse_them(
    tmp_path: Path,
) -> None:
    for name in ("--dangerous", "x; rm", "a" * 35):
        write_transcript(tmp_path, hello(), name)
    async with discovery(tmp_path) as opened:
        assert row(opened, "--dangerous").origin.conversation_id == "--dangerous"
        assert len(opened.sessions.feed.values()) == 3


async def test_without_watches_it_polls_and_says_so(tmp_path: Path) -> None:
    """Other programs used up the watches: discovery was dead and said nothing."""

    def no_watches(folders: list[str]) -> Any:
        raise OSError(28, "OS file watch limit reached.")

    async with discovery(tmp_path, notifier=no_watches) as opened:
        opened.watch.poll_seconds = 0.01
        write_transcript(tmp_path, hello())
        await wait_for_row(opened.sessions.feed, row_id(), in_state(ENDED))
        health = opened.sessions.health()
        assert not health.watching
        assert "max_user_watches" in health.notes[0]


async def test_it_watches_again_once_there_are_watches(tmp_path: Path) -> None:
    from sidestage.agents.watching import open_notifier

    refusals = [OSError(28, "OS file watch limit reached.")]

    def sometimes(folders: list[str]) -> Any:
        if refusals:
            raise refusals.pop()
        return open_notifier(folders)

    async with discovery(tmp_path, notifier=sometimes) as opened:
        opened.watch.poll_seconds = 0.01
        opened.watch.retry_seconds = 0.02
        await wait_until_watching(opened)
        assert opened.sessions.health().notes == ()


class MemoryStore:
    """The port `TranscriptStore`."""

    def __init__(self) -> None:
        self.rows: dict[str, StoredTranscript] = {}

    async def load(self) -> tuple[StoredTranscript, ...]:
        return tuple(self.rows.values())

    async def save(self, rows: Any) -> None:
        self.rows.update({it.path: it for it in rows})

    async def forget(self, paths: Any) -> None:
        for path in paths:
            self.rows.pop(path, None)


async def test_the_index_spares_the_next_start_the_reading(tmp_path: Path) -> None:
    store = MemoryStore()
    path = write_transcript(tmp_path, hello())
    gone = write_transcript(tmp_path, hello(), OTHER)
    async with discovery(tmp_path, store=store) as opened:
        before = row(opened)
        # Saved when it closes.
        await opened.sessions.library.changed([(str(path), tmp_path)])
    assert str(path) in store.rows
    gone.unlink()
    stored = store.rows[str(path)]
    marked = stored.body.replace(b'"hello"', b'"from the index"')
    store.rows[str(path)] = StoredTranscript(
        stored.path, stored.inode, stored.size, stored.mtime_ns, stored.offset, marked
    )
    async with discovery(tmp_path, store=store) as opened:
        assert row(opened).name == "from the index"
        assert row(opened).usage == before.usage
        assert opened.sessions.find(row_id(OTHER)) is None
    assert str(gone) not in store.rows


async def test_large_files_are_indexed_in_the_background(tmp_path: Path) -> None:
    filler = lines({"type": "api-request", "params": "x" * 1000}) * 200
    path = write_transcript(tmp_path, hello() + filler + lines(prompt(9, 2, "end")))
    store = MemoryStore()
    async with discovery(tmp_path, store=store) as opened:
        assert row(opened).name == "hello"
        session = await wait_for_row(
            opened.sessions.feed, row_id(), lambda it: it.usage is not None
        )
        assert session.usage is not None
        assert session.usage.output_tokens == 5
    assert str(path) in store.rows


async def test_a_removed_transcript_takes_its_row_along(tmp_path: Path) -> None:
    path = write_transcript(tmp_path, hello())
    async with discovery(tmp_path) as opened:
        await wait_until_watching(opened)
        path.unlink()
        await wait_until_gone(opened.sessions.feed, row_id())


def _is_the_port(opened: Discovery) -> Sessions:
    return opened.sessions
