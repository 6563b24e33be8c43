"""Our entries in the CLI's settings: their form, and a settings text with or without.

Everything here is pure: texts in, texts out. Events and verbs: docs/hook-protocol.md.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sidestage.agents.claude_code.json_text import (
    Container,
    insert,
    read_container,
    read_root,
    remove,
)

VERBS: Final[Mapping[str, str]] = {
    "SessionStart": "event",
    "SessionEnd": "event",
    "UserPromptSubmit": "event",
    "PreToolUse": "tool",
    "PostToolUse": "tool",
    "PostToolUseFailure": "tool",
    "PermissionRequest": "hold",
    "Notification": "tool",
    "Stop": "event",
    "StopFailure": "event",
    "SubagentStop": "event",
}
"""What the hook program does at each event. Only `hold` waits, and it holds up nothing:
the CLI runs it beside the open dialog."""
HOLD_SECONDS: Final = 86_400
"""The hook of a permission request; without a word the CLI ends one after 600 s."""
EVENT_SECONDS: Final = 5
"""Every other hook: it is done in 0.2 s, and the agent stands still meanwhile."""

MARK: Final = "# sidestage-hook"
"""Ends each command of ours; a shell takes it for a comment."""
_HOOKS: Final = "hooks"


@dataclass(frozen=True, slots=True)
class HookCommand:
    """How an agent starts the hook program."""

    python: Path
    program: Path
    socket: Path
    spool: Path | None = None
    """None where it cannot be written: in a sandbox."""
    yields: bool = True
    """Whether it does nothing in an agent that has our hooks from elsewhere."""

    def render(self, verb: str) -> str:
        """Return the shell command: silent, and 0 if anything of it is gone."""
        python, program = map(_quote, (self.python, self.program))
        words = [verb, "--socket", _quote(self.socket)]
        if self.spool is not None:
            words += ["--spool", _quote(self.spool)]
        run = f"[ -x {python} ] && [ -r {program} ] && exec {python} -I -S {program}"
        call = f"{run} {' '.join(words)} 2>/dev/null"
        # Terminals of ours have their hooks by `--settings`, and this variable.
        guard = '[ -n "$SIDESTAGE_HOOK_SOCKET" ] || ' if self.yields else ""
        return f"{guard}{{ {call}; }} || : {MARK}"


def render_entries(command: HookCommand) -> dict[str, dict[str, Any]]:
    """Return our entry for each event."""
    return {
        event: {
            _HOOKS: [
                {
                    "type": "command",
                    "command": command.render(verb),
                    "timeout": HOLD_SECONDS if verb == "hold" else EVENT_SECONDS,
                }
            ]
        }
        for event, verb in VERBS.items()
    }


def render_settings(command: HookCommand) -> str:
    """Return a settings file that holds our hooks alone, for `--settings`."""
    hooks = {event: [entry] for event, entry in render_entries(command).items()}
    return json.dumps({_HOOKS: hooks}, indent=2) + "\n"


def find_ours(text: str) -> list[tuple[str, Any]]:
    """Return our entries in a settings text, each with its event.

    Raises `NotJson` for what is no settings file.
    """
    return [(event, json.loads(text[a:b])) for event, a, b in _our_entries(text)]


def is_current(text: str, command: HookCommand) -> bool:
    """Tell whether exactly our entries of today are there."""
    wanted = list(render_entries(command).items())
    found = find_ours(text)
    return len(found) == len(wanted) and all(entry in found for entry in wanted)


def add_ours(text: str, command: HookCommand) -> str:
    """Return *text* with our entries behind whatever each event has."""
    if _hooks_of(text) is None:
        text = insert(text, read_root(text), {}, key=_HOOKS)
    for event, entry in render_entries(command).items():
        hooks = _hooks_of(text)
        assert hooks is not None
        member = hooks.find(event)
        if member is None:
            text = insert(text, hooks, [entry], key=event)
        else:
            entries = read_container(text, member.value_start, "[")
            text = insert(text, entries, entry, key=None)
    return text


def remove_ours(text: str) -> str:
    """Return *text* without our entries, and what held nothing else."""
    while (found := next(_our_entries(text), None)) is not None:
        event, start, _ = found
        hooks = _hooks_of(text)
        assert hooks is not None
        member = hooks.find(event)
        assert member is not None
        entries = read_container(text, member.value_start, "[")
        if len(entries.items) > 1:
            [ours] = [it for it in entries.items if it.start == start]
            text = remove(text, entries, ours)
        elif len(hooks.items) > 1:
            text = remove(text, hooks, member)
        else:
            root = read_root(text)
            last = root.find(_HOOKS)
            assert last is not None
            text = remove(text, root, last)
    return text


def _our_entries(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield event, start and end of each entry that runs our program."""
    hooks = _hooks_of(text)
    for member in hooks.items if hooks else ():
        if hooks is None or hooks.find(member.key or "") is not member:
            continue  # of two alike keys the CLI reads the last
        for item in read_container(text, member.value_start, "[").items:
            if _is_ours(json.loads(text[item.start : item.end])):
                yield member.key or "", item.start, item.end


def _hooks_of(text: str) -> Container | None:
    member = read_root(text).find(_HOOKS)
    return None if member is None else read_container(text, member.value_start, "{")


def _is_ours(entry: object) -> bool:
    """Tell whether every hook of an entry is ours: one that was added to is not."""
    hooks = entry.get(_HOOKS) if isinstance(entry, dict) else None
    if not isinstance(hooks, list) or not hooks:
        return False
    return all(
        isinstance(hook, dict) and str(hook.get("command", "")).endswith(MARK)
        for hook in hooks
    )


def _quote(path: Path) -> str:
    return shlex.quote(str(path))
