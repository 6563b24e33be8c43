"""The handover: offers, answers and continuations, over every other part."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from api.wiring.background import running
from api.wiring.devices import DeviceParts
from api.wiring.ground import Ground
from api.wiring.hooks import Hooks
from api.wiring.requests import WiredRequests
from api.wiring.seams import Seams
from api.wiring.terminals import Terminals
from sidestage.agents.claude_code.discovery import Discovery
from sidestage.devices.push import Push
from sidestage.handover.parts import HandoverParts
from sidestage.handover.service import Handover
from sidestage.projects.adoption import AdoptionKeeper
from sidestage.settings import Settings
from sidestage.state import read_machine_secret
from sidestage.storage.offer_store import SqlOfferStore
from sidestage.storage.stores import utc_now
from terminal_host.gateway.typist import HostTypist


@asynccontextmanager
async def open_handover(
    settings: Settings,
    seams: Seams,
    ground: Ground,
    devices: DeviceParts,
    push: Push,
    adoption: AdoptionKeeper,
    discovery: Discovery,
    terminals: Terminals,
    hooks: Hooks,
    requests: WiredRequests,
) -> AsyncGenerator[Handover]:
    """Go on with what a server before us left, until the block ends."""
    handover = Handover(
        HandoverParts(
            sessions=discovery.sessions,
            transcripts=discovery.transcripts,
            statuses=discovery.sessions,
            lineage=discovery.sessions,
            terminals=terminals.desk.feed,
            forks=terminals.desk,
            typist=seams.wrap_typist(HostTypist(terminals.host)),
            store=seams.wrap_offers(SqlOfferStore(ground.database)),
            devices=devices.registry,
            seals=devices.seals,
            push=push,
            adoption=adoption,
            requests=requests.desk,
            audit=ground.audit,
            machine_secret=await asyncio.to_thread(
                read_machine_secret, settings.state_dir
            ),
            clock=utc_now,
        )
    )
    await handover.load()
    hooks.add_listener(handover.listener)
    async with running(
        handover=handover.run(), adoption=_follow_policy(adoption, handover)
    ):
        yield handover


async def _follow_policy(adoption: AdoptionKeeper, handover: Handover) -> None:
    while True:
        await adoption.wait_change()
        await handover.check_policy()
