"""What the scripted agent does at a prompt: the steps of its answer. Stdlib only.

A prompt that stands in `script.json` beside this file is answered with the steps there.
Any other is answered with its echo, or as a tag in it says (`scripted_agent.py`).
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUESTION = (
    "Both approaches work. The first is simpler, the second is faster.\n\n"
    "Which one would you like me to implement?"
)
DATABASE_QUESTION = {
    "question": "Which database should the service use?",
    "header": "Database",
    "multiSelect": False,
    "options": [
        {"label": "SQLite", "description": ""},
        {"label": "PostgreSQL", "description": ""},
    ],
}
SCRIPT_FILE = Path(__file__).with_name("script.json")
_TAG = re.compile(r"stub:([a-z]+)(?:\((.*)\))?", re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One thing the agent does: its kind, and what it does it with.

    say: a text · bash: a command, asked for · edit: the input of `Edit`, not asked
    for · ask: a question with options · plan: a plan · dialog: nothing · slow: seconds
    of words · work: seconds of silence.
    """

    kind: str
    value: Any = None


def steps_of(prompt: str) -> tuple[Step, ...]:
    """Return the steps of the answer to *prompt*."""
    scripted = _read_script().get(prompt.strip())
    if scripted is not None:
        return tuple(
            Step(kind, value) for step in scripted for kind, value in step.items()
        )
    match = _TAG.search(prompt)
    if match is None:
        return (Step("say", f"Stub answer to: {prompt}"),)
    return _tagged(match[1], match[2] or "")


def _tagged(tag: str, argument: str) -> tuple[Step, ...]:
    known = {
        "text": (Step("say", argument),),
        "question": (Step("say", QUESTION),),
        "bash": (
            Step("bash", argument),
            Step("say", "The command has been handled. Done."),
        ),
        "askuser": (
            Step("ask", DATABASE_QUESTION),
            Step("say", "Thank you, I will use your answer. Done."),
        ),
        "plan": (
            Step("plan", "# Plan\n\n1. Do it."),
            Step("say", "The plan has been handled. Done."),
        ),
        "dialog": (Step("dialog"), Step("say", "The dialog is closed.")),
        "slow": (Step("slow", int(argument) if argument.isdecimal() else 1),),
    }
    return known.get(tag, (Step("say", "Done."),))


def _read_script() -> dict[str, list[dict[str, Any]]]:
    try:
        script: dict[str, list[dict[str, Any]]] = json.loads(SCRIPT_FILE.read_text())
    except OSError:
        return {}
    return script
