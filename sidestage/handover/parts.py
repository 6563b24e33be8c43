"""What the handover works with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from sidestage.audit import AuditLog
from sidestage.devices.model import Devices
from sidestage.devices.push import Push
from sidestage.devices.seals import Seals
from sidestage.feeds import Feed
from sidestage.handover.pace import STANDARD, Pace
from sidestage.handover.store import OfferStore
from sidestage.ids import SessionId
from sidestage.projects.adoption import Adoption
from sidestage.sessions.board import Sessions
from sidestage.sessions.lineage import AgentStatuses, Lineage
from sidestage.sessions.transcript import Transcripts
from sidestage.terminals.forks import Forks
from sidestage.terminals.model import Terminal
from sidestage.terminals.typist import Typist


class OpenRequests(Protocol):
    """What of the requests an offer must know."""

    def open_of(self, session_id: SessionId) -> tuple[object, ...]:
        """Return what the session waits for (no I/O)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverParts:
    """Everything the handover works with."""

    sessions: Sessions
    transcripts: Transcripts
    statuses: AgentStatuses
    lineage: Lineage
    terminals: Feed[Terminal]
    forks: Forks
    typist: Typist
    store: OfferStore
    devices: Devices
    seals: Seals
    push: Push
    adoption: Adoption
    requests: OpenRequests
    audit: AuditLog
    machine_secret: bytes = field(repr=False)
    clock: Callable[[], datetime]
    pace: Pace = STANDARD
