"""Every part, open and joined: from settings to everything the application needs.

A new part is a module beside this one that opens it, one line in `open_parts`, and one
field of `Wired`. What opens here closes here, in the reverse order, when the block
ends.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from api.wiring.devices import DeviceParts, open_devices
from api.wiring.ground import Ground, open_ground
from api.wiring.handover import open_handover
from api.wiring.hooks import Hooks, answering, make_hooks
from api.wiring.projects import load_projects
from api.wiring.push import PushParts, count_open, open_push
from api.wiring.requests import WiredRequests, open_requests
from api.wiring.seams import Seams
from api.wiring.sessions import open_sessions
from api.wiring.terminals import Terminals, open_terminals
from api.wiring.tokens import open_keeper
from sidestage.agents.attribution import runs_inside_agent
from sidestage.agents.claude_code.discovery import Discovery
from sidestage.devices.keeper import TokenKeeper
from sidestage.handover.service import Handover
from sidestage.projects.adoption import AdoptionKeeper
from sidestage.projects.registry import ProjectRegistry
from sidestage.settings import Settings
from sidestage.storage.stores import SqlAdoptionStore


@dataclass(frozen=True, slots=True)
class Wired:
    """The parts, open and running."""

    ground: Ground
    keeper: TokenKeeper
    devices: DeviceParts
    push: PushParts
    projects: ProjectRegistry
    adoption: AdoptionKeeper
    discovery: Discovery
    hooks: Hooks
    terminals: Terminals
    requests: WiredRequests
    handover: Handover

    def is_agent(self, pid: int) -> bool:
        """Tell whether a process runs inside an agent."""
        return runs_inside_agent(pid, is_registered=self._is_registered)

    def _is_registered(self, pid: int) -> bool:
        return any(
            run.pid == pid
            for row in self.discovery.sessions.feed.values()
            if row.state.is_live
            for run in row.origin.processes
        )


@asynccontextmanager
async def open_parts(
    settings: Settings, seams: Seams | None = None, *, descriptors: int
) -> AsyncGenerator[Wired]:
    """Make every part; the list of sessions is complete when the block begins.

    *descriptors* is the soft limit of open files that terminals are started with.

    The caller has prepared and locked the state folder.
    """
    seams = seams or Seams()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        ground = await enter(open_ground(settings))
        keeper = await enter(open_keeper(settings, ground))
        devices = await enter(open_devices(settings, ground, keeper))
        push = await enter(open_push(settings, ground, devices))
        projects = await load_projects(settings, ground)
        adoption = await AdoptionKeeper.open(SqlAdoptionStore(ground.database))
        discovery = await enter(open_sessions(settings, ground, projects))
        hooks = make_hooks(settings, seams, ground, discovery)
        terminals = await enter(
            open_terminals(
                settings,
                seams,
                ground,
                keeper,
                projects,
                discovery,
                hooks,
                descriptors=descriptors,
            )
        )
        requests = await enter(
            open_requests(
                settings, ground, devices, push.pusher, adoption, discovery, hooks
            )
        )
        handover = await enter(
            open_handover(
                settings,
                seams,
                ground,
                devices,
                push.pusher,
                adoption,
                discovery,
                terminals,
                hooks,
                requests,
            )
        )
        push.pusher.count_with(lambda: count_open(requests.desk, handover))
        # Last: whoever listens to hooks has said so by now.
        await enter(answering(hooks))
        yield Wired(
            ground=ground,
            keeper=keeper,
            devices=devices,
            push=push,
            projects=projects,
            adoption=adoption,
            discovery=discovery,
            hooks=hooks,
            terminals=terminals,
            requests=requests,
            handover=handover,
        )
