import pytest

from sidestage.canonical import pae
from sidestage.ids import is_conversation_id, is_session_id, new_id, session_id

CONVERSATION = "2f70c0de-0000-4000-8000-00000000abcd"


def test_a_row_id_depends_on_agent_conversation_and_machine() -> None:
    ids = {
        session_id("CLAUDE_CODE", CONVERSATION, machine_secret=b"a" * 32),
        session_id("CODEX", CONVERSATION, machine_secret=b"a" * 32),
        session_id("CLAUDE_CODE", CONVERSATION[:-1] + "e", machine_secret=b"a" * 32),
        session_id("CLAUDE_CODE", CONVERSATION, machine_secret=b"b" * 32),
    }
    assert len(ids) == 4
    assert all(is_session_id(each) for each in ids)
    assert all(CONVERSATION[:8] not in each for each in ids)


@pytest.mark.parametrize(
    "text",
    ["", "outside:", "outside:zz", "outside:" + "A" * 32, "outside:" + "a" * 32 + "\n"],
)
def test_what_is_no_row_id_is_told(text: str) -> None:
    assert not is_session_id(text)


@pytest.mark.parametrize(
    "text",
    ["", CONVERSATION + "\n", CONVERSATION.replace("-", ""), "٢" + CONVERSATION[1:]],
)
def test_what_is_no_conversation_id_is_told(text: str) -> None:
    assert not is_conversation_id(text)
    assert is_conversation_id(CONVERSATION.upper())


def test_fresh_ids_differ_and_show_their_kind() -> None:
    assert new_id("terminal") != new_id("terminal")
    assert new_id("terminal").startswith("terminal:")


def test_the_canonical_form_cannot_be_split_elsewhere() -> None:
    assert pae(("ab", "c")) != pae(("a", "bc"))
    assert pae(()) == b"\0\0\0\0"
    assert pae(("é",)) == b"\0\0\0\1\0\0\0\2\xc3\xa9"
