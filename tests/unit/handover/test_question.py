import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestage.handover.question import (
    TEXT_LIMIT_CHARACTERS,
    is_free_form_question,
)

EXAMPLES = 40
PROCESSOR_SECONDS = 0.5
"""A hundred times what the longest ordinary message takes."""

QUESTION = "Which of the two should I keep?"
STATEMENT = "All tests pass."


def asks(text: str) -> bool:
    return is_free_form_question(text)


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\u3000", "```\n```", "> "])
def test_nothing_asks_nothing(text: str) -> None:
    assert not asks(text)


def test_a_message_over_the_limit_does_not_ask() -> None:
    filler = "a" * (TEXT_LIMIT_CHARACTERS - len(QUESTION) - 2) + ".\n"
    longest = filler + "\n" + QUESTION
    assert len(longest) == TEXT_LIMIT_CHARACTERS + 1
    assert asks(longest[1:])
    assert not asks(longest)


@pytest.mark.parametrize("mark", [*"?？؟⁇⁈⁉‽⸮፧\u037e", "?!", "??", "？！"])
def test_every_scripts_question_mark_counts(mark: str) -> None:
    assert asks(f"Proceed{mark}")


def test_a_semicolon_asks_in_greek_only() -> None:
    assert asks("Να συνεχίσω;")
    assert not asks("int x = 1;")


@pytest.mark.parametrize(
    "closer",
    [
        *("**", "*", "__", "_", ")", "]", "”", "»", "」", '"', "\\", "~~", "**\n"),
        *(" (y/n)", " [Y/n]", "（是/否）", " 🙂", "👍🏽", " ❤️", " (yes/no) 🙂"),
    ],
    ids=repr,
)
def test_what_may_follow_a_mark_does_not_hide_it(closer: str) -> None:
    assert asks(f"Ready to go?{closer}")


@pytest.mark.parametrize(
    "follower", [" Done.", " a", " (" + "a" * 41 + ")", " 1", " `make`"]
)
def test_what_is_no_closer_hides_it(follower: str) -> None:
    assert not asks(f"Why so slow?{follower}")


def test_a_question_that_wants_a_nod_does_not_ask() -> None:
    assert not asks("Ten times faster. Neat, right?")
    assert asks("Is this branch right?")


@pytest.mark.parametrize("fence", ["```", "~~~", "````", "  ```python", "- ```"])
@pytest.mark.parametrize("end", ["", "\n```", "\n~~~", "\n````\n"])
def test_fenced_code_never_asks_closed_or_not(fence: str, end: str) -> None:
    assert not asks(f"{STATEMENT}\n\n{fence}\n{QUESTION}{end}")


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_question_before_code_asks(fence: str) -> None:
    assert asks(f"{QUESTION}\n\n{fence}\nx = 1\n{fence}")
    assert asks(f"{QUESTION}\n{fence}\nx = 1")


def test_a_shorter_fence_inside_a_longer_one_closes_nothing() -> None:
    assert not asks(f"{STATEMENT}\n\n````\n```\n{QUESTION}\n```\n{QUESTION}\n````")


def test_a_fence_with_a_language_closes_nothing() -> None:
    assert not asks(f"{STATEMENT}\n\n```\n```python\n{QUESTION}\n```")


def test_indented_code_does_not_ask_but_a_list_items_second_line_does() -> None:
    assert not asks(f"{STATEMENT}\n\n    {QUESTION}")
    assert asks("Two things are open:\n\n1. The name.\n\n    Which one do you like?")


@pytest.mark.parametrize(
    "text",
    [
        "The prompt is now `Continue?`",
        "The prompt is now “Continue?”",
        'The prompt is now "Continue?"',
        "The prompt is now «Continue?»",
        "Die Frage ist „Weiter?“",
        "文言は「続けますか？」",
        "文言は『続けますか？』",
        "It shows ‹Continue?›",
        f"{STATEMENT}\n\n> {QUESTION}",
        "See [the question](https://example.com/a?)",
    ],
)
def test_the_words_of_others_do_not_ask(text: str) -> None:
    assert not asks(text)


def test_a_message_that_is_one_quotation_speaks_for_its_agent() -> None:
    assert asks(f"“{QUESTION}”")


def test_an_address_with_a_query_is_no_question() -> None:
    assert not asks("It answers at https://example.com/?q=1")
    assert asks("Is it https://example.com/a?")


def test_only_the_final_paragraph_counts() -> None:
    assert not asks(f"{QUESTION}\n\n{STATEMENT}")
    assert asks(f"{STATEMENT}\n\n{QUESTION}")


@pytest.mark.parametrize(
    "closing",
    ["Thanks!", "Let me know if you need anything else.", "(y/n)", "---", "👍"],
)
def test_a_courtesy_after_a_question_is_passed_over(closing: str) -> None:
    assert asks(f"{QUESTION}\n\n{closing}")
    assert not asks(f"{STATEMENT}\n\n{closing}")


def test_a_second_thought_that_asks_is_a_question_itself() -> None:
    assert asks("What broke?\n\nIf not that, what else could it be?")


def test_a_second_thought_leaves_only_a_question_to_the_reader_open() -> None:
    assert asks("Should I use the first?\n\nI'd recommend it.")
    assert not asks("What broke?\n\nI'd recommend an update.")
    assert not asks("What broke?\n\n- the cache\n\nI'd recommend an update.")
    assert not asks("Checked:\n- what broke?\n\nI'd recommend an update.")
    assert asks("Done.\n\nI'd recommend the first. Tell me which you want.")


@pytest.mark.parametrize(
    "options",
    ["1. a\n2. b", "- a\n- b", "a) a\nb) b", "**A.** a\n\n**B.** b", "| a |\n|-|"],
)
@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_options_after_a_question_leave_it_open(options: str, gap: str) -> None:
    assert asks(f"{QUESTION}{gap}{options}")
    assert asks(f"Should I:{gap}{options}")
    assert not asks(f"What changed?{gap}{options}")
    assert not asks(f"This changed:{gap}{options}")


def test_a_line_that_asks_but_ends_in_a_colon_asks() -> None:
    for lead in ("And now, should we:", "Which one to take:", "What I need from you:"):
        assert asks(f"{lead}\n\n- a\n- b")
        assert asks(f"{lead}\n\n```\nx = 1\n```")
    assert not asks("What we found:\n\n- a\n- b")


def test_the_same_question_without_a_list_asks() -> None:
    assert asks("What changed?")


def test_a_label_between_question_and_options_is_passed_over() -> None:
    assert asks(f"{QUESTION}\n\n**Options:**\n\n- a\n- b")
    assert not asks(f"{STATEMENT}\n\n**Options:**\n\n- a\n- b")


def test_a_list_that_ends_in_a_question_asks() -> None:
    assert asks("Open points:\n- the name\n- is the port right?")
    assert not asks("Checked:\n- is it fast?\n- yes, it is")


def test_a_question_that_is_answered_does_not_ask() -> None:
    assert asks("Should I cache it? It is read often.")
    assert not asks("Should I cache it? No: it is read once.")
    assert not asks("Why do you see two rows? Because the join doubles them.")
    assert not asks("Warum soll ich das tun? Der Cache reicht.")
    assert not asks("Can we help with anything else? It was a pleasure.")


def test_a_question_in_parentheses_asks() -> None:
    assert asks("It is done (should I push?)")


def test_a_request_needs_no_mark() -> None:
    assert asks("Please confirm that I may delete it.")
    assert asks("Delete it? Please confirm that I may.")
    assert not asks("There is no need to confirm, please continue.")
    assert not asks("All done. Please let me know if you have questions.")


def test_both_apostrophes_are_one() -> None:
    assert asks("Grant access and I'll go on.")
    assert asks("Grant access and I’ll go on.")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_every_line_ending_ends_a_line(ending: str) -> None:
    assert asks(f"{STATEMENT}{ending}{ending}{QUESTION}{ending}")
    assert not asks(f"{QUESTION}{ending}{ending}{STATEMENT}{ending}")


PIECES = [
    *("?", "？", "(", ")", "[", "](", '"', "“", "„", "«", "「", "`", "```", "~~~"),
    *("\n", "\n\n", "> ", "- ", "1. ", "    ", "| ", "---", "*", "_", "#", "🙂"),
    *("please ", "confirm ", "should i ", "i need ", "let me know ", "if ", "which "),
    *("before i ", "tell me ", "and i'll ", "bitte ", "sag mir ", "if you ", "请"),
    *("मुझे बता ", "\ud800", "\x00", ". ", "a", "right? ", "pick ", "once you "),
    "https://a?",
]


@settings(max_examples=EXAMPLES)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_any_jumble_has_a_verdict_that_does_not_change(text: str) -> None:
    assert asks(text) == asks(text)


@settings(max_examples=EXAMPLES)
@given(st.text(max_size=300))
def test_fenced_text_never_asks(text: str) -> None:
    inside = text.replace("`", "").replace("\r", " ")
    assert not asks(f"{STATEMENT}\n\n```\n{inside}\n```")


@settings(max_examples=EXAMPLES)
@given(st.text(alphabet="abcde \n.", max_size=300))
def test_words_before_a_final_question_do_not_matter(text: str) -> None:
    assert asks(f"{text}\n\n{QUESTION}")


@settings(max_examples=EXAMPLES)
@given(st.text(alphabet="xyz \n", max_size=300))
def test_words_without_a_mark_or_a_request_do_not_ask(text: str) -> None:
    assert not asks(text)


@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_no_repetition_takes_long(piece: str) -> None:
    """A pattern that tries every start with every end takes minutes on such texts."""
    text = (piece * TEXT_LIMIT_CHARACTERS)[:TEXT_LIMIT_CHARACTERS]
    started = time.process_time()
    asks(text)
    asks("x " + text[3:] + "x")
    assert time.process_time() - started < PROCESSOR_SECONDS
