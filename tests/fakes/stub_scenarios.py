"""What the stub model answers: a pure function of the last prompt.

A prompt selects a scenario with a tag anywhere in its text, `stub:NAME` or
`stub:NAME(ARGUMENT)`; parentheses in the argument may nest. How many answers of the
model followed that prompt selects the step: a tool call first, a closing line after it.

    (no tag)         echoes the prompt in one line
    text(T)          answers T
    long(N)          N lines
    markdown         a heading, a list, a table, code
    question         ends with a free-form question
    thinking         a thinking block, then an answer
    bash(CMD)        one Bash call; bash2(CMD) two at once; bg(CMD) in the background
    read2            two Reads outside of the project, whose dialogs open side by side
    write(NAME)      one Write call; read(NAME) a Read; edit(NAME) a Read, then an Edit
    askuser          AskUserQuestion with one question; askuser2 with two
    plan             a plan for approval
    agent(PROMPT)    a subagent that is told PROMPT; agentbg(PROMPT) in the background
    slow(SECONDS)    one word at a time over SECONDS
    slowstart(S)     silence for S seconds, then an answer
    hang             no answer, ever
    cut              the connection drops in the middle of an answer
    error(CODE)      an HTTP error
    usage(N)         claims N input tokens
    tool(NAME|JSON)  a call of any tool
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]
TAG: Final = re.compile(r"stub:([a-z0-9]+)")


@dataclass(frozen=True)
class Say:
    """Text of the model; *over_seconds* spreads it, *thinking* makes it a thought."""

    text: str
    over_seconds: float = 0
    thinking: bool = False


@dataclass(frozen=True)
class Call:
    """A tool call."""

    name: str
    arguments: Json


@dataclass(frozen=True)
class Answer:
    """One turn of the model."""

    blocks: tuple[Say | Call, ...]
    input_tokens: int | None = None
    wait_seconds: float = 0
    cut: bool = False


@dataclass(frozen=True)
class Refuse:
    """An HTTP error instead of an answer."""

    status: int


@dataclass(frozen=True)
class Hang:
    """The connection stays open and silent."""


Reply = Answer | Refuse | Hang


@dataclass(frozen=True)
class Prompt:
    """What a scenario may look at."""

    text: str
    step: int
    directory: str
    plan_file: str

    @property
    def name(self) -> str:
        found = TAG.search(self.text)
        return found.group(1) if found else ""

    @property
    def argument(self) -> str | None:
        found = TAG.search(self.text)
        rest = self.text[found.end() :] if found else ""
        return _nested(rest) if rest.startswith("(") else None

    def number(self, default: float) -> float:
        try:
            return float(self.argument or default)
        except ValueError:
            return default

    def path(self, default: str) -> str:
        name = self.argument or default
        return name if name.startswith("/") else f"{self.directory}/{name}"


def _nested(rest: str) -> str:
    """Return what stands between the first parenthesis and the one that closes it."""
    depth = 0
    for index, character in enumerate(rest):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return rest[1:index]
    return rest[1:]


DATABASE: Final[Json] = {
    "question": "Which database should the service use?",
    "header": "Database",
    "multiSelect": False,
    "options": [
        {"label": "SQLite", "description": "One file, no server to run"},
        {"label": "PostgreSQL", "description": "A server, concurrent writers"},
        {"label": "DuckDB", "description": "Columnar, for analytics"},
    ],
}
CHECKS: Final[Json] = {
    "question": "Which checks should run before each commit?",
    "header": "Checks",
    "multiSelect": True,
    "options": [
        {"label": "Lint", "description": "Style and simple mistakes"},
        {"label": "Types", "description": "Static type checking"},
        {"label": "Tests", "description": "The unit tests"},
    ],
}
PLAN: Final = "# Plan\n\n1. Add `greet` to `app.py`.\n2. Test it.\n3. Run the tests.\n"
MARKDOWN: Final = (
    "## Findings\n\nThere are **two** entry points:\n\n- `main()`\n- `once()`\n\n"
    "| name | lines |\n|------|-------|\n| main | 40 |\n| once | 12 |\n\n"
    "```python\ndef once():\n    return run(limit=1)\n```\n\nNothing else."
)
QUESTION: Final = (
    "I looked at the project and both approaches work. The first is simpler, the "
    "second is faster.\n\nWhich one would you like me to implement?"
)


def choose_reply(prompt: Prompt) -> Reply:
    """Return the model's next turn after *prompt*."""
    scenario = _SCENARIOS.get(prompt.name)
    if scenario:
        return scenario(prompt)
    words = " ".join(TAG.sub("", prompt.text).split())
    return _say(f"Stub answer to: {words[:80]}" if words else "Stub answer.")


def _say(text: str) -> Answer:
    return Answer((Say(text),))


def _steps(prompt: Prompt, *turns: tuple[Say | Call, ...]) -> Answer:
    return Answer(turns[min(prompt.step, len(turns) - 1)])


def _bash(prompt: Prompt, *, background: bool = False) -> Answer:
    return _steps(
        prompt,
        (Say("I will run a command."), _shell(prompt, background=background)),
        (Say("The command has been handled. Done."),),
    )


def _shell(prompt: Prompt, *, suffix: str = "", background: bool = False) -> Call:
    arguments: Json = {
        "command": (prompt.argument or "touch stub-made.txt") + suffix,
        "description": f"Run the stub command{suffix}",
    }
    if background:
        arguments["run_in_background"] = True
    return Call("Bash", arguments)


def _bash2(prompt: Prompt) -> Answer:
    calls = (_shell(prompt), _shell(prompt, suffix=" && echo second"))
    return _steps(prompt, (Say("Two commands."), *calls), (Say("Both done."),))


def _read2(prompt: Prompt) -> Answer:
    files = ("/etc/passwd", "/etc/group")
    calls = (Call("Read", {"file_path": path}) for path in files)
    closing = Say("Both have been handled.")
    return _steps(prompt, (Say("Two files."), *calls), (closing,))


def _write(prompt: Prompt) -> Answer:
    call = Call(
        "Write", {"file_path": prompt.path("stub-note.md"), "content": "# Note\n"}
    )
    return _steps(prompt, (Say("I will write a file."), call), (Say("Done."),))


def _read(prompt: Prompt) -> Answer:
    call = Call("Read", {"file_path": prompt.path("README.md")})
    return _steps(prompt, (call,), (Say("I have read the file. Done."),))


def _edit(prompt: Prompt) -> Answer:
    path = prompt.path("README.md")
    change = {"file_path": path, "old_string": "demo", "new_string": "demonstration"}
    return _steps(
        prompt,
        (Call("Read", {"file_path": path}),),
        (Say("I will edit the file."), Call("Edit", change)),
        (Say("The edit has been handled. Done."),),
    )


def _ask(prompt: Prompt, *questions: Json) -> Answer:
    call = Call("AskUserQuestion", {"questions": list(questions)})
    return _steps(
        prompt,
        (Say("I need a decision from you."), call),
        (Say("Thank you, I will use your answer. Done."),),
    )


def _plan(prompt: Prompt) -> Answer:
    submit = Call("ExitPlanMode", {"plan": PLAN})
    closing = (Say("The plan has been handled. Done."),)
    if not prompt.plan_file:
        return _steps(prompt, (Say("Here is my plan."), submit), closing)
    # In plan mode the CLI wants the plan in a file first.
    write = Call("Write", {"file_path": prompt.plan_file, "content": PLAN})
    return _steps(prompt, (Say("Here is my plan."), write), (submit,), closing)


def _agent(prompt: Prompt, *, background: bool = False) -> Answer:
    arguments: Json = {
        "description": "Look around",
        "prompt": prompt.argument or "List the files of the project.",
        "subagent_type": "general-purpose",
    }
    if background:
        arguments["run_in_background"] = True
    return _steps(
        prompt,
        (Say("I will delegate this."), Call("Agent", arguments)),
        (Say("The subagent has reported. Done."),),
    )


def _slow(prompt: Prompt) -> Answer:
    seconds = prompt.number(10)
    words = " ".join(f"word{n}" for n in range(1, max(2, int(seconds * 4)) + 1))
    return Answer((Say(words + ".", over_seconds=seconds),))


def _long(prompt: Prompt) -> Answer:
    count = int(prompt.number(60))
    return _say(
        "\n".join(f"Line {n} of the long stub answer." for n in range(1, count + 1))
    )


def _tool(prompt: Prompt) -> Answer:
    name, _, arguments = (prompt.argument or "").partition("|")
    call = Call(name.strip(), json.loads(arguments or "{}"))
    return _steps(prompt, (call,), (Say("The tool call has been handled. Done."),))


_SCENARIOS: Final[Mapping[str, Callable[[Prompt], Reply]]] = {
    "text": lambda prompt: _say(prompt.argument or ""),
    "long": _long,
    "markdown": lambda _: _say(MARKDOWN),
    "question": lambda _: _say(QUESTION),
    "thinking": lambda _: Answer(
        (Say("The stub thinks.", thinking=True), Say("Stub answer after thinking."))
    ),
    "bash": _bash,
    "bg": lambda prompt: _bash(prompt, background=True),
    "bash2": _bash2,
    "read2": _read2,
    "write": _write,
    "read": _read,
    "edit": _edit,
    "askuser": lambda prompt: _ask(prompt, DATABASE),
    "askuser2": lambda prompt: _ask(prompt, DATABASE, CHECKS),
    "plan": _plan,
    "agent": _agent,
    "agentbg": lambda prompt: _agent(prompt, background=True),
    "slow": _slow,
    "slowstart": lambda prompt: Answer(
        (Say("Late stub answer."),), wait_seconds=prompt.number(10)
    ),
    "hang": lambda _: Hang(),
    "cut": lambda _: Answer((Say("This stub answer is cut. " * 20),), cut=True),
    "error": lambda prompt: Refuse(int(prompt.number(529))),
    "usage": lambda prompt: Answer(
        (Say("Stub answer with a claim."),), input_tokens=int(prompt.number(100))
    ),
    "tool": _tool,
}
