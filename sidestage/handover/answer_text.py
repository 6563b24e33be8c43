"""What an answer may look like before it is typed into an agent.

What a person types there may act: a leading `/` is a command of the CLI, a leading `!`
runs in a shell, some words end it, and `ESC [ 201 ~` would end the paste in which the
answer travels (docs/security.md, "Typing into an agent").
"""

import re
import unicodedata
from typing import Final

from sidestage.errors import AnswerStartsACommand, InvalidInput

ANSWER_LIMIT_CHARACTERS: Final = 8_000
"""As much as the longest question; an envelope holds both."""
EMPTY: Final = "Type your answer before taking over the conversation."

# C0, DEL and C1 but line feed and tab, and what UTF-8 cannot carry.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ENDS_THE_AGENT: Final = frozenset({"exit", "quit", ":q", ":q!", ":wq", ":wq!"})
"""Typed alone they end Claude Code (measured, 2.1.328)."""


def checked_answer(text: str) -> str:
    """Return *text* as it is to be typed.

    In NFC, without control characters but line feed and tab, and with a space before a
    leading `!`. Raises `InvalidInput` if nothing is left or it is too long, and
    `AnswerStartsACommand` for what the agent's program would take as a command.
    """
    cleaned = clean_typed(text)
    if not cleaned.strip():
        raise InvalidInput(EMPTY)
    if len(cleaned) > ANSWER_LIMIT_CHARACTERS:
        raise InvalidInput(f"An answer has 1 to {ANSWER_LIMIT_CHARACTERS} characters.")
    first = cleaned.lstrip()
    if first.startswith("/"):
        raise AnswerStartsACommand(
            "An answer that begins with / would run a command of the agent's program. "
            'Put words before it, such as "My answer: ".'
        )
    if first.strip().casefold() in _ENDS_THE_AGENT:
        raise AnswerStartsACommand(
            "That word alone would end the agent's program. Put it into a sentence."
        )
    # A paste that starts with ! is run by bash, without a question.
    return f" {first}" if first.startswith("!") else cleaned


def clean_typed(text: str) -> str:
    r"""Return *text* in NFC without control characters; `\r\n` and `\r` end lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", _CONTROLS.sub("", lines))


def seed_text(*, answer: str, question: str, summary: str) -> str:
    """Return what a fresh session is told when its conversation cannot be resumed.

    It begins with words of ours, so nothing in it is taken as a command.
    """
    parts = ["This continues a conversation whose transcript is gone."]
    if summary:
        parts.append(f"What was said last:\n{clean_typed(summary)}")
    parts.append(f"You asked:\n{clean_typed(question)}")
    parts.append(f"My answer:\n{answer}")
    return "\n\n".join(parts)
