"""The audit log's values and port: who did what to which object, and how it ended."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class AuditOutcome(StrEnum):
    """How an action ended."""

    BEGUN = "BEGUN"
    """A start is about to be tried; another entry says how it ended."""
    DONE = "DONE"
    REFUSED = "REFUSED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What is to be written down: ids and codes, never content."""

    actor: str
    """`admin`, `local:<pid>`, a device id, `hook`, `system`, `anonymous`."""
    action: str
    """The verb and noun in lower case: `session.resume`, `project.register`."""
    target_id: str | None
    outcome: AuditOutcome
    address: str | None = None
    code: str | None = None
    message_id: str | None = None
    detail: str | None = None
    """Short and without content, such as `sandbox=bubblewrap`."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A record with its place in the chain."""

    seq: int
    at: datetime
    record: AuditRecord
    hash: str


class AuditLog(Protocol):
    """The append-only, hash-chained log."""

    async def write(self, record: AuditRecord) -> AuditEntry:
        """Append *record*; it is on disk when this returns."""

    async def list_entries(
        self, *, limit: int, before_seq: int | None = None, after_seq: int | None = None
    ) -> tuple[AuditEntry, ...]:
        """Return entries newest first, older than *before_seq*, newer than *after_seq*.

        With *after_seq* and no *before_seq* they are the ones nearest to *after_seq*.
        """

    async def head(self) -> AuditEntry | None:
        """Return the newest entry, or None."""
