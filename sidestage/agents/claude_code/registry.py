"""The CLI's registry of live processes: `sessions/<pid>.json`.

The file is rewritten in place, so a read may meet half of it: read again. The `.key`
beside it holds a token of the CLI and is never opened.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.records import Json, parse_object, text_of
from sidestage.agents.regular_files import open_regular
from sidestage.ids import ConversationId
from sidestage.sessions.model import Process

REGISTRY_LIMIT_BYTES: Final = 65_536
"""Real files have under 1 KiB; a larger one is not one."""
READ_LIMIT_ATTEMPTS: Final = 3
"""A rewrite takes microseconds; its end is a file change, which is another read."""

_FILE_NAME = re.compile(r"[0-9]{1,10}\.json")
_PID_LIMIT: Final = 1 << 22  # PID_MAX_LIMIT on 64-bit Linux (proc(5))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEntry:
    """What one live (or killed) process of the CLI says about itself."""

    process: Process
    conversation_id: ConversationId = field(repr=False)
    pid_domain: str | None
    """`linux:<machine id>:pid:[<inode>]`; None: an older CLI that did not say."""
    directory: str | None
    status: str | None
    """`busy`, `idle`, `waiting`; None in the first 0.2 s."""
    waiting_for: str | None
    name: str | None
    """Only a name that a person gave; others are derived from folder or prompt."""
    entrypoint: str | None
    """`cli`; `sdk-cli` (`-p`), `sdk-py` and the like for a run without dialogs."""
    version: str | None
    started_at: datetime | None
    status_at: datetime | None
    updated_at: datetime | None

    @property
    def is_headless(self) -> bool:
        """Whether a program drives this process, so that no dialog ever opens."""
        return self.entrypoint is not None and self.entrypoint.startswith("sdk")


def is_registry_file(name: str) -> bool:
    """Tell whether a file of that name is a registry file (and no key)."""
    return _FILE_NAME.fullmatch(name) is not None


def parse_registry(data: bytes) -> RegistryEntry | None:
    """Return the entry in *data*, or None if it is torn or no entry."""
    raw = parse_object(data)
    if raw is None:
        return None
    pid = raw.get("pid")
    conversation = text_of(raw, "sessionId")
    if not isinstance(pid, int) or not 0 < pid <= _PID_LIMIT or conversation is None:
        return None
    return RegistryEntry(
        process=Process(pid, _start_ticks(raw)),
        conversation_id=ConversationId(conversation),
        pid_domain=text_of(raw, "pidDomain"),
        directory=text_of(raw, "cwd"),
        status=text_of(raw, "status"),
        waiting_for=text_of(raw, "waitingFor"),
        name=_given_name(raw),
        entrypoint=text_of(raw, "entrypoint"),
        version=text_of(raw, "version"),
        started_at=_moment(raw, "startedAt"),
        status_at=_moment(raw, "statusUpdatedAt"),
        updated_at=_moment(raw, "updatedAt"),
    )


def read_registry(path: Path) -> RegistryEntry | None:
    """Read a registry file; None if it is gone, or torn at each attempt.

    Raises no `OSError`: an unreadable entry is no entry.
    """
    for _ in range(READ_LIMIT_ATTEMPTS):
        try:
            with open_regular(path) as file:
                data = file.read(REGISTRY_LIMIT_BYTES + 1)
        except OSError:
            return None
        if len(data) > REGISTRY_LIMIT_BYTES:
            return None
        entry = parse_registry(data)
        if entry is not None:
            return entry
    return None


def _start_ticks(raw: Json) -> str:
    value = raw.get("procStart")
    return str(value) if isinstance(value, (str, int)) else ""


def _given_name(raw: Json) -> str | None:
    return text_of(raw, "name") if raw.get("nameSource") == "user" else None


def _moment(raw: Json, key: str) -> datetime | None:
    """Return a time in milliseconds since 1970 as UTC."""
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
