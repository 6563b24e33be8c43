"""The port through which devices out of reach are told that something waits."""

from typing import Protocol


class Push(Protocol):
    """Wakes devices through push services. No content goes out, ever."""

    def reaches_anyone(self) -> bool:
        """Tell whether a device that may answer has an endpoint (no I/O)."""

    def waiting(self, subject_id: str) -> None:
        """Say once that the offer or request waits; sent in the background."""

    def settled(self, subject_id: str) -> None:
        """Withdraw what was said of it, if anything was."""


class NoPush:
    """A `Push` that reaches nobody."""

    def reaches_anyone(self) -> bool:
        """Tell that there is no endpoint."""
        return False

    def waiting(self, subject_id: str) -> None:
        """Tell nobody."""

    def settled(self, subject_id: str) -> None:
        """Have nothing to withdraw."""
