from pathlib import Path

import pytest

from sidestage.agents.claude_code.folding import (
    Fold,
    dump_fold,
    fold_line,
    load_fold,
)
from sidestage.agents.claude_code.lines import LineSplitter
from sidestage.agents.claude_code.scanning import (
    END_BYTES,
    fold_ends,
    fold_further,
    fold_whole,
    list_transcripts,
    stamp_file,
)
from sidestage.sessions.model import TokenUsage
from tests.fakes.agent_records import (
    CONVERSATION,
    answer,
    call_block,
    line,
    lines,
    prompt,
    result,
    text_block,
    tree_record,
    write_transcript,
)

HOMES = Path(__file__).parents[1] / "data" / "claude" / "homes"


def fold(data: bytes, conversation: str = CONVERSATION) -> Fold:
    values = Fold()
    for told in LineSplitter().feed(data):
        fold_line(values, told, conversation)
    return values


def recorded(scenario: str, start: str) -> Fold:
    """Fold the recorded transcript whose id starts so."""
    (path,) = (HOMES / scenario / ".claude" / "projects").glob(f"*/{start}*.jsonl")
    return fold(path.read_bytes(), path.stem)


@pytest.mark.parametrize(
    ("scenario", "start", "values"),
    [
        (
            "new-session",
            "2123",
            {
                "directory": "/home/dev/project",
                "first_prompt": "hello, what is this project?",
                "model": "claude-opus-5-5",
                "version": "2.1.328",
                "git_branch": "main",
                "permission_mode": "default",
                "last_role": "ASSISTANT",
                "person_title": None,
                "open_calls": [],
            },
        ),
        ("resumed-and-forked", "2123", {"person_title": "My renamed session"}),
        ("ai-title", "7032", {"cli_title": "Stub title ce7daa", "person_title": None}),
        (
            "killed-mid-stream",
            "76a4",
            {"last_role": "USER", "last_text": "stub:slow(20)"},
        ),
        (
            "plan-questions-queue",
            "25c2",
            {"first_prompt": "stub:plan", "last_role": "ASSISTANT"},
        ),
        (
            "subagent-compact-branch-clear",
            "b4a1",
            {"first_prompt": "after clear", "last_text": "Stub answer to: after clear"},
        ),
        (
            "concurrent-resume",
            "8419",
            {"directory": "/home/dev/project", "current_directory": "/home/dev/other"},
        ),
        ("cwd-encodings", "52db", {"directory": "/home/dev/ünï/日本"}),
        ("cwd-encodings", "3c59", {"directory": "/home/dev/sp ace/x"}),
        ("agent-sdk", "f5b2", {"first_prompt": "stub:bash(touch sdk.txt)"}),
    ],
)
def test_recorded_transcripts_fold_to_what_happened(
    scenario: str, start: str, values: dict[str, object]
) -> None:
    folded = recorded(scenario, start)
    assert {name: getattr(folded, name) for name in values} == values
    assert folded.has_prompt
    assert folded.skipped_lines == 0
    assert folded.unknown_lines == 0


@pytest.mark.parametrize(
    ("scenario", "start", "parent"),
    [
        ("resumed-and-forked", "4dd5", "2123fe52-6fe9-4041-9dd7-52bdff4e6587"),
        ("agent-sdk", "08cc", "f5b20398-e878-4175-af08-e377bc288416"),
        ("concurrent-resume", "3047", "8419ead8-d695-437d-9b6a-673a9f84f964"),
        ("concurrent-resume", "1697", "8419ead8-d695-437d-9b6a-673a9f84f964"),
        (
            "subagent-compact-branch-clear",
            "ae1b",
            "65103bdd-eaeb-4fe6-ad0b-e3d6719acce9",
        ),
        ("subagent-compact-branch-clear", "b4a1", None),  # /clear is no fork
        ("subagent-compact-branch-clear", "6510", None),
    ],
)
def test_a_fork_names_its_parent(scenario: str, start: str, parent: str | None) -> None:
    assert recorded(scenario, start).parent_conversation == parent


def test_a_call_without_a_result_is_open() -> None:
    folded = recorded("background-job", "76a4")
    assert [call[1] for call in folded.open_calls] == ["Bash"]


def test_the_next_prompt_closes_what_a_killed_process_left_open() -> None:
    killed = lines(
        prompt(1, None, "go"), answer(2, 1, call_block("c1")), prompt(3, 2, "again")
    )
    assert fold(killed).open_calls == []


def test_parallel_calls_stay_open_until_each_has_its_result() -> None:
    data = lines(
        prompt(1, None, "go"),
        answer(2, 1, call_block("c1"), message="m"),
        answer(3, 2, call_block("c2", "Write"), message="m"),
    )
    assert [call[0] for call in fold(data).open_calls] == ["c1", "c2"]
    data += line(result(4, 2, "c1"))
    assert [call[0] for call in fold(data).open_calls] == ["c2"]


def test_an_answer_in_many_blocks_is_counted_once() -> None:
    data = lines(
        prompt(1, None, "go"),
        answer(2, 1, text_block("a"), message="m", tokens=2),
        answer(3, 2, text_block("b"), message="m", tokens=6),
        answer(4, 3, text_block("b"), message="m", tokens=7),
        answer(5, 4, text_block("c"), message="n", tokens=3),
    )
    folded = fold(data)
    assert folded.token_usage == TokenUsage(input_tokens=20, output_tokens=10)
    assert list(folded.hours.values()) == [[20, 10, 0, 0, 2]]


def test_answers_of_two_processes_that_interleave_are_counted_once() -> None:
    data = lines(
        answer(1, None, text_block("a"), message="m"),
        answer(2, None, text_block("b"), message="n"),
        answer(3, 1, text_block("c"), message="m"),
    )
    assert fold(data).token_usage.output_tokens == 10


def test_what_a_fork_copied_was_paid_by_its_parent() -> None:
    parent = "11111111-2222-4333-8444-555555555555"
    data = lines(
        answer(1, None, text_block("a"), requestSessionId=parent, tokens=100),
        answer(2, 1, text_block("b"), tokens=4),
    )
    folded = fold(data)
    assert folded.token_usage.output_tokens == 4
    assert folded.parent_conversation == parent


def test_a_sub_agents_records_say_nothing_about_the_session() -> None:
    data = lines(prompt(1, None, "mine")) + line(
        prompt(2, 1, "the agent's") | {"isSidechain": True, "cwd": "/elsewhere"}
    )
    folded = fold(data)
    assert folded.first_prompt == "mine"
    assert folded.current_directory == "/home/dev/project"
    assert not folded.is_sidechain
    only = fold(line(prompt(2, None, "the agent's") | {"isSidechain": True}))
    assert only.is_sidechain


def test_bad_lines_unknown_types_and_controls_are_counted_and_cleaned() -> None:
    data = (
        line(prompt(1, None, "red \x1b[31malert\u202e"))
        + b'{"type":"user","mess\n\xff\xfe\n'
        + line({"type": "hologram"})
        + line(tree_record("system", 2, 1, subtype="new"))
    )
    folded = fold(data)
    assert folded.first_prompt == "red \ufffd[31malert\ufffd"
    assert folded.bad_lines == 2
    assert folded.unknown_lines == 1


def test_names_and_previews_are_bounded() -> None:
    folded = fold(line(prompt(1, None, "word " * 100_000)))
    assert folded.first_prompt is not None
    assert len(folded.first_prompt) <= 80
    assert folded.last_text is not None
    assert len(folded.last_text) <= 500


def test_a_stored_fold_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = lines(prompt(1, None, "one"), answer(2, 1, text_block("a"), message="m"))
    path = write_transcript(tmp_path, first + b'{"type":"torn')
    stamp = stamp_file(str(path))
    assert stamp is not None
    before = load_fold(dump_fold(fold_whole(stamp)))
    assert before is not None
    assert before.offset == len(first)
    more = lines(answer(3, 2, text_block("b"), message="m"), prompt(4, 3, "two"))
    path.write_bytes(first + more)
    stamp = stamp_file(str(path))
    assert stamp is not None
    after = fold_further(stamp, before)
    assert after == fold_whole(stamp)
    assert after.token_usage.output_tokens == 5


@pytest.mark.parametrize("replaced_by", ["shorter", "other of the same length"])
def test_a_file_that_was_replaced_is_read_anew(
    tmp_path: Path, replaced_by: str
) -> None:
    path = write_transcript(tmp_path, lines(prompt(1, None, "the old one")))
    stamp = stamp_file(str(path))
    assert stamp is not None
    before = fold_whole(stamp)
    new = "new" if replaced_by == "shorter" else "the new one"
    path.write_bytes(lines(prompt(2, None, new)))
    stamp = stamp_file(str(path))
    assert stamp is not None
    after = fold_further(stamp, before)
    assert after.first_prompt == new
    assert after == fold_whole(stamp)


def test_both_ends_of_a_large_file_tell_its_first_and_last_words(
    tmp_path: Path,
) -> None:
    filler = line({"type": "api-request", "params": "x" * 1000}) * 200
    data = (
        lines(prompt(1, None, "the first"), {"type": "ai-title", "aiTitle": "Early"})
        + filler
        + lines(
            {"type": "custom-title", "customTitle": "Mine"},
            answer(3, 1, text_block("the last"), call_block("c")),
        )
    )
    assert len(data) > 2 * END_BYTES
    stamp = stamp_file(str(write_transcript(tmp_path, data)))
    assert stamp is not None
    ends = fold_ends(stamp)
    assert not ends.complete
    assert ends.first_prompt == "the first"
    assert ends.last_text == "the last"
    assert (ends.person_title, ends.cli_title) == ("Mine", "Early")
    assert [call[0] for call in ends.open_calls] == ["c"]
    assert fold_further(stamp, ends) == fold_whole(stamp)


def test_a_row_of_another_version_is_not_trusted() -> None:
    assert load_fold(b'{"format":0}') is None
    assert load_fold(b'{"no such field":1}') is None
    assert load_fold(b"torn") is None
    assert load_fold(b"[1]") is None


def test_sub_agents_and_other_files_are_no_transcripts(tmp_path: Path) -> None:
    path = write_transcript(tmp_path, b"")
    deep = path.parent / CONVERSATION / "subagents" / "agent-a.jsonl"
    deep.parent.mkdir(parents=True)
    deep.write_bytes(b"")
    (path.parent / "agent-b.jsonl").write_bytes(b"")
    (path.parent / "memory").mkdir()
    (path.parent / "folder.jsonl").mkdir()
    found = list_transcripts(tmp_path / "projects")
    assert [stamp.path for stamp in found] == [str(path)]
    assert list_transcripts(tmp_path / "nowhere") == []
