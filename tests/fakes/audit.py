"""An audit log in memory."""

from sidestage.audit import AuditEntry, AuditLog, AuditOutcome, AuditRecord
from tests.fakes.values import START


def a_record(**changes: str) -> AuditRecord:
    """Return a record."""
    return AuditRecord(
        actor=changes.get("actor", "admin"),
        action=changes.get("action", "session.resume"),
        target_id=None,
        outcome=AuditOutcome.DONE,
    )


class FakeAudit(AuditLog):
    """Holds the entries it is given."""

    def __init__(self, count: int = 0) -> None:
        self.entries: list[AuditEntry] = []
        for _ in range(count):
            self._append(a_record())

    def _append(self, record: AuditRecord) -> AuditEntry:
        seq = len(self.entries) + 1
        entry = AuditEntry(seq, START, record, f"{seq:064x}")
        self.entries.append(entry)
        return entry

    async def write(self, record: AuditRecord) -> AuditEntry:
        """Append *record*."""
        return self._append(record)

    async def list_entries(
        self, *, limit: int, before_seq: int | None = None, after_seq: int | None = None
    ) -> tuple[AuditEntry, ...]:
        """Return entries newest first, as the port says."""
        found = [
            entry
            for entry in self.entries
            if (before_seq is None or entry.seq < before_seq)
            and (after_seq is None or entry.seq > after_seq)
        ]
        if after_seq is not None and before_seq is None:
            return tuple(reversed(found[:limit]))
        return tuple(reversed(found[-limit:]))

    async def head(self) -> AuditEntry | None:
        """Return the newest entry, or None."""
        return self.entries[-1] if self.entries else None
