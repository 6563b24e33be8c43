"""How long the handover waits for an agent, in one place: tests wait less."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds, measured with Claude Code 2.1.328 on two busy cores, with room."""

    flush_seconds: float = 3.0
    """The CLI writes a message before or within a moment of its Stop hook."""
    shown_seconds: float = 5.0
    """A paste is shown within 0.1 s on an idle machine."""
    leaves_seconds: float = 1.0
    """What Enter has sent leaves the box within 0.1 s."""
    patience_seconds: float = 20.0
    """A fork is at its prompt within 2 s; a dialog holds it for ever."""
    look_again_seconds: float = 0.25
    """Besides every event: screens and dialogs tell nobody of theirs."""


STANDARD = Pace()
