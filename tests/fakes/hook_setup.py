"""Hooks in settings files, and the adoption policy, in memory."""

from sidestage.devices.model import Principal
from sidestage.errors import HooksUnreadable
from sidestage.projects.adoption import Adoption, AdoptionPolicy
from sidestage.sessions.hook_setup import HookSetup, HookState, HookStatus

FILE = "/home/dev/.claude/settings.json"


class FakeHookSetup:
    """The port `HookSetup`, of one settings file."""

    def __init__(self) -> None:
        self.state = HookState.ABSENT
        self.note: str | None = None
        self.only: str | None = None

    async def status(self) -> tuple[HookStatus, ...]:
        return (HookStatus(FILE, self.state, self.note),)

    async def install(
        self, *, only: str | None = None, actor: Principal
    ) -> tuple[HookStatus, ...]:
        self.only = only
        return await self._become(HookState.INSTALLED)

    async def uninstall(
        self, *, only: str | None = None, actor: Principal
    ) -> tuple[HookStatus, ...]:
        self.only = only
        return await self._become(HookState.ABSENT)

    async def _become(self, state: HookState) -> tuple[HookStatus, ...]:
        if self.state is HookState.UNREADABLE:
            raise HooksUnreadable(str(self.note))
        self.state = state
        return await self.status()


class FakeAdoption:
    """The port `Adoption`; it takes every policy as it is."""

    def __init__(self) -> None:
        self.policy = AdoptionPolicy()

    def adopts(self, directory: str | None) -> bool:
        return self.policy.enabled and directory not in self.policy.excluded

    async def set_policy(
        self, policy: AdoptionPolicy, *, actor: Principal
    ) -> AdoptionPolicy:
        self.policy = policy
        return policy


def _are_the_ports(
    setup: FakeHookSetup, adoption: FakeAdoption
) -> tuple[HookSetup, Adoption]:
    return setup, adoption
