"""Who decides the size of a terminal: whoever typed last, or claimed it.

Attaching, watching, focus reports and automatic answers decide nothing, so a phone in a
pocket never shrinks the terminal of the person at the desk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sidestage.ids import TerminalId

Size = tuple[int, int]
"""Columns and rows."""


class SizedClient(Protocol):
    """A client, as far as sizes go."""

    size: Size | None
    """What fits its window; None until it says."""

    def ownership_changed(self) -> None:
        """Take note that this client owns the size now, or no more."""


@dataclass(slots=True)
class _Owned:
    owner: SizedClient
    asked: Size | None = None
    """The size asked of the host last, so that each key does not ask again."""


class SizeOwners:
    """The owner of each terminal's size. *resize* asks the host; it must not block."""

    def __init__(self, resize: Callable[[TerminalId, Size], None]) -> None:
        self._resize = resize
        self._owned: dict[TerminalId, _Owned] = {}

    def owns(self, terminal_id: TerminalId, client: SizedClient) -> bool:
        """Tell whether *client* decides the size."""
        owned = self._owned.get(terminal_id)
        return owned is not None and owned.owner is client

    def typed(self, terminal_id: TerminalId, client: SizedClient) -> None:
        """Take note that *client* typed: the size is its own from now on."""
        if client.size is None:
            return  # it never said how large it is, so it cannot own a size
        self._take(terminal_id, client)
        self._apply(terminal_id, client.size)

    def claimed(self, terminal_id: TerminalId, client: SizedClient, size: Size) -> None:
        """Give the size to *client*, at *size*."""
        client.size = size
        self._take(terminal_id, client)
        self._apply(terminal_id, size)

    def resized(self, terminal_id: TerminalId, client: SizedClient, size: Size) -> None:
        """Take note of a client's new size; the terminal follows only its owner."""
        client.size = size
        if self.owns(terminal_id, client):
            self._apply(terminal_id, size)

    def noted(self, terminal_id: TerminalId, size: Size) -> None:
        """Take note of the size that the host says a terminal has."""
        owned = self._owned.get(terminal_id)
        if owned is not None and owned.asked != size:
            owned.asked = None  # somebody else changed it: the next key asks again

    def left(self, terminal_id: TerminalId, client: SizedClient) -> None:
        """Let *client* go; the size stays as it is."""
        if self.owns(terminal_id, client):
            del self._owned[terminal_id]

    def _take(self, terminal_id: TerminalId, client: SizedClient) -> None:
        before = self._owned.get(terminal_id)
        if before is not None and before.owner is client:
            return
        self._owned[terminal_id] = _Owned(client)
        if before is not None:
            before.owner.ownership_changed()
        client.ownership_changed()

    def _apply(self, terminal_id: TerminalId, size: Size) -> None:
        owned = self._owned[terminal_id]
        if owned.asked != size:
            owned.asked = size
            self._resize(terminal_id, size)
