import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestage.handover.prose import STAND_IN, parse_blocks

EXAMPLES = 40


def blocks(text: str) -> list[tuple[str, bool]]:
    return [(block.text, block.is_list) for block in parse_blocks(text)]


def test_paragraphs_and_lists_are_blocks() -> None:
    text = "One\ntwo.\n\n- a\n- b\nafter\n\nlast"
    assert blocks(text) == [
        ("One two.", False),
        ("- a - b", True),
        ("after", False),
        ("last", False),
    ]


def test_an_items_further_lines_and_paragraphs_belong_to_it() -> None:
    text = "1. a\n   more\n\n   and more\n\n2. b\n\nEnd."
    assert blocks(text) == [
        ("1. a more", True),
        ("and more", True),
        ("2. b", True),
        ("End.", False),
    ]


@pytest.mark.parametrize(
    "item",
    [
        *("- a", "* a", "+ a", "• a", "1. a", "12) a", "(3) a", "a) a", "B. a"),
        *("**C.** a", "| a | b |", "|---|", "１. a", "1、甲", "A）甲"),
    ],
)
def test_what_begins_like_an_item_is_one(item: str) -> None:
    assert [is_list for _, is_list in blocks(item)] == [True]


@pytest.mark.parametrize("line", ["-a", "1.5 seconds", "a word", "*bold* text", "-- x"])
def test_what_only_looks_like_an_item_is_none(line: str) -> None:
    assert [is_list for _, is_list in blocks(line)] == [False]


@pytest.mark.parametrize("rule", ["---", "***", "___", "- - -", "-----"])
def test_a_rule_parts_paragraphs(rule: str) -> None:
    assert blocks(f"a\n{rule}\nb") == [("a", False), ("b", False)]


def test_headings_lose_their_signs() -> None:
    assert blocks("## What now?") == [("What now?", False)]


def test_code_quotations_and_addresses_leave_a_stand_in() -> None:
    text = 'Use `a?`, ``b?``, "c?" or [d?](https://e.f/g?h) at https://i.j/k?l=m.'
    expected = f"Use {STAND_IN}, {STAND_IN}, {STAND_IN} or {STAND_IN} at {STAND_IN}"
    assert blocks(text) == [(expected, False)]


def test_a_quotation_is_looked_for_within_300_characters() -> None:
    assert blocks('x "' + "a" * 300 + '"') == [(f"x {STAND_IN}", False)]
    assert STAND_IN not in blocks('x "' + "a" * 301 + '"')[0][0]


def test_a_text_without_prose_has_no_blocks() -> None:
    for text in ("", "\n \n", "```\ncode", "    code", "> quoted"):
        assert parse_blocks(text) == ()


@settings(max_examples=EXAMPLES)
@given(st.text(max_size=400))
def test_every_text_has_blocks_with_something_in_them(text: str) -> None:
    for block in parse_blocks(text):
        assert block.lines
        assert "\n" not in block.text
