"""`RequestStore` in memory, with the envelopes and the audit it writes to."""

from sidestage.audit import AuditRecord
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.errors import EnvelopeReplayed
from sidestage.requests.model import AgentRequest, RequestId
from sidestage.requests.store import RequestStore
from tests.fakes.audit import FakeAudit
from tests.fakes.seen_envelopes import FakeSeenEnvelopes


class FakeRequestStore(RequestStore):
    """Keeps rows in a dictionary."""

    def __init__(self, *requests: AgentRequest) -> None:
        self.rows: dict[str, AgentRequest] = {each.id: each for each in requests}
        self.seen = FakeSeenEnvelopes()
        self.audit = FakeAudit()
        self.is_broken = False
        """Whether every write fails."""

    async def load(self) -> tuple[AgentRequest, ...]:
        return tuple(self.rows.values())

    async def add(self, request: AgentRequest) -> None:
        self._check()
        self.rows[request.id] = request

    async def save(self, request: AgentRequest) -> None:
        self._check()
        assert request.id in self.rows
        self.rows[request.id] = request

    async def begin_answer(
        self, request: AgentRequest, seen: SeenEnvelope, record: AuditRecord
    ) -> SeenEnvelope:
        self._check()
        kept = await self.seen.add(seen)
        if kept.digest != seen.digest:
            raise EnvelopeReplayed("It came before.")
        self.rows[request.id] = request
        await self.audit.write(record)
        return kept

    async def finish_answer(
        self,
        request: AgentRequest,
        seen: SeenEnvelope,
        outcome: str,
        record: AuditRecord,
    ) -> None:
        self._check()
        self.rows[request.id] = request
        await self.seen.settle(seen.device_id, seen.message_id, outcome)
        await self.audit.write(record)

    async def forget(self, request_id: RequestId) -> None:
        del self.rows[request_id]

    def _check(self) -> None:
        if self.is_broken:
            raise OSError("no space left on device")
