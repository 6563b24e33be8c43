"""Where requests are written down: the port."""

from typing import Protocol

from sidestage.audit import AuditRecord
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.requests.model import AgentRequest, RequestId


class RequestStore(Protocol):
    """Every call is one transaction, with its audit record in it."""

    async def load(self) -> tuple[AgentRequest, ...]:
        """Return every request, oldest first."""

    async def add(self, request: AgentRequest) -> None:
        """Insert the row."""

    async def save(self, request: AgentRequest) -> None:
        """Write *request* over its row."""

    async def begin_answer(
        self, request: AgentRequest, seen: SeenEnvelope, record: AuditRecord
    ) -> SeenEnvelope:
        """Write that an answer was accepted, and its envelope's row, as one.

        Returns the envelope's row that is kept; raises `EnvelopeReplayed`, and nothing
        is written, when its message id is known from another envelope.
        """

    async def finish_answer(
        self,
        request: AgentRequest,
        seen: SeenEnvelope,
        outcome: str,
        record: AuditRecord,
    ) -> None:
        """Write what became of an accepted answer: the outcome that a retry gets."""

    async def forget(self, request_id: RequestId) -> None:
        """Delete the row."""
