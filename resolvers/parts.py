"""The ports that resolvers call, and what the server says of itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sidestage.audit import AuditLog
from sidestage.devices.desk import DeviceDesk
from sidestage.devices.model import Authenticator
from sidestage.devices.pairings import Pairings
from sidestage.devices.push import PushDesk
from sidestage.handover.desk import Handovers
from sidestage.ids import HostId
from sidestage.projects.adoption import Adoption
from sidestage.projects.model import Projects
from sidestage.requests.model import Requests
from sidestage.sessions.board import Sessions
from sidestage.sessions.hook_setup import HookSetup
from sidestage.sessions.transcript import Transcripts
from sidestage.terminals.desk import Terminals


@dataclass(frozen=True, slots=True)
class Health:
    """How well the server is, for dashboards and `doctor`."""

    ok: bool
    notes: tuple[str, ...] = ()
    """Sentences of ours: what does not work, and what to do."""
    counters: Mapping[str, int] = field(default_factory=dict)
    ready: bool = True
    """Whether the first list of sessions is complete: what `/readyz` tells."""


def healthy() -> Health:
    """Say that all is well."""
    return Health(ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What this server is and where it can be reached."""

    version: str
    host_id: HostId
    host_name: str
    bound_port: Callable[[], int]
    """The port of the listener, known once it listens."""
    public_urls: tuple[str, ...] = ()
    """Where clients reach it from outside, first the one to show: `https://host/path`."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of other web clients that may call it: `https://dashboard.example`."""
    health: Callable[[], Health] = healthy
    oldest_client: str = "0.1.0"
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything the API stands on."""

    sessions: Sessions
    transcripts: Transcripts
    projects: Projects
    adoption: Adoption
    hooks: HookSetup
    terminals: Terminals
    requests: Requests
    devices: DeviceDesk
    pairings: Pairings
    push: PushDesk
    handovers: Handovers
    audit: AuditLog
    authenticator: Authenticator
    server: ServerInfo
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
