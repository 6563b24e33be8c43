"""Hooks: their sockets, the spool, and the delivery of events to who listens."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from api.hook_program import installed_command
from api.hook_socket import HookSockets
from api.wiring.background import running
from api.wiring.ground import Ground
from api.wiring.seams import Seams
from sidestage.agents.claude_code.discovery import Discovery, pause
from sidestage.agents.claude_code.hook_installer import HookInstaller
from sidestage.agents.claude_code.hook_intake import HookIntake
from sidestage.agents.claude_code.hook_spool import replay
from sidestage.sessions.hook_delivery import HookDelivery
from sidestage.sessions.hooks import HookListener
from sidestage.settings import Settings

FIRST_REPLAY_SECONDS: Final = 5.0
"""The most that new events wait for the spooled ones that came before them."""
REPLAY_SECONDS: Final = 30.0
"""How often the spool is looked at again: a hook also spools while we are too busy."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What there is of hooks; `answering` sets it to work."""

    delivery: HookDelivery
    intake: HookIntake
    sockets: HookSockets
    installer: HookInstaller
    counts: "Counter[str]"
    spool: Path
    is_tapped: bool = False
    """Whether a test listens instead of the parts."""

    def add_listener(self, listener: HookListener) -> None:
        """Tell *listener* of every event from now on."""
        if not self.is_tapped:
            self.delivery.add_listener(listener)

    def counters(self) -> Mapping[str, int]:
        """Return what was taken and dropped, for `server.health`."""
        return {**self.intake.counters(), **self.counts}


def make_hooks(
    settings: Settings, seams: Seams, ground: Ground, discovery: Discovery
) -> Hooks:
    """Make the parts; nothing is answered yet."""
    delivery = HookDelivery()
    for listener in seams.hook_listeners:
        delivery.add_listener(listener)
    intake = HookIntake(discovery.sessions, delivery)
    names = ("frames_bad", "foreign_users", "connections_refused")
    counts = Counter({f"hook_{name}": 0 for name in names})
    sockets = HookSockets(intake, state_dir=settings.state_dir, counts=counts)
    installer = HookInstaller(
        config_dirs=settings.claude_dirs,
        kept_dir=settings.state_dir / "hooks",
        command=installed_command(settings),
        audit=ground.audit,
    )
    return Hooks(
        delivery,
        intake,
        sockets,
        installer,
        counts,
        settings.hook_spool,
        is_tapped=bool(seams.hook_listeners),
    )


@asynccontextmanager
async def answering(hooks: Hooks) -> AsyncGenerator[None]:
    """Apply what was spooled, then answer hooks until the block ends."""
    replayed = asyncio.Event()
    async with running(spool=_replay_regularly(hooks, replayed)):
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_REPLAY_SECONDS):
                await replayed.wait()
        try:
            await hooks.sockets.start()
            yield
        finally:
            await hooks.sockets.close()
            await hooks.delivery.close()


async def _replay_regularly(hooks: Hooks, replayed: asyncio.Event) -> None:
    while True:
        await replay(hooks.spool, hooks.intake)
        replayed.set()
        await pause(REPLAY_SECONDS)
