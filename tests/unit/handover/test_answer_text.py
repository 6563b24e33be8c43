import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestage.errors import AnswerStartsACommand, InvalidInput
from sidestage.handover.answer_text import EMPTY, checked_answer, seed_text
from tests.fakes.envelopes import EXAMPLES


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\x1b\x00", "\ud800"])
def test_nothing_is_no_answer(text: str) -> None:
    with pytest.raises(InvalidInput) as error:
        checked_answer(text)
    assert str(error.value) == EMPTY


@pytest.mark.parametrize(
    "text",
    ["/", "/cost", " /cost", "\n\n/cost", "\x1b/cost", "exit", " QUIT ", ":q", ":wq!"],
)
def test_what_the_agents_program_would_obey_is_refused(text: str) -> None:
    with pytest.raises(AnswerStartsACommand):
        checked_answer(text)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("!ls", " !ls"),
        ("  !ls", " !ls"),
        ("\x1b!ls", " !ls"),
        ("no!", "no!"),
        ("exit now", "exit now"),
        ("a/b", "a/b"),
        ("e\u0301", "\u00e9"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\tb", "a\tb"),
        ("\x1b[201~/x", "[201~/x"),
        ("a\x7f\x9bb", "ab"),
        ("x" * 8_000, "x" * 8_000),
    ],
)
def test_everything_else_is_typed_as_it_is(text: str, typed: str) -> None:
    assert checked_answer(text) == typed


def test_it_has_eight_thousand_characters_at_most() -> None:
    with pytest.raises(InvalidInput):
        checked_answer("x" * 8_001)


@given(st.text(max_size=200))
@settings(max_examples=EXAMPLES)
def test_what_is_typed_can_neither_act_nor_end_the_paste(text: str) -> None:
    try:
        typed = checked_answer(text)
    except (InvalidInput, AnswerStartsACommand):
        return
    assert not typed.startswith("!")
    assert not typed.lstrip().startswith("/")
    assert all(c in "\n\t" or unicodedata.category(c) != "Cc" for c in typed)
    assert typed.encode()
    assert checked_answer(typed) == typed


def test_a_seed_says_all_and_acts_on_nothing() -> None:
    seed = seed_text(answer=" !ls", question="/which\x1b one?", summary="You: hm")
    assert seed.startswith("This continues")
    for part in ("!ls", "/which one?", "You: hm"):
        assert part in seed
    assert "What was said last" not in seed_text(answer="a", question="b", summary="")
