"""Questions about a screen: their answers fit a frame, and search finds what stands."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sidestage.terminals.screens import ScreenMatch, ScreenMatches, StyledRun
from terminal_host.host.screen_queries import (
    ANSWER_LIMIT_BYTES,
    MATCHED_LINE_LIMIT_CHARACTERS,
    bound_lines,
    bound_text,
    find_matches,
)
from terminal_host.screen_messages import (
    decode_line,
    decode_matches,
    encode_line,
    encode_matches,
)
from terminal_host.wire import FRAME_LIMIT_BYTES, FrameInvalid, encode_frame


def test_a_text_too_large_for_an_answer_keeps_its_latest_lines() -> None:
    """Such an answer could not be sent, and its connection never answered again."""
    text = "\n".join(f"{number} " + "漢" * 250 for number in range(1000))
    assert len(json.dumps(text)) > FRAME_LIMIT_BYTES
    bounded = bound_text(text)
    assert text.endswith(bounded)
    assert bounded.split("\n")[-1].startswith("999 ")
    encode_frame({"id": 1, "ok": {"text": bounded}})
    assert bound_text("short\ntext") == "short\ntext"
    assert bound_text("x" * ANSWER_LIMIT_BYTES) == ""


def test_lines_too_large_for_an_answer_keep_the_latest() -> None:
    cell = StyledRun(text="漢", foreground="#102030", background="200", bold=True)
    lines = ((StyledRun(text="old"),), *(((cell,) * 250,) * 100))
    bounded = bound_lines(lines)
    assert 0 < len(bounded) < len(lines)
    encode_frame({"id": 1, "ok": {"lines": [encode_line(line) for line in bounded]}})
    assert bound_lines(lines[:2]) == lines[:2]


def test_matches_are_found_latest_first_in_either_case() -> None:
    text = "Error: one\nfine\n  an error, an ERROR\nlast"
    found = find_matches(text, "error", 10)
    assert [(m.lines_from_end, m.column) for m in found.matches] == [
        (2, 5),
        (2, 15),
        (4, 0),
    ]
    assert found.matches[0].line == "  an error, an ERROR"
    assert not found.more


def test_more_matches_than_asked_for_are_told() -> None:
    found = find_matches("a a a", "a", 2)
    assert len(found.matches) == 2
    assert found.more
    assert not find_matches("a a", "a", 2).more
    assert find_matches("a", "a", 0).more


@pytest.mark.parametrize("wanted", [".*", "(a+)+$", "[", "\\", "x\ny"])
def test_a_search_takes_its_text_literally(wanted: str) -> None:
    assert find_matches("a" * 200 + "!", wanted, 5).matches == ()


@given(some.integers(0, 3000), some.integers(0, 3000))
def test_a_long_line_is_cut_around_the_match(before: int, after: int) -> None:
    [match] = find_matches("." * before + "here" + "." * after, "here", 5).matches
    assert match.line[match.column :].startswith("here")
    assert len(match.line) <= MATCHED_LINE_LIMIT_CHARACTERS


def test_lines_and_matches_survive_the_wire() -> None:
    line = (
        StyledRun(text="a", foreground="1", underline=True, italic=True),
        StyledRun(text="b", background="#ffffff", inverse=True, bold=True),
    )
    assert decode_line(json.loads(json.dumps(encode_line(line)))) == line
    found = ScreenMatches(
        matches=(ScreenMatch(lines_from_end=3, column=4, line="line"),), more=True
    )
    assert decode_matches(json.loads(json.dumps(encode_matches(found)))) == found


@pytest.mark.parametrize("value", [None, {}, [1], [{}], [{"text": 1, "styles": []}]])
def test_what_is_no_line_is_refused(value: object) -> None:
    with pytest.raises(FrameInvalid):
        decode_line(value)
    with pytest.raises(FrameInvalid):
        decode_matches({"matches": value})
