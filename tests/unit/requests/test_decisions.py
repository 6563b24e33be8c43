"""From a sealed answer to the decision the CLI takes (acceptance: requests 6 and 8)."""

import json
from typing import Any

import pytest

from sidestage.errors import InvalidInput, RequestChanged, SuggestionNotAllowed
from sidestage.requests.decisions import (
    DENIED_WITHOUT_NOTE,
    NOTE_LIMIT_CHARACTERS,
    decide,
    parse_answer,
)
from sidestage.requests.model import AgentRequest, RequestKind, Suggestion
from sidestage.requests.parsing import parse_asked
from tests.fakes.agent_requests import a_request
from tests.unit.requests.test_parsing import recorded

SUGGESTIONS = (
    Suggestion(
        '{"type":"setMode","mode":"acceptEdits"}', "session", is_forbidden=False
    ),
    Suggestion('{"type":"addRules","rules":["x"]}', "userSettings", is_forbidden=False),
    Suggestion(
        '{"type":"setMode","mode":"bypassPermissions"}', "session", is_forbidden=True
    ),
)
CHECKS = {
    "question": "Which checks?",
    "header": "Checks",
    "multiSelect": True,
    "options": [{"label": "Lint"}, {"label": "Types"}, {"label": "Tests"}],
}


def asked(payload: dict[str, Any]) -> AgentRequest:
    """Return the request that *payload* makes."""
    it = parse_asked(payload)
    assert it is not None
    return a_request(
        kind=it.kind,
        tool_name=it.tool_name,
        input_json=it.input_json,
        suggestions=it.suggestions,
        questions=it.questions,
        plan=it.plan,
    )


def two_questions() -> AgentRequest:
    payload = recorded("AskUserQuestion")
    payload["tool_input"]["questions"].append(CHECKS)
    payload["tool_input"]["kept"] = "as it is"
    return asked(payload)


def say(
    request: AgentRequest,
    decision: str,
    selections: object = (),
    *,
    note: str = "",
    may_admin: bool = False,
) -> dict[str, Any]:
    """Return the decision for an answer that was shown *request* as it is."""
    content = {
        "decision": decision,
        "note": note,
        "selections": list(selections) if isinstance(selections, tuple) else selections,
        "shown": request.digest,
    }
    return decide(request, parse_answer(content), may_admin=may_admin)


def test_allow_lets_the_tool_run_with_the_input_it_has() -> None:
    assert say(a_request(), "allow") == {"behavior": "allow"}


def test_the_model_gets_the_note_of_a_denial_verbatim() -> None:
    note = " Nó:\n\tuse “rm -i”  "
    assert say(a_request(), "deny", note=note) == {"behavior": "deny", "message": note}


def test_a_denial_without_a_note_still_has_a_message() -> None:
    decision = say(a_request(), "deny")
    assert decision == {"behavior": "deny", "message": DENIED_WITHOUT_NOTE}


def test_a_chosen_suggestion_goes_with_the_permission() -> None:
    request = a_request(suggestions=SUGGESTIONS)
    assert say(request, "allow", (0,)) == {
        "behavior": "allow",
        "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits"}],
    }


def test_what_outlives_the_session_takes_a_device_with_admin() -> None:
    request = a_request(suggestions=SUGGESTIONS)
    with pytest.raises(SuggestionNotAllowed):
        say(request, "allow", (1,))
    chosen = say(request, "allow", (0, 1), may_admin=True)["updatedPermissions"]
    assert [item["type"] for item in chosen] == ["setMode", "addRules"]


def test_no_device_ends_all_asking() -> None:
    with pytest.raises(SuggestionNotAllowed):
        say(a_request(suggestions=SUGGESTIONS), "allow", (2,), may_admin=True)


def test_an_approved_plan_gets_its_input_back() -> None:
    request = asked(recorded("ExitPlanMode.plan"))
    assert say(request, "allow") == {
        "behavior": "allow",
        "updatedInput": recorded("ExitPlanMode.plan")["tool_input"],
    }


def test_feedback_on_a_plan_is_a_denial_with_a_note() -> None:
    request = asked(recorded("ExitPlanMode.plan"))
    decision = say(request, "deny", note="Shorter, please.")
    assert decision == {"behavior": "deny", "message": "Shorter, please."}


def test_answers_go_back_beside_the_questions_by_their_texts() -> None:
    request = two_questions()
    decision = say(request, "answer", ({"options": [1]}, {"options": [2, 0]}))
    stored = json.loads(request.input_json)
    assert decision["behavior"] == "allow"
    assert decision["updatedInput"] == {
        **stored,
        "answers": {
            "Which database should the service use?": "PostgreSQL",
            "Which checks?": "Lint, Tests",
        },
    }


def test_free_text_is_an_answer_verbatim_and_goes_beside_several_options() -> None:
    text = "  None of them:\nkeep the file. "
    selections = ({"text": text}, {"options": [1], "text": "and mypy"})
    decision = say(two_questions(), "answer", selections)
    assert decision["updatedInput"]["answers"] == {
        "Which database should the service use?": text,
        "Which checks?": "Types, and mypy",
    }


def test_a_question_can_be_declined_with_a_note() -> None:
    decision = say(two_questions(), "deny", note="You decide.")
    assert decision == {"behavior": "deny", "message": "You decide."}


def test_an_answer_to_something_else_than_was_asked_is_refused() -> None:
    shown = a_request(input_json='{"command":"ls"}')
    content = {"decision": "allow", "note": "", "selections": [], "shown": shown.digest}
    with pytest.raises(RequestChanged):
        decide(a_request(), parse_answer(content), may_admin=True)
    content["shown"] = "\N{SNOWMAN}"
    with pytest.raises(RequestChanged):
        decide(a_request(), parse_answer(content), may_admin=True)


@pytest.mark.parametrize(
    ("decision", "selections", "note"),
    [
        ("maybe", [], ""),
        ("Allow", [], ""),
        ("allow", {}, ""),
        ("allow", None, ""),
        ("allow", [3], ""),
        ("allow", [-1], ""),
        ("allow", [0, 0], ""),
        ("allow", [True], ""),
        ("allow", ["0"], ""),
        ("allow", [0.0], ""),
        ("allow", [], "a note"),
        ("deny", [0], ""),
        ("deny", [], "x" * (NOTE_LIMIT_CHARACTERS + 1)),
        ("answer", [], ""),
    ],
)
def test_what_does_not_fit_a_permission_is_refused(
    decision: str, selections: object, note: str
) -> None:
    request = a_request(suggestions=SUGGESTIONS)
    with pytest.raises(InvalidInput):
        say(request, decision, selections, note=note, may_admin=True)


@pytest.mark.parametrize(
    ("decision", "selections"),
    [
        ("allow", []),
        ("answer", []),
        ("answer", [{"options": [0]}]),
        ("answer", [{"options": [0]}, {}]),
        ("answer", [{"options": [0]}, {"text": " \n"}]),
        ("answer", [{"options": [0, 1]}, {"options": [0]}]),
        ("answer", [{"options": [0], "text": "too"}, {"options": [0]}]),
        ("answer", [{"options": [3]}, {"options": [0]}]),
        ("answer", [{"options": "0"}, {"options": [0]}]),
        ("answer", [{"text": 5}, {"options": [0]}]),
        ("answer", [{"text": "x" * (NOTE_LIMIT_CHARACTERS + 1)}, {"options": [0]}]),
        ("answer", [0, {"options": [0]}]),
        ("deny", [{"options": [0]}]),
    ],
)
def test_what_does_not_fit_the_questions_is_refused(
    decision: str, selections: object
) -> None:
    request = two_questions()
    assert request.kind is RequestKind.QUESTION
    with pytest.raises(InvalidInput):
        say(request, decision, selections)
