import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from sidestage.agents.claude_code import lines as lines_module
from sidestage.agents.claude_code import transcripts as transcripts_module
from sidestage.agents.claude_code.discovery import Discovery, open_discovery
from sidestage.agents.claude_code.transcripts import ClaudeTranscripts
from sidestage.errors import BadUserInput, OutsideSessionNotFound
from sidestage.ids import HostId, SessionId, session_id
from sidestage.sessions.transcript import (
    EntryKind,
    TranscriptEntry,
    TranscriptPage,
    Transcripts,
)
from tests.fakes.agent_records import (
    CONVERSATION,
    answer,
    call_block,
    line,
    lines,
    prompt,
    result,
    text_block,
    write_transcript,
)
from tests.fakes.processes import FakeProcesses
from tests.fakes.projects import FakeProjects

HOMES = Path(__file__).parents[1] / "data" / "claude" / "homes"
SECRET = b"s" * 32
PROMPT, MESSAGE = EntryKind.PROMPT, EntryKind.MESSAGE
CALL, RESULT = EntryKind.TOOL_CALL, EntryKind.TOOL_RESULT


def row_id(conversation: str = CONVERSATION) -> SessionId:
    return session_id("claude-code", conversation, machine_secret=SECRET)


@asynccontextmanager
async def discovery(home: Path) -> AsyncIterator[Discovery]:
    async with open_discovery(
        config_dirs=[home],
        machine_secret=SECRET,
        host_id=HostId("host:test"),
        projects=FakeProjects(),
        table=FakeProcesses(),
    ) as opened:
        yield opened


async def recorded(scenario: str, start: str) -> TranscriptPage:
    """Return the last page of a recorded transcript."""
    home = HOMES / scenario / ".claude"
    (path,) = (home / "projects").glob(f"*/{start}*.jsonl")
    async with discovery(home) as opened:
        return await opened.transcripts.page(row_id(path.stem), last=200)


def texts(page: TranscriptPage, kind: EntryKind) -> list[str]:
    return [entry.text for entry in page.entries if entry.kind is kind]


async def test_a_recorded_day_reads_as_it_happened() -> None:
    page = await recorded("new-session", "2123")
    assert texts(page, PROMPT) == [
        "hello, what is this project?",
        "stub:question",
        "stub:bash(touch made.txt)",
        "stub:write(note.md)",
        "stub:askuser",
        "stub:slow(3)",
    ]
    assert texts(page, EntryKind.INTERRUPTION) == [
        "[Request interrupted by user for tool use]"
    ]
    calls = [entry.tool_call for entry in page.entries if entry.tool_call]
    assert [call.name for call in calls] == ["Bash", "Write", "AskUserQuestion"]
    results = [entry.tool_result for entry in page.entries if entry.tool_result]
    assert [it.call_id for it in results] == [call.id for call in calls]
    assert [it.denied for it in results] == [False, True, False]
    assert page.skipped_lines == 0
    assert len(page.branches) == 1
    assert page.total == len(page.entries)


async def test_a_file_of_two_writers_shows_each_branch_whole() -> None:
    home = HOMES / "concurrent-resume" / ".claude"
    id_ = row_id("8419ead8-d695-437d-9b6a-673a9f84f964")
    async with discovery(home) as opened:
        active = await opened.transcripts.page(id_, last=200)
        assert texts(active, PROMPT)[-4:] == [
            "from first",
            "first again",
            "headless into live",
            "from other cwd",
        ]
        assert "from second" not in texts(active, PROMPT)
        assert [branch.is_active for branch in active.branches] == [True, False]
        assert active.branch_id == active.branches[0].id
        other = await opened.transcripts.page(
            id_, last=200, branch=active.branches[1].id
        )
        assert texts(other, PROMPT)[-1] == "from second"
        assert "first again" not in texts(other, PROMPT)
        assert active.branches[1].preview == "Stub answer to: from second"
        # Each has its own result of the call that was interrupted.
        for page in (active, other):
            assert texts(page, PROMPT)[:3] == [
                "hello one",
                "stub:slow(20)",
                "stub:bash(touch k.txt)",
            ]
            assert sum(entry.kind is RESULT for entry in page.entries) == 1


@pytest.mark.parametrize(
    ("scenario", "start"),
    [
        ("subagent-compact-branch-clear", "6510"),
        ("subagent-compact-branch-clear", "ae1b"),
        ("auto-compaction", "c8d9"),
    ],
)
async def test_a_compaction_does_not_cut_the_history(scenario: str, start: str) -> None:
    page = await recorded(scenario, start)
    kinds = [entry.kind for entry in page.entries]
    assert kinds.count(EntryKind.COMPACTION) == 1
    before = page.entries[: kinds.index(EntryKind.COMPACTION)]
    assert any(entry.kind is PROMPT for entry in before)
    assert len(page.branches) == 1


async def test_parallel_calls_are_all_there() -> None:
    page = await recorded("subagent-compact-branch-clear", "6510")
    calls = [entry.tool_call.id for entry in page.entries if entry.tool_call]
    results = [it.tool_result.call_id for it in page.entries if it.tool_result]
    assert len(calls) == 3
    assert sorted(results) == sorted(calls)
    assert "stub:bash(touch sub.txt)" not in texts(page, PROMPT)
    assert texts(page, EntryKind.NOTICE)[0].startswith('Agent "Look around"')
    assert any(text.startswith("/compact") for text in texts(page, EntryKind.COMMAND))
    assert not any("\x1b" in entry.text for entry in page.entries)


async def test_errors_plans_and_aborts_have_their_kinds() -> None:
    page = await recorded("plan-questions-queue", "25c2")
    assert "API Error: 400 stub error 400" in texts(page, EntryKind.NOTICE)
    assert texts(page, EntryKind.INTERRUPTION) == ["[Request interrupted by user]"]
    assert "queued message stub:text(queued answered)" in texts(page, PROMPT)
    names = {entry.tool_call.name for entry in page.entries if entry.tool_call}
    assert {"ExitPlanMode", "AskUserQuestion", "Write"} <= names


def conversation(turns: int) -> bytes:
    records = []
    for turn in range(turns):
        number = 2 * turn + 1
        records.append(prompt(number, number - 1 or None, f"question {turn}"))
        records.append(answer(number + 1, number, text_block(f"answer {turn}")))
    return lines(*records)


async def test_pages_lead_from_one_end_to_the_other(tmp_path: Path) -> None:
    write_transcript(tmp_path, conversation(60))
    async with discovery(tmp_path) as opened:
        forward: list[TranscriptEntry] = []
        cursor, more = None, True
        while more:
            page = await opened.transcripts.page(row_id(), first=7, after=cursor)
            forward += page.entries
            assert page.has_previous == (cursor is not None)
            cursor, more = page.entries[-1].order, page.has_next
        backward: list[TranscriptEntry] = []
        cursor, more = None, True
        while more:
            page = await opened.transcripts.page(row_id(), last=7, before=cursor)
            backward = [*page.entries, *backward]
            cursor, more = page.entries[0].order, page.has_previous
        assert len(forward) == 120
        assert forward == backward
        assert [it.order for it in forward] == sorted(it.order for it in forward)
        assert len({it.id for it in forward}) == 120
        middle = await opened.transcripts.page(
            row_id(), first=3, after=forward[9].order, before=forward[11].order
        )
        assert middle.entries == (forward[10],)
        assert (middle.has_previous, middle.has_next) == (True, True)
        nothing = await opened.transcripts.page(row_id(), first=0)
        assert nothing.entries == ()
        assert nothing.total == 120


@pytest.mark.parametrize(
    "arguments",
    [
        {"after": "zzzzzzzzzzzz.0000"},
        {"before": "000000000001.0000"},
        {"after": "000000000000.0001"},
        {"after": ""},
        {"first": -1},
        {"last": 201},
        {"branch": "branch:none"},
    ],
)
async def test_a_cursor_or_size_that_makes_no_sense_is_refused(
    tmp_path: Path, arguments: dict[str, str]
) -> None:
    write_transcript(tmp_path, conversation(2))
    async with discovery(tmp_path) as opened:
        with pytest.raises(BadUserInput):
            await opened.transcripts.page(row_id(), **arguments)  # type: ignore[arg-type]  # one test for all of them


async def test_a_session_that_is_not_listed_has_no_transcript(tmp_path: Path) -> None:
    async with discovery(tmp_path) as opened:
        with pytest.raises(OutsideSessionNotFound):
            await opened.transcripts.page(row_id())
        with pytest.raises(OutsideSessionNotFound):
            await anext(opened.transcripts.follow(row_id(), after=None))


async def test_bad_lines_are_marked_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line of 15 MB, or one half line, cut the history there."""
    monkeypatch.setattr(
        lines_module.LineSplitter.__init__, "__kwdefaults__", {"limit_bytes": 5000}
    )
    monkeypatch.setattr("sidestage.agents.claude_code.outline.LINE_LIMIT_BYTES", 5000)
    data = (
        line(prompt(1, None, "before"))
        + line(prompt(2, 1, "x" * 6000))
        + b'{"type":"user","mess\n'
        + line({"type": "hologram", "value": 1})
        + line(prompt(3, 1, "af" + chr(0xD800) + "ter"))
        + b'{"type":"torn'
    )
    write_transcript(tmp_path, data)
    async with discovery(tmp_path) as opened:
        page = await opened.transcripts.page(row_id())
        assert [
            (entry.kind, entry.record_type or entry.text) for entry in page.entries
        ] == [
            (PROMPT, "before"),
            (EntryKind.OPAQUE, "over-long line"),
            (EntryKind.OPAQUE, "unreadable line"),
            (EntryKind.OPAQUE, "hologram"),
            (PROMPT, "af\ufffdter"),
        ]
        assert page.skipped_lines == 2


async def test_long_texts_are_cut_and_say_so(tmp_path: Path) -> None:
    write_transcript(tmp_path, lines(prompt(1, None, "y" * 100_000)))
    async with discovery(tmp_path) as opened:
        (entry,) = (await opened.transcripts.page(row_id())).entries
        assert entry.truncated
        assert len(entry.text) == 65_536


async def test_a_calls_input_is_told_whole(tmp_path: Path) -> None:
    block = call_block("c", "Bash", command="echo \u202e" + "z" * 70_000)
    write_transcript(tmp_path, lines(answer(1, None, block), result(2, 1, "c")))
    async with discovery(tmp_path) as opened:
        call, told = (await opened.transcripts.page(row_id())).entries
        assert call.tool_call is not None
        assert call.tool_call.input_json.count("z") == 70_000
        assert "\u202e" not in call.tool_call.input_json
        assert (told.kind, told.text) == (RESULT, "done")


async def follow_some(opened: Discovery, path: Path) -> None:
    """Follow a transcript while it grows, switches its branch and is replaced."""
    async with aclosing(
        opened.transcripts.follow(row_id(), after=None, backlog=3)
    ) as it:
        update = await anext(it)
        assert not update.reset
        assert [entry.text for entry in update.entries] == [
            "answer 3",
            "question 4",
            "answer 4",
        ]
        with path.open("ab") as file:
            file.write(line(prompt(11, 10, "more")))
        update = await anext(it)
        assert not update.reset
        assert [entry.text for entry in update.entries] == ["more"]
        # Somebody goes back and asks something else.
        with path.open("ab") as file:
            file.write(line(prompt(12, 2, "another way")))
        update = await anext(it)
        assert update.reset
        assert [entry.text for entry in update.entries] == [
            "question 0",
            "answer 0",
            "another way",
        ]
        path.write_bytes(conversation(1))
        update = await anext(it)
        assert update.reset
        assert len(update.entries) == 2


async def test_a_follower_gets_what_comes_and_is_told_of_a_new_branch(
    tmp_path: Path,
) -> None:
    path = write_transcript(tmp_path, conversation(5))
    async with discovery(tmp_path) as opened, asyncio.timeout(10):
        await follow_some(opened, path)


async def test_a_follower_resumes_after_what_it_has(tmp_path: Path) -> None:
    write_transcript(tmp_path, conversation(200))
    async with discovery(tmp_path) as opened, asyncio.timeout(10):
        page = await opened.transcripts.page(row_id(), first=5)
        follower = opened.transcripts.follow(row_id(), after=page.entries[-1].order)
        async with aclosing(follower) as it:
            first, second = await anext(it), await anext(it)
        assert not first.reset
        assert len(first.entries) + len(second.entries) == 395
        assert first.entries[0].text == "answer 2"
        lost = opened.transcripts.follow(row_id(), after="000000000fff.0000")
        async with aclosing(lost) as it:
            update = await anext(it)
        assert update.reset
        assert len(update.entries) == 50


async def test_memory_is_bounded_by_forgetting_the_oldest_outlines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts_module, "CACHE_LIMIT_BYTES", 100_000)
    names = [f"00000000-0000-4000-8000-{number:012}" for number in range(8)]
    for name in names:
        write_transcript(tmp_path, conversation(30), name)
    async with discovery(tmp_path) as opened:
        for name in names:
            await opened.transcripts.page(row_id(name))
        kept = opened.transcripts._slots
        assert 0 < len(kept) < 4
        page = await opened.transcripts.page(row_id(names[0]))
        assert page.total == 60


def _is_the_port(transcripts: ClaudeTranscripts) -> Transcripts:
    return transcripts
