"""Requests of live sessions: held, watched, answered."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from api.wiring.background import running
from api.wiring.devices import DeviceParts
from api.wiring.ground import Ground
from api.wiring.hooks import Hooks
from sidestage.agents.claude_code.discovery import Discovery
from sidestage.devices.push import Push
from sidestage.projects.adoption import AdoptionKeeper
from sidestage.requests.desk import RequestDesk
from sidestage.requests.intake import RequestIntake
from sidestage.requests.ledger import RequestLedger
from sidestage.requests.parts import LedgerParts
from sidestage.requests.watch import RequestWatch
from sidestage.settings import Settings
from sidestage.storage.requests import SqlRequestStore
from sidestage.storage.stores import utc_now


@dataclass(frozen=True, slots=True)
class WiredRequests:
    """The desk that answers them, and who takes hooks in for it."""

    desk: RequestDesk
    intake: RequestIntake

    def counters(self) -> Mapping[str, int]:
        """Return why hooks were not held, for `server.health`."""
        return self.intake.counters


@asynccontextmanager
async def open_requests(
    settings: Settings,
    ground: Ground,
    devices: DeviceParts,
    push: Push,
    adoption: AdoptionKeeper,
    discovery: Discovery,
    hooks: Hooks,
) -> AsyncGenerator[WiredRequests]:
    """Go on with what a server before us left; hooks that wait outlive the block."""
    ledger = RequestLedger(
        LedgerParts(
            sessions=discovery.sessions,
            adoption=adoption,
            devices=devices.registry,
            presence=devices.presence,
            push=push,
            store=SqlRequestStore(ground.database),
            holds_headless=settings.hold_headless,
            clock=utc_now,
        )
    )
    await ledger.load()
    watch = RequestWatch(ledger)
    intake = RequestIntake(ledger, watch)
    desk = RequestDesk(ledger, watch, devices.seals, ground.audit)
    async with watch.running(), running(policy=_follow_policy(adoption, watch)):
        hooks.add_listener(intake)
        try:
            yield WiredRequests(desk, intake)
        finally:
            await desk.close()


async def _follow_policy(adoption: AdoptionKeeper, watch: RequestWatch) -> None:
    while True:
        changed = adoption.changed
        await watch.check_all()
        await changed.wait()
