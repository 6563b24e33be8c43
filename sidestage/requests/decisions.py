"""From what a device sealed to what the agent's hook prints: pure functions.

A decision is built from the stored request and from indices into it; of a device's own
words only a note and free answers get through, verbatim. Which decisions the CLI takes
was measured with Claude Code 2.1.328 (docs/handover-protocol.md, "Requests").
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sidestage.errors import InvalidInput, RequestChanged, SuggestionNotAllowed
from sidestage.requests.model import (
    AgentRequest,
    Question,
    RequestKind,
    RequestVerdict,
    Suggestion,
)

NOTE_LIMIT_CHARACTERS: Final = 8_000
"""As long as the longest answer to a handover offer."""
DENIED_WITHOUT_NOTE: Final = "The person refused this on a paired device."
"""What the model is told when the person gave no reason: the CLI wants a message."""

_VERDICTS: Final[Mapping[str, RequestVerdict]] = {
    "allow": RequestVerdict.ALLOW,
    "deny": RequestVerdict.DENY,
    "answer": RequestVerdict.ANSWER,
}


@dataclass(frozen=True, slots=True)
class SealedAnswer:
    """The content of a `request-answer` envelope, its forms checked."""

    verdict: RequestVerdict
    note: str = field(repr=False)
    selections: tuple[Any, ...] = field(repr=False)
    shown: str


def parse_answer(content: Mapping[str, Any]) -> SealedAnswer:
    """Return the answer in an opened envelope; raise `InvalidInput` for another form.

    That `decision`, `note` and `shown` are texts was checked when it was opened.
    """
    verdict = _VERDICTS.get(content["decision"])
    if verdict is None:
        raise InvalidInput("decision must be allow, deny or answer")
    selections = content["selections"]
    if not isinstance(selections, list):
        raise InvalidInput("selections must be a list")
    note = content["note"]
    if len(note) > NOTE_LIMIT_CHARACTERS:
        raise InvalidInput(
            f"note must not be longer than {NOTE_LIMIT_CHARACTERS} characters"
        )
    if note and verdict is not RequestVerdict.DENY:
        raise InvalidInput("a note goes with deny only: the agent would not see it")
    return SealedAnswer(verdict, note, tuple(selections), content["shown"])


def decide(
    request: AgentRequest, answer: SealedAnswer, *, may_admin: bool
) -> dict[str, Any]:
    """Return the `hookSpecificOutput.decision` that says *answer* to *request*.

    Raises `RequestChanged` when the person was shown something else, `InvalidInput` for
    an answer that does not fit, `SuggestionNotAllowed`.
    """
    if not hmac.compare_digest(request.digest.encode(), answer.shown.encode()):
        raise RequestChanged("What was shown is not what the agent asks.")
    if answer.verdict is RequestVerdict.DENY:
        _refuse_selections(answer)
        return {"behavior": "deny", "message": answer.note or DENIED_WITHOUT_NOTE}
    if request.kind is RequestKind.QUESTION:
        return _answer_questions(request, answer)
    return _allow(request, answer, may_admin=may_admin)


def _refuse_selections(answer: SealedAnswer) -> None:
    if answer.selections:
        raise InvalidInput("selections must be empty with deny")


def _allow(
    request: AgentRequest, answer: SealedAnswer, *, may_admin: bool
) -> dict[str, Any]:
    if answer.verdict is not RequestVerdict.ALLOW:
        raise InvalidInput("this request takes allow or deny")
    decision: dict[str, Any] = {"behavior": "allow"}
    if request.kind is RequestKind.PLAN:
        # A plain "allow" is ignored for this tool: it wants its input back.
        decision["updatedInput"] = json.loads(request.input_json)
    chosen = _pick(request.suggestions, answer.selections, "selections")
    for suggestion in chosen:
        _check_suggestion(suggestion, may_admin=may_admin)
    if chosen:
        decision["updatedPermissions"] = [json.loads(it.json) for it in chosen]
    return decision


def _check_suggestion(suggestion: Suggestion, *, may_admin: bool) -> None:
    if suggestion.is_forbidden:
        raise SuggestionNotAllowed("No device may end all asking.")
    if suggestion.needs_admin and not may_admin:
        raise SuggestionNotAllowed(
            "That suggestion outlives the session: it takes a device with ADMIN."
        )


def _answer_questions(request: AgentRequest, answer: SealedAnswer) -> dict[str, Any]:
    if answer.verdict is not RequestVerdict.ANSWER:
        raise InvalidInput("questions take answer or deny")
    if len(answer.selections) != len(request.questions):
        raise InvalidInput("selections must have one entry for each question")
    answers = {
        question.text: _answer_text(question, selection)
        for question, selection in zip(
            request.questions, answer.selections, strict=True
        )
    }
    # The whole input goes back with the answers beside the questions.
    updated = {**json.loads(request.input_json), "answers": answers}
    return {"behavior": "allow", "updatedInput": updated}


def _answer_text(question: Question, selection: object) -> str:
    """Return the chosen labels and the free text as the one string the CLI takes."""
    if not isinstance(selection, Mapping):
        raise InvalidInput("each selection must be an object")
    options, text = selection.get("options", []), selection.get("text", "")
    if not isinstance(options, list) or not isinstance(text, str):
        raise InvalidInput("a selection has a list options and a string text")
    if len(text) > NOTE_LIMIT_CHARACTERS:
        raise InvalidInput(
            f"text must not be longer than {NOTE_LIMIT_CHARACTERS} characters"
        )
    labels = [option.label for option in _pick(question.options, options, "options")]
    parts = [*labels, text] if text.strip() else labels
    if not parts:
        raise InvalidInput("each question needs an option or a text")
    if len(parts) > 1 and not question.multi_select:
        raise InvalidInput("this question takes one option or a text")
    return ", ".join(parts)


def _pick(offered: Sequence[Any], indices: Sequence[object], name: str) -> list[Any]:
    """Return what *indices* name, in the order in which it was offered."""
    chosen: set[int] = set()
    for index in indices:
        # True is an int in Python, not in JSON.
        if type(index) is not int or not 0 <= index < len(offered) or index in chosen:
            raise InvalidInput(f"{name} must be different indices of what is offered")
        chosen.add(index)
    return [offered[index] for index in sorted(chosen)]
