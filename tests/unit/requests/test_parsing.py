"""What is taken from an agent's payload, and what is left to the keyboard."""

import json
from pathlib import Path
from typing import Any

import pytest

from sidestage.requests.model import Question, QuestionOption, RequestKind
from sidestage.requests.parsing import parse_asked, write_json

RECORDED = Path(__file__).parents[1] / "agents" / "data" / "claude" / "hooks"


def recorded(name: str) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(
        (RECORDED / f"PermissionRequest.{name}.json").read_text()
    )
    return payload


def asks(tool: str, tool_input: object, **more: object) -> dict[str, Any]:
    return {"tool_name": tool, "tool_input": tool_input, **more}


def test_a_permission_has_the_tool_its_whole_input_and_the_suggestions() -> None:
    asked = parse_asked(recorded("Bash"))
    assert asked is not None
    assert asked.kind is RequestKind.PERMISSION
    assert asked.tool_name == "Bash"
    assert asked.input_json == (
        '{"command":"touch made.txt","description":"Run the stub command"}'
    )
    assert [item.destination for item in asked.suggestions] == ["session", "session"]
    assert json.loads(asked.suggestions[1].json)["mode"] == "acceptEdits"


def test_a_question_arrives_with_its_options() -> None:
    asked = parse_asked(recorded("AskUserQuestion"))
    assert asked is not None
    assert asked.kind is RequestKind.QUESTION
    (question,) = asked.questions
    assert question.text == "Which database should the service use?"
    assert question.header == "Database"
    assert not question.multi_select
    assert question.options[1] == QuestionOption(
        "PostgreSQL", "A server, concurrent writers"
    )


def test_a_plan_arrives_as_text() -> None:
    asked = parse_asked(recorded("ExitPlanMode.plan"))
    assert asked is not None
    assert asked.kind is RequestKind.PLAN
    assert asked.plan is not None
    assert asked.plan.startswith("# Plan\n\n1. Add a `greet` function")


def test_a_plan_without_text_is_still_a_plan() -> None:
    asked = parse_asked(asks("ExitPlanMode", {}))
    assert asked is not None
    assert (asked.kind, asked.plan) == (RequestKind.PLAN, None)


def test_no_character_of_an_input_is_lost() -> None:
    value = {"a": "ü\x00\x1b[31m\u202e\u2028", "b": [1, 2.5, None, True], "c": 2**70}
    text = write_json(value)
    assert text is not None
    assert json.loads(text) == value
    assert list(json.loads(text)) == ["a", "b", "c"]


def test_half_a_surrogate_pair_can_be_sent() -> None:
    text = write_json({"a": "x\ud83d", "b": "\N{GRINNING FACE}"})
    assert text == '{"a":"x\\ud83d","b":"\N{GRINNING FACE}"}'
    assert json.loads(text)["a"] == "x\ud83d"


@pytest.mark.parametrize(
    "payload",
    [
        {},
        asks("", {}),
        asks("x" * 257, {}),
        asks("Bash\ud800", {}),
        asks("Bash", "not an object"),
        asks("Bash", {"timeout": float("inf")}),
        {"tool_name": 5, "tool_input": {}},
        asks("Bash", {}, permission_suggestions="all"),
        asks("Bash", {}, permission_suggestions=["all"]),
        asks("Bash", {}, permission_suggestions=[{}] * 21),
        asks("AskUserQuestion", {}),
        asks("AskUserQuestion", {"questions": []}),
        asks("AskUserQuestion", {"questions": ["Why?"]}),
        asks("AskUserQuestion", {"questions": [{"question": "Why?"}]}),
        asks(
            "AskUserQuestion", {"questions": [{"question": "Why?", "options": ["a"]}]}
        ),
        asks(
            "AskUserQuestion",
            {"questions": [{"question": "Why?", "options": []}] * 2},
        ),
        asks(
            "AskUserQuestion",
            {"questions": [{"question": f"{n}?", "options": []} for n in range(21)]},
        ),
    ],
)
def test_what_a_device_could_not_answer_faithfully_is_left_to_the_keyboard(
    payload: dict[str, Any],
) -> None:
    assert parse_asked(payload) is None


def test_a_question_may_leave_out_what_is_only_shown() -> None:
    question = {"question": "Why?", "options": [{"label": "Because"}]}
    asked = parse_asked(asks("AskUserQuestion", {"questions": [question]}))
    assert asked is not None
    assert asked.questions == (
        Question("Why?", "", (QuestionOption("Because", ""),), multi_select=False),
    )


def test_a_suggestion_that_ends_all_asking_is_known_as_such() -> None:
    offers = [
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
        {"type": "addRules", "rules": [], "destination": "localSettings"},
        {"type": "addRules"},
    ]
    asked = parse_asked(asks("Bash", {}, permission_suggestions=offers))
    assert asked is not None
    assert [item.is_forbidden for item in asked.suggestions] == [True, False, False]
    assert [item.needs_admin for item in asked.suggestions] == [False, True, True]
