"""For which sessions hooks may make requests and offers."""

from dataclasses import dataclass
from typing import Protocol

from sidestage.devices.model import Principal


@dataclass(frozen=True, slots=True)
class AdoptionPolicy:
    """The owner's decision: on or off, and folders that are left alone.

    *excluded* are absolute real paths; each covers what lies in it, by whole
    components: `/a/b` does not cover `/a/bc`.
    """

    enabled: bool = True
    excluded: tuple[str, ...] = ()


class AdoptEverything:
    """A policy that cannot be changed: on, and no folder left alone."""

    policy = AdoptionPolicy()

    def adopts(self, directory: str | None) -> bool:
        """Adopt every session."""
        del directory
        return True

    async def set_policy(
        self, policy: AdoptionPolicy, *, actor: Principal
    ) -> AdoptionPolicy:
        """Keep what there is."""
        del policy, actor
        return self.policy


class Adoption(Protocol):
    """The policy in force. It is asked anew before every request and offer."""

    @property
    def policy(self) -> AdoptionPolicy:
        """The policy as it is now."""

    def adopts(self, directory: str | None) -> bool:
        """Tell whether sessions of that folder may make requests and offers (no I/O).

        A folder that is not known is not adopted once any folder is excluded.
        """

    async def set_policy(
        self, policy: AdoptionPolicy, *, actor: Principal
    ) -> AdoptionPolicy:
        """Put *policy* in force and on disk; raises `InvalidInput`."""
