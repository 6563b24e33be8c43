"""The port to where terminals are written down."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sidestage.audit import AuditRecord
from sidestage.ids import TerminalId
from sidestage.terminals.model import Terminal


@dataclass(frozen=True, slots=True)
class StoredTerminal:
    """A terminal's row; *starting* until the host has confirmed the start."""

    terminal: Terminal
    starting: bool


@dataclass(frozen=True, slots=True)
class StartKey:
    """What makes a start idempotent: the client's key and a digest of its input."""

    key: str
    input_sha256: str
    terminal_id: TerminalId
    created_at: datetime


class TerminalStore(Protocol):
    """Keeps rows and keys. Each call is one transaction, on disk when it returns."""

    async def load(self) -> tuple[tuple[StoredTerminal, ...], tuple[StartKey, ...]]:
        """Return every row, oldest first, and every key."""

    async def begin(
        self, terminal: Terminal, key: StartKey | None, record: AuditRecord
    ) -> None:
        """Write the row of a start that is about to be asked of the host.

        *record* says who asks: after a crash nobody else can tell.
        """

    async def save(self, terminal: Terminal, record: AuditRecord | None = None) -> None:
        """Write the row, no longer starting; an unknown one is inserted (adopted)."""

    async def drop(
        self,
        terminal_id: TerminalId,
        *,
        keys: bool,
        record: AuditRecord | None = None,
    ) -> None:
        """Delete the row, and with *keys* what would make its start idempotent."""

    async def forget_keys_before(self, at: datetime) -> None:
        """Delete the keys that were made before *at*."""
