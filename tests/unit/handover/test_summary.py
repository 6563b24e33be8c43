import pytest

from sidestage.handover.summary import summarize
from sidestage.handover.turns import find_last_turn, record_uuid
from sidestage.sessions.transcript import EntryKind, TranscriptEntry

PROMPT, MESSAGE = EntryKind.PROMPT, EntryKind.MESSAGE


def entries(*told: tuple[EntryKind, str]) -> list[TranscriptEntry]:
    return [
        TranscriptEntry(
            id=f"entry:aa:u{number}:0",
            order=f"{number:012x}.0000",
            kind=kind,
            at=None,
            text=text,
            truncated=False,
        )
        for number, (kind, text) in enumerate(told)
    ]


def test_it_holds_the_last_six_texts_each_on_one_line() -> None:
    told = [(PROMPT if i % 2 else MESSAGE, f"text\n  {i}") for i in range(9)]
    lines = summarize(entries(*told)).split("\n")
    assert lines[0] == "You: text 3"
    assert lines[-1] == "Agent: text 8"
    assert len(lines) == 6


def test_what_nobody_said_is_left_out() -> None:
    kinds = set(EntryKind) - {PROMPT, MESSAGE}
    assert summarize(entries(*[(kind, "x") for kind in kinds])) == ""
    assert summarize(entries((PROMPT, "  \n"))) == ""
    assert summarize([]) == ""


def test_a_long_text_is_cut_and_of_too_much_the_end_is_kept() -> None:
    long = summarize(entries((PROMPT, "a" * 1000)))
    assert len(long) == 300
    assert long.endswith("…")
    much = summarize(entries(*[(MESSAGE, f"{i}" * 1000) for i in range(6)]))
    assert len(much) == 1500
    assert much.startswith("…")
    assert much.endswith("…")
    assert "5555" in much


def test_it_is_the_same_for_the_same_transcript() -> None:
    told = entries((PROMPT, "one"), (MESSAGE, "two"))
    assert summarize(told) == summarize(list(told))


@pytest.mark.parametrize(
    "last", [EntryKind.PROMPT, EntryKind.TOOL_CALL, EntryKind.INTERRUPTION]
)
def test_a_turn_that_ends_in_something_else_has_no_message(last: EntryKind) -> None:
    assert find_last_turn(entries((MESSAGE, "Which?"), (last, "x"))) is None


def test_a_message_of_several_blocks_is_one() -> None:
    told = entries(
        (PROMPT, "look"),
        (EntryKind.TOOL_CALL, ""),
        (MESSAGE, "First."),
        (EntryKind.THINKING, "hm"),
        (MESSAGE, "Which?"),
        (EntryKind.NOTICE, "a task ended"),
    )
    turn = find_last_turn(told)
    assert turn is not None
    assert turn.text == "First.\n\nWhich?"
    assert turn.summary == "You: look"
    assert turn.record_uuid == record_uuid(told[4]) == "u4"
    assert turn.order == told[4].order
