"""What an agent wrote about the tool it wants to use, as the values of a request.

Pure: the payload's values are not checked before they come here.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sidestage.requests.model import (
    Question,
    QuestionOption,
    RequestKind,
    Suggestion,
)

NAME_LIMIT_CHARACTERS: Final = 256
"""Names of tools of MCP servers are the longest: `mcp__<server>__<tool>`."""
QUESTION_LIMIT: Final = 20
"""The dialog shows four at most; more is no question of the CLI."""
OPTION_LIMIT: Final = 50
SUGGESTION_LIMIT: Final = 20

KINDS: Final[Mapping[str, RequestKind]] = {
    "AskUserQuestion": RequestKind.QUESTION,
    "ExitPlanMode": RequestKind.PLAN,
}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_HAS_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a permission request's payload asks."""

    kind: RequestKind
    tool_name: str
    input_json: str = field(repr=False)
    suggestions: tuple[Suggestion, ...] = ()
    questions: tuple[Question, ...] = ()
    plan: str | None = None


def parse_asked(payload: Mapping[str, Any]) -> Asked | None:
    """Return what *payload* asks; None if a device could not answer it faithfully."""
    name, tool_input = payload.get("tool_name"), payload.get("tool_input")
    if not isinstance(name, str) or not isinstance(tool_input, Mapping):
        return None
    if not name or len(name) > NAME_LIMIT_CHARACTERS or _SURROGATE.search(name):
        return None
    text = write_json(tool_input)
    suggestions = parse_suggestions(payload.get("permission_suggestions"))
    if text is None or suggestions is None:
        return None
    kind = KINDS.get(name, RequestKind.PERMISSION)
    if kind is not RequestKind.PERMISSION and _HAS_ESCAPE.search(text):
        return None  # half a character, which no client could be sent
    if kind is RequestKind.QUESTION:
        questions = parse_questions(tool_input)
        if questions is None:
            return None
        return Asked(kind, name, text, suggestions, questions)
    plan = _text(tool_input, "plan") if kind is RequestKind.PLAN else None
    return Asked(kind, name, text, suggestions, plan=plan or None)


def write_json(value: object) -> str | None:
    """Return *value* as JSON that any client can be sent, every character kept.

    None for what JSON cannot say, such as the infinity that `1e999` is read as.
    """
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
    except (ValueError, TypeError, RecursionError):
        return None
    # A lone surrogate has no UTF-8; inside a JSON string its escape means the same.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def parse_suggestions(value: object) -> tuple[Suggestion, ...] | None:
    """Return the offered changes of permissions; None if they cannot be told."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > SUGGESTION_LIMIT:
        return None
    found = tuple(_suggestion(item) for item in value)
    complete = tuple(item for item in found if item is not None)
    return complete if len(complete) == len(found) else None


def _suggestion(value: object) -> Suggestion | None:
    text = write_json(value)
    if not isinstance(value, Mapping) or text is None:
        return None
    destination = value.get("destination")
    return Suggestion(
        text,
        destination if isinstance(destination, str) else "",
        is_forbidden=value.get("mode") == "bypassPermissions",
    )


def parse_questions(tool_input: Mapping[str, Any]) -> tuple[Question, ...] | None:
    """Return the questions; None if an answer could not name each by its text."""
    values = tool_input.get("questions")
    if not isinstance(values, list) or not 0 < len(values) <= QUESTION_LIMIT:
        return None
    found = tuple(_question(value) for value in values)
    questions = tuple(question for question in found if question is not None)
    texts = {question.text for question in questions}
    return questions if len(texts) == len(values) else None


def _question(value: object) -> Question | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("question"), str):
        return None
    options = value.get("options")
    if not isinstance(options, list) or len(options) > OPTION_LIMIT:
        return None
    found = tuple(_option(option) for option in options)
    complete = tuple(option for option in found if option is not None)
    if len(complete) != len(found):
        return None
    return Question(
        text=value["question"],
        header=_text(value, "header"),
        options=complete,
        multi_select=value.get("multiSelect") is True,
    )


def _option(value: object) -> QuestionOption | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("label"), str):
        return None
    return QuestionOption(value["label"], _text(value, "description"))


def _text(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""
