"""The whole product in memory, behind the real API."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from api.app import Api, create_app
from api.limits import Limits
from api.web_client import WebClient
from resolvers.parts import Health, Parts, ServerInfo, healthy
from sidestage.projects.model import Project
from sidestage.sessions.model import Session, SessionState
from sidestage.terminals.model import Terminal
from tests.fakes.agent_requests import FakeRequests
from tests.fakes.audit import FakeAudit
from tests.fakes.device_desk import FakeDeviceDesk, FakePairings
from tests.fakes.devices import a_device
from tests.fakes.handovers import FakeHandovers, an_offer
from tests.fakes.hook_setup import FakeAdoption, FakeHookSetup
from tests.fakes.project_registry import FakeProjectRegistry
from tests.fakes.push import FakePushDesk
from tests.fakes.sessions import FakeSessions
from tests.fakes.terminals import FakeTerminals
from tests.fakes.tokens import ADMIN, FakeAuthenticator
from tests.fakes.transcripts import FakeTranscripts
from tests.fakes.values import (
    HOST,
    a_project,
    a_session,
    a_terminal,
    an_entry,
    session_id,
)

PORT = 7433
BASE = f"http://127.0.0.1:{PORT}"
JSON = "application/json"


@dataclass
class World:
    """The parts, each with the type a test can steer, and the application on them."""

    sessions: FakeSessions
    transcripts: FakeTranscripts
    projects: FakeProjectRegistry
    terminals: FakeTerminals
    audit: FakeAudit
    tokens: FakeAuthenticator
    devices: FakeDeviceDesk
    handovers: FakeHandovers
    requests: FakeRequests
    parts: Parts
    app: Api

    @asynccontextmanager
    async def client(
        self, token: str | None = ADMIN, **headers: str
    ) -> AsyncGenerator["Client"]:
        """Open an HTTP client that shows *token*."""
        if token is not None:
            headers = {"authorization": f"Bearer {token}", **headers}
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=True)
        async with httpx.AsyncClient(
            transport=transport, base_url=BASE, headers=headers
        ) as http:
            yield Client(http)


@dataclass
class Client:
    """Sends operations by HTTP."""

    http: httpx.AsyncClient

    async def ask(
        self, query: str, variables: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the whole response of an operation."""
        body = {"query": query, "variables": variables}
        answer = await self.http.post("/graphql", json=body)
        result: dict[str, Any] = answer.json()
        return result

    async def data(
        self, query: str, variables: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the data of an operation that must have no errors."""
        result = await self.ask(query, variables)
        assert "errors" not in result, result["errors"]
        data: dict[str, Any] = result["data"]
        return data

    async def code(self, query: str, variables: Mapping[str, Any] | None = None) -> str:
        """Return the code of an operation's first error."""
        result = await self.ask(query, variables)
        code: str = result["errors"][0]["extensions"]["code"]
        return code


def make_world(
    *,
    sessions: tuple[Session, ...] | None = None,
    projects: tuple[Project, ...] | None = None,
    terminals: tuple[Terminal, ...] | None = None,
    limits: Limits | None = None,
    public_urls: tuple[str, ...] = (),
    allowed_origins: tuple[str, ...] = (),
    ring_limit: int = 10_000,
    allows_get: bool = False,
    health: Callable[[], Health] = healthy,
    **options: Any,
) -> World:
    """Make the product in memory: three sessions, the third ended, unless told else."""
    if sessions is None:
        ended = a_session(3, state=SessionState.ENDED)
        sessions = (a_session(1), a_session(2), ended)
    fakes = FakeSessions(*sessions, ring_limit=ring_limit)
    registry = FakeProjectRegistry(*((a_project(),) if projects is None else projects))
    running = (a_terminal(),) if terminals is None else terminals
    desk = FakeTerminals(*running, sessions=fakes, projects=registry)
    transcripts = FakeTranscripts()
    transcripts.put(session_id(1), *(an_entry(number) for number in range(3)))
    audit, tokens = FakeAudit(5), FakeAuthenticator()
    devices = FakeDeviceDesk(a_device(1), a_device(2))
    handovers = FakeHandovers(desk.feed, an_offer())
    requests = FakeRequests(devices)
    parts = Parts(
        sessions=fakes,
        transcripts=transcripts,
        projects=registry,
        adoption=FakeAdoption(),
        hooks=FakeHookSetup(),
        terminals=desk,
        devices=devices,
        requests=requests,
        pairings=FakePairings(),
        push=FakePushDesk(),
        handovers=handovers,
        audit=audit,
        authenticator=tokens,
        server=ServerInfo(
            version="0.1.0",
            host_id=HOST,
            host_name="box",
            bound_port=lambda: PORT,
            public_urls=public_urls,
            allowed_origins=allowed_origins,
            health=health,
        ),
        **{name: options.pop(name) for name in ("clock",) if name in options},
    )
    # As if nothing was built: what a checkout holds is no matter of these tests.
    options.setdefault("web_client", WebClient(Path(__file__) / "nothing"))
    app = create_app(parts, limits=limits or Limits(), allows_get=allows_get, **options)
    return World(
        fakes,
        transcripts,
        registry,
        desk,
        audit,
        tokens,
        devices,
        handovers,
        requests,
        parts,
        app,
    )
