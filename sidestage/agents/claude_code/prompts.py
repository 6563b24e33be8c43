"""Who said it: a person's prompt, an interrupt, or text that the CLI injected."""

import re
from enum import StrEnum
from typing import Final

from sidestage.agents.claude_code.records import Record, text_of

_INJECTED_TAGS: Final = (
    "bash-input",
    "bash-stderr",
    "bash-stdout",
    "command-args",
    "command-contents",
    "command-message",
    "command-name",
    "ide_opened_file",
    "ide_selection",
    "local-command-caveat",
    "local-command-stderr",
    "local-command-stdout",
    "system-reminder",
    "task-notification",
    "user-memory-input",
)
_TAGS = "|".join(_INJECTED_TAGS)
_LEADING_TAG = re.compile(rf"\s*<({_TAGS})>.*?(?:</\1>\s*|\Z)", re.DOTALL)
_TAG_NAME = re.compile(rf"\s*<({_TAGS})>")
_ANY_TAG = re.compile(rf"</?(?:{_TAGS})>")
# CSI and OSC sequences of a command's coloured output.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_INTERRUPT_PREFIX: Final = "[Request interrupted by user"
_HUMAN_SOURCES: Final = frozenset({"typed", "queued", "sdk"})


class UserText(StrEnum):
    """What the text of a `user` record is."""

    PROMPT = "PROMPT"
    COMMAND = "COMMAND"
    NOTICE = "NOTICE"
    SUMMARY = "SUMMARY"
    INTERRUPTION = "INTERRUPTION"
    HIDDEN = "HIDDEN"
    """Context for the model that no person wrote or sees."""


def classify_user(record: Record, text: str) -> UserText:
    """Say what *text*, a text block of the `user` record, is."""
    if record.flag("isCompactSummary"):
        return UserText.SUMMARY
    if record.flag("isMeta"):
        return UserText.HIDDEN
    if is_interruption(record):
        return UserText.INTERRUPTION
    if text_of(record.object("origin"), "kind") == "task-notification":
        return UserText.NOTICE
    if strip_injected(text):
        return UserText.PROMPT
    return _classify_tag(text)


def _classify_tag(text: str) -> UserText:
    match = _TAG_NAME.match(text)
    name = match[1] if match else ""
    if name == "task-notification":
        return UserText.NOTICE
    if name.startswith(("command-", "local-command-std", "bash-")):
        return UserText.COMMAND
    return UserText.HIDDEN


def is_interruption(record: Record) -> bool:
    """Tell whether the `user` record notes an interrupt, by its structure.

    The same words may be typed: a typed prompt has an origin or a source, and its
    content is a string.
    """
    if record.type != "user":
        return False
    if record.text("interruptedMessageId"):
        return True
    if record.object("origin") or record.text("promptSource"):
        return False
    content = record.message.get("content")
    if not isinstance(content, list) or len(content) != 1:
        return False
    block = content[0]
    text = text_of(block, "text") if isinstance(block, dict) else None
    return text is not None and text.startswith(_INTERRUPT_PREFIX)


def find_prompt(record: Record) -> str | None:
    """Return what a person (or an SDK) asked in this record, injected tags skipped."""
    if record.type != "user" or record.is_sidechain:
        return None
    source = record.text("promptSource")
    if source is not None and source not in _HUMAN_SOURCES:
        return None
    for block in record.blocks:
        text = text_of(block, "text")
        if text and classify_user(record, text) is UserText.PROMPT:
            return strip_injected(text)
    return None


def strip_injected(text: str) -> str:
    """Return *text* without the injected tags it starts with."""
    while match := _LEADING_TAG.match(text):
        text = text[match.end() :]
    return text.strip()


def command_text(text: str) -> str:
    """Return a slash command or its output without tags and colours."""
    name = re.search(r"<command-name>(.*?)</command-name>", text, re.DOTALL)
    if name is None:
        return _ESCAPES.sub("", _ANY_TAG.sub("", text)).strip()
    arguments = re.search(r"<command-args>(.*?)</command-args>", text, re.DOTALL)
    words = (name[1], arguments[1] if arguments else "")
    return " ".join(word.strip() for word in words if word.strip())


def notice_text(text: str) -> str:
    """Return what a task's notification says: its summary, if it has one."""
    summary = re.search(r"<summary>(.*?)(?:</summary>|\Z)", text, re.DOTALL)
    return summary[1].strip() if summary else command_text(text)
