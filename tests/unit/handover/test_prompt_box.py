"""The agent's prompt box on screens as the real CLI (2.1.328) drew them."""

import pytest

from sidestage.handover.prompt_box import PromptBox, find_prompt_box

RULE = "─" * 100
FOOT = "  ⏸ manual mode on · ? for shortcuts · ← for agents"
PERMISSION = f"""❯ stub:bash(touch made)

● I will run a command.
{RULE}
 Bash command
 Tip: auto mode handles these prompts for you
 Run the stub command
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 touch made
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and always allow
   4. No
 Esc to cancel · Tab to amend
"""


def screen(*inside: str, above: str = "● Which one?") -> str:
    return "\n".join([above, "", RULE, *inside, RULE, FOOT, ""])


def text_in(shown: str) -> str | None:
    box = find_prompt_box(shown)
    return None if box is None else box.text


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (["❯"], ""),
        (["❯\xa0"], ""),
        (["❯\xa0- one answer"], "- one answer"),
        (["❯  !echo hi"], "!echo hi"),
        (["❯ line one", "  line two"], "line one\n  line two"),
        (["❯ [Pasted text #1 +12 lines]"], "[Pasted text #1 +12 lines]"),
    ],
)
def test_the_box_between_two_rules_is_read(inside: list[str], text: str) -> None:
    found = find_prompt_box(screen(*inside))
    assert found is not None
    assert (found.text, found.cols) == (text, 100)


def test_a_dialog_is_no_box_though_it_has_a_rule_and_a_pointer() -> None:
    assert find_prompt_box(PERMISSION) is None
    assert find_prompt_box("") is None
    assert find_prompt_box(f"{RULE}\n❯ text") is None


def test_the_lowest_box_counts() -> None:
    above = screen("❯ quoted by the agent")
    assert text_in(screen("❯ mine", above=above)) == "mine"


def test_rules_that_an_agent_prints_make_no_box() -> None:
    text = screen("❯ mine") + f"\n{RULE}\nsome text of the agent\n{RULE}\n"
    assert text_in(text) == "mine"


@pytest.mark.parametrize(
    ("shown", "typed", "holds"),
    [
        ("yes", "yes", True),
        ("a b\n  c", "a b\nc", True),
        ("tab    here", "tab\there", True),
        ("yes please", "yes", False),
        ("ye", "yes", False),
        ("", "yes", False),
        ("1. Yes\n  2. No", "1. Yes", False),
    ],
)
def test_a_box_holds_exactly_what_was_typed(
    shown: str, typed: str, *, holds: bool
) -> None:
    assert PromptBox(shown).holds(typed) is holds
    assert PromptBox(shown).shows(typed) is holds


@pytest.mark.parametrize("text", ["[Pasted text #1]", "[Pasted text #12 +3 lines]"])
def test_a_folded_paste_shows_what_was_typed_but_proves_it_alone_not(text: str) -> None:
    box = PromptBox(text)
    assert box.is_folded
    assert box.shows("x" * 900)
    assert not box.holds("x" * 900)
    assert not PromptBox(f"draft {text}").is_folded


@pytest.mark.parametrize(
    ("text", "is_free"),
    [("", True), ('Try "edit <filepath> to..."', True), ("Try", False), ("x", False)],
)
def test_a_hint_is_nobodys_text(text: str, *, is_free: bool) -> None:
    assert PromptBox(text).is_free is is_free
