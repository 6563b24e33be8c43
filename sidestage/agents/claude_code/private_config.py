"""What of `.claude.json` goes into a sandbox, and what comes back.

The file decides what the CLI runs and trusts (an `mcpServers` entry of a project is
started without a question), so a sandbox gets a copy, and of that copy only counters
return. Pure: values in, values out.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Final

Json = dict[str, Any]

_SHARED_KEYS: Final = frozenset(
    {
        # Gates of the first start: each missing one opens a dialog, or ends the CLI.
        "hasCompletedOnboarding",
        "lastOnboardingVersion",
        "customApiKeyResponses",
        "hasSeenAutoDefaultNotice",
        "hasSeenAutoDefaultNudge",
        "hasResetAutoModeOptInForDefaultOffer",
        "migrationVersion",
        "opusProMigrationComplete",
        "numStartups",
        "lastReleaseNotesSeen",
        "installMethod",
        "autoUpdates",
        # Whose login it is: the credentials themselves are shared as well.
        "oauthAccount",
        "userID",
        "machineID",
        # How it looks.
        "theme",
        "editorMode",
        "verbose",
        "preferredNotifChannel",
    }
)

_PRIVATE_PROJECT_KEYS: Final = frozenset({"mcpServers", "mcpContextUris", "history"})
"""Of the project's own entry: server settings may hold other services' secrets, and
older versions kept prompts in `history`."""

_TRUST: Final = "hasTrustDialogAccepted"

_NUMBERS: Final = re.compile(
    r"last(Cost|APIDuration|APIDurationWithoutRetries|ToolDuration|Duration|StartTime"
    r"|LinesAdded|LinesRemoved|Total[A-Za-z]{1,40}|Fps[A-Za-z0-9]{1,40})"
)
"""Counters the CLI writes at its end (2.1.328). An unknown key is never merged: a later
version might act on it."""
_FLAGS: Final = frozenset({"lastGracefulShutdown"})
_NAMES: Final = {
    "lastSessionId": re.compile(r"[0-9A-Fa-f-]{1,64}"),
    "lastVersionBase": re.compile(r"[0-9A-Za-z.+-]{1,32}"),
}
_USAGE: Final = "lastModelUsage"
MODELS_LIMIT: Final = 32
"""Models in one session's usage; a session seldom sees three."""
NAME_LIMIT: Final = 128
"""Characters of a model's or counter's name; real ones have under 40."""
NUMBER_LIMIT: Final = 2**53
"""The CLI counts exactly up to here; times in milliseconds have 41 bits."""


def make_private_config(real: Json, projects: Iterable[str]) -> Json:
    """Return the copy for a sandbox that works in *projects* (paths, the keys).

    Trust given to a folder above counts, as it does for the CLI.
    """
    entries = _entries(real)
    private = {key: value for key, value in real.items() if key in _SHARED_KEYS}
    private["projects"] = {
        path: _private_entry(entries.get(path), trusted=_is_trusted(entries, path))
        for path in projects
    }
    return private


def _entries(config: Json) -> Json:
    entries = config.get("projects")
    return entries if isinstance(entries, dict) else {}


def _private_entry(entry: object, *, trusted: bool) -> Json:
    kept = entry if isinstance(entry, dict) else {}
    private = {k: v for k, v in kept.items() if k not in _PRIVATE_PROJECT_KEYS}
    if trusted:
        private[_TRUST] = True
    return private


def _is_trusted(entries: Mapping[str, Any], path: str) -> bool:
    folders = [path, *map(str, PurePath(path).parents)]
    found = (entries.get(folder) for folder in folders)
    return any(isinstance(e, dict) and e.get(_TRUST) is True for e in found)


def merge_counters(real: Json, private: Json, projects: Iterable[str]) -> bool:
    """Put the counters of *projects* from *private* into *real*; tell if any changed.

    An entry that *real* does not have is not made.
    """
    changed = False
    for path in projects:
        target, source = _entries(real).get(path), _entries(private).get(path)
        if isinstance(target, dict) and isinstance(source, dict):
            counters = {k: v for k, v in source.items() if _is_counter(k, v)}
            changed = changed or any(target.get(k) != v for k, v in counters.items())
            target.update(counters)
    return changed


def _is_counter(key: str, value: object) -> bool:
    """Tell whether *key* may be merged, and *value* is what it should be."""
    if key in _FLAGS:
        return isinstance(value, bool)
    if key in _NAMES:
        return isinstance(value, str) and _NAMES[key].fullmatch(value) is not None
    if key == _USAGE:
        return _is_usage(value)
    return _NUMBERS.fullmatch(key) is not None and _is_number(value)


def _is_usage(value: object) -> bool:
    """Tell whether *value* is numbers by name by model."""
    if not isinstance(value, dict) or len(value) > MODELS_LIMIT:
        return False
    return all(
        isinstance(usage, dict)
        and len(usage) <= MODELS_LIMIT
        and all(len(name) <= NAME_LIMIT for name in (model, *usage))
        and all(_is_number(count) for count in usage.values())
        for model, usage in value.items()
    )


def _is_number(value: object) -> bool:
    """Tell whether *value* is a number that JSON has: NaN and the infinities are not.

    Python reads and writes those all the same; the CLI could not read its file again.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -NUMBER_LIMIT <= value <= NUMBER_LIMIT
