"""Whether agents' settings run our hooks, and the port that changes it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sidestage.devices.model import Principal


class HookState(StrEnum):
    """How our hooks stand in one settings file of an agent."""

    INSTALLED = "INSTALLED"
    OUTDATED = "OUTDATED"
    """Some of them are there, or they run another program or socket than ours."""
    ABSENT = "ABSENT"
    UNREADABLE = "UNREADABLE"
    """The file is no settings file; it is left alone."""


@dataclass(frozen=True, slots=True)
class HookStatus:
    """One settings file."""

    settings_file: str
    state: HookState
    note: str | None = None
    """What is wrong with it, as a sentence."""


class HookSetup(Protocol):
    """Puts our hooks into agents' settings, and takes them out again."""

    async def status(self) -> tuple[HookStatus, ...]:
        """Return how they stand in each settings file."""

    async def install(
        self, *, only: str | None = None, actor: Principal
    ) -> tuple[HookStatus, ...]:
        """Put them into every settings file; what is there already stays as it is.

        *only* names one of them. Raises `HooksUnreadable` before anything is written,
        `HooksNotWritten`, `InvalidInput` if there is no such file to have them.
        """

    async def uninstall(
        self, *, only: str | None = None, actor: Principal
    ) -> tuple[HookStatus, ...]:
        """Take them out of every settings file, or of the one that *only* names.

        A file that nobody changed since gets back the bytes it had before. Raises as
        `install` does.
        """
