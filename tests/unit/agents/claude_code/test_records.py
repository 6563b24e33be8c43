import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidestage.agents.claude_code.entries import read_entries
from sidestage.agents.claude_code.folding import Fold, dump_fold, fold_line
from sidestage.agents.claude_code.lines import LineSplitter
from sidestage.agents.claude_code.prompts import find_prompt, is_interruption
from sidestage.agents.claude_code.records import parse_record, parse_time
from tests.fakes.agent_records import CONVERSATION, line, prompt, tree_record

HOMES = Path(__file__).parents[1] / "data" / "claude" / "homes"
REAL_LINES = [
    record
    for path in sorted(HOMES.glob("*/.claude/projects/*/*.jsonl"))
    for record in path.read_bytes().split(b"\n")[:40]
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "uuid", "message", "content", "id", "text", "usage", "origin"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


def read_everything(data: bytes) -> None:
    """Put bytes through every reader of lines."""
    fold = Fold()
    for told in LineSplitter().feed(data):
        fold_line(fold, told, CONVERSATION)
        read_entries(told, "0" * 32)
    dump_fold(fold)


def test_a_lone_surrogate_costs_one_character() -> None:
    record = parse_record(
        b'{"type":"user","message":{"content":"a\\ud800b\\ud83d\\ude00"}}'
    )
    assert record is not None
    assert record.blocks[0]["text"] == "a\ufffdb\U0001f600"


def test_bytes_that_are_no_utf8_cost_those_bytes() -> None:
    record = parse_record(b'{"type":"user","message":{"content":"a\xffb"}}')
    assert record is not None
    assert record.blocks[0]["text"] == "a\ufffdb"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b'"text"',
        b"{}",
        b'{"type":7}',
        b'{"type":"user"',
        b'{"type":"user"}}',
        b"[" * 100_000,
        b'{"type":' * 50_000,
        b'{"type":"x","n":' + b"9" * 10_000 + b"}x",
    ],
)
def test_what_is_no_record_is_none(data: bytes) -> None:
    assert parse_record(data) is None


@given(st.binary(max_size=300))
def test_no_bytes_upset_the_readers(data: bytes) -> None:
    read_everything(data + b"\n")


@given(json_values, st.sampled_from(["user", "assistant", "system", "custom-title"]))
def test_no_json_upsets_the_readers(value: object, kind: str) -> None:
    read_everything(line({"type": kind, "uuid": "u", "message": value}))
    read_everything(line({"type": kind, "message": {"content": value, "id": value}}))
    read_everything(json.dumps(value).encode() + b"\n")


@given(st.sampled_from(REAL_LINES), st.integers(0, 2000), st.integers(0, 2000))
def test_cut_doubled_and_spliced_real_lines_upset_nobody(
    data: bytes, cut: int, other: int
) -> None:
    read_everything(data[:cut] + b"\n" + data[other:] + b"\n")
    read_everything(data + data + b"\n")


@given(st.binary(max_size=100))
def test_a_bad_line_costs_only_itself(garbage: bytes) -> None:
    garbage = garbage.replace(b"\n", b"")
    good, fold = Fold(), Fold()
    block = b"\n".join(REAL_LINES[:60])
    for told in LineSplitter().feed(block + b"\n"):
        fold_line(good, told, CONVERSATION)
    spoiled = b"\n".join([*REAL_LINES[:30], b"}" + garbage, *REAL_LINES[30:60]])
    for told in LineSplitter().feed(spoiled + b"\n"):
        fold_line(fold, told, CONVERSATION)
    assert fold.bad_lines == good.bad_lines + 1
    assert fold.last_text == good.last_text
    assert fold.usage == good.usage


def test_a_call_nested_too_deeply_is_still_a_call() -> None:
    deep = b"[" * 1000 + b"]" * 1000
    read_everything(
        b'{"type":"assistant","uuid":"u","message":{"model":"m","content":'
        b'[{"type":"tool_use","id":"c","name":"n","input":' + deep + b"}]}}\n"
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-11-30T18:58:36.901Z", "2026-11-30T18:58:36.901000+00:00"),
        ("2026-11-30T20:58:36+02:00", "2026-11-30T18:58:36+00:00"),
        ("2026-11-30T18:58:36", "2026-11-30T18:58:36+00:00"),
        ("yesterday", None),
        ("9999-12-31T23:59:59-14:00", None),
        (None, None),
    ],
)
def test_times_are_read_as_utc(text: str | None, wanted: str | None) -> None:
    moment = parse_time(text)
    assert (moment.isoformat() if moment else None) == wanted


def test_an_interrupt_is_told_by_structure_not_by_its_words() -> None:
    """The words of an interrupt, typed as a prompt, ended a turn that still ran."""
    words = "[Request interrupted by user]"
    block = {"role": "user", "content": [{"type": "text", "text": words}]}
    interrupt = parse_record(line(tree_record("user", 1, None, message=block)))
    typed = parse_record(line(prompt(2, None, words)))
    typed_with_image = parse_record(
        line(tree_record("user", 3, None, message=block, origin={"kind": "human"}))
    )
    assert interrupt is not None
    assert typed is not None
    assert typed_with_image is not None
    assert is_interruption(interrupt)
    assert not is_interruption(typed)
    assert not is_interruption(typed_with_image)
    assert find_prompt(typed) == words
    assert find_prompt(interrupt) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain words", "plain words"),
        ("<system-reminder>be nice</system-reminder>\nfix it", "fix it"),
        (
            "<ide_opened_file>a.py</ide_opened_file><system-reminder>x</system-reminder>go",
            "go",
        ),
        ("<command-name>/compact</command-name>\n<command-args></command-args>", None),
        ("<task-notification>\n<task-id>a</task-id>", None),
        ("<local-command-stdout>ok</local-command-stdout>", None),
        ("<b>html of mine</b>", "<b>html of mine</b>"),
    ],
)
def test_injected_tags_are_not_the_persons_words(text: str, wanted: str | None) -> None:
    record = parse_record(line(prompt(1, None, text)))
    assert record is not None
    assert find_prompt(record) == wanted
