"""Answers from devices: opened, checked, written down, handed to the agent, once.

An answer that was accepted has its envelope's row written in the transaction of the
request's change, before anything is sent. So a retry finds either its outcome or a
request that may still be answered by the very same envelope.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sidestage.audit import AuditLog, AuditOutcome, AuditRecord
from sidestage.devices.model import ContentMode, Device, Principal, Scope
from sidestage.devices.seals import Seals
from sidestage.envelopes.envelope import Envelope, Fault, Purpose
from sidestage.envelopes.opening import Settled
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.errors import (
    EnvelopeInvalid,
    InvalidInput,
    RequestKeyboardOnly,
    RequestNotFound,
    RequestSettled,
    RequestTimedOut,
    SidestageError,
)
from sidestage.feeds import Feed
from sidestage.ids import SessionId
from sidestage.requests.decisions import SealedAnswer, decide, parse_answer
from sidestage.requests.ledger import RequestLedger
from sidestage.requests.model import (
    AgentRequest,
    RequestEnd,
    RequestId,
    RequestState,
)
from sidestage.requests.watch import RequestWatch
from sidestage.sessions.hooks import Hold

ACTION: Final = "request.answer"
"""What the audit log calls it."""
ANSWERED: Final = "ANSWERED"
"""The final outcome of an envelope whose answer the agent got; else an error's code."""


@dataclass(frozen=True, slots=True)
class _Accepted:
    """An answer that counts, and the hook it goes to."""

    request: AgentRequest
    hold: Hold
    decision: dict[str, Any]


@dataclass(slots=True)
class RequestDesk:
    """`sidestage.requests.model.Requests`. For one event loop."""

    ledger: RequestLedger
    watch: RequestWatch
    seals: Seals
    audit: AuditLog
    _deliveries: dict[bytes, asyncio.Task[AgentRequest]] = field(default_factory=dict)
    """By the digest of the envelope that is being delivered."""

    @property
    def feed(self) -> Feed[AgentRequest]:
        """The requests by id, with their changes, settled ones for a day."""
        return self.ledger.feed

    def open_of(self, session_id: SessionId) -> tuple[AgentRequest, ...]:
        """Return what the session waits for, oldest first."""
        return self.ledger.open_of(session_id)

    def seal(self, request: AgentRequest, *, reader: Principal) -> Envelope | None:
        """Return the request sealed for *reader*, if its device reads no clear one."""
        device = reader.device_id and self.ledger.parts.devices.feed.get(
            reader.device_id
        )
        if not device or not device.may_answer or _reads_clear(device):
            return None
        content = {
            "toolName": request.tool_name,
            "inputJson": request.input_json,
            "digest": request.digest,
            "suggestions": [each.json for each in request.suggestions],
        }
        try:
            return self.seals.seal(
                device,
                purpose=Purpose.REQUEST,
                subject=request.subject,
                content=content,
            )
        except InvalidInput:
            return None  # too long for an envelope: the keyboard has it whole

    async def answer(
        self, request_id: str, envelope: Envelope, *, actor: Principal
    ) -> AgentRequest:
        """Open a device's answer and hand it to the agent, once; return the request."""
        request = self.feed.get(request_id)
        try:
            opened = await self.seals.open_answer(
                envelope,
                purpose=Purpose.REQUEST_ANSWER,
                actor=actor,
                subject=None if request is None else request.subject,
            )
        except EnvelopeInvalid as error:
            raise _told_clearly(error, request) from error
        if isinstance(opened, Settled):
            return self._recorded(request, opened.outcome)
        if request is None:
            raise RequestNotFound("There is no such request.")
        return await self._deliver_once(request.id, opened.content, envelope, actor)

    async def close(self) -> None:
        """Let answers on their way arrive."""
        await asyncio.gather(*self._deliveries.values(), return_exceptions=True)

    def _recorded(self, request: AgentRequest | None, outcome: str) -> AgentRequest:
        """Return what an envelope that came before came to."""
        if request is None:
            raise RequestNotFound("The request was settled more than a day ago.")
        if outcome != ANSWERED:
            raise _gone()
        return request

    async def _deliver_once(
        self,
        request_id: RequestId,
        content: Mapping[str, Any],
        envelope: Envelope,
        actor: Principal,
    ) -> AgentRequest:
        """Deliver in a task of its own: a client that leaves cuts nothing in half."""
        delivery = self._deliveries.get(envelope.digest)
        if delivery is None:
            delivery = asyncio.create_task(
                self._deliver(request_id, content, envelope, actor)
            )
            self._deliveries[envelope.digest] = delivery
            delivery.add_done_callback(
                lambda done: self._delivered(envelope.digest, done)
            )
        return await asyncio.shield(delivery)

    def _delivered(self, digest: bytes, delivery: asyncio.Task[AgentRequest]) -> None:
        del self._deliveries[digest]
        if not delivery.cancelled():
            delivery.exception()  # it was told to whoever still waited

    async def _deliver(
        self,
        request_id: RequestId,
        content: Mapping[str, Any],
        envelope: Envelope,
        actor: Principal,
    ) -> AgentRequest:
        try:
            answer = parse_answer(content)
            accepted = await self._accept(request_id, answer, envelope, actor)
        except SidestageError as error:
            await self.audit.write(
                _record(actor, envelope, AuditOutcome.REFUSED, code=error.code.value)
            )
            raise
        try:
            arrived = await accepted.hold.answer(accepted.decision)
            over = await self._conclude(accepted, actor, envelope, arrived=arrived)
        finally:
            self.ledger.delivering.discard(request_id)
        if not arrived:
            await self.watch.check((over.session_id,))
            raise _gone()
        return over

    async def _accept(
        self,
        request_id: RequestId,
        answer: SealedAnswer,
        envelope: Envelope,
        actor: Principal,
    ) -> _Accepted:
        """Write down that the answer counts; from here on no other one does."""
        ledger = self.ledger
        async with ledger.changing:
            request = self._check_pending(request_id)
            decision = decide(request, answer, may_admin=actor.may(Scope.ADMIN))
            answering = replace(
                request,
                state=RequestState.ANSWERING,
                state_since=ledger.parts.clock(),
                verdict=answer.verdict,
            )
            begun = _record(
                actor, envelope, AuditOutcome.BEGUN, detail=f"verdict={answer.verdict}"
            )
            seen = SeenEnvelope.of(envelope)
            await ledger.parts.store.begin_answer(answering, seen, begun)
            ledger.delivering.add(request_id)
            await ledger.published(answering)
            return _Accepted(answering, ledger.holds[request_id], decision)

    def _check_pending(self, request_id: RequestId) -> AgentRequest:
        """Return the request if a device can answer it now; say why not otherwise."""
        request = self.feed.get(request_id)
        if request is None:
            raise RequestNotFound("There is no such request.")
        if request.has_timed_out:
            raise _timed_out()
        if request.state is RequestState.ANSWERING:
            raise RequestSettled("Another answer is on its way to the agent.")
        if not request.state.is_open:
            raise RequestSettled("The request is settled already.")
        if request.state is not RequestState.PENDING:
            raise RequestKeyboardOnly(
                "The agent no longer waits for a device: answer in its own dialog."
            )
        row = self.ledger.parts.sessions.find(request.session_id)
        if row is None or not self.ledger.parts.adoption.adopts(row.directory):
            raise RequestSettled("The session is not, or no longer, adopted.")
        return request

    async def _conclude(
        self,
        accepted: _Accepted,
        actor: Principal,
        envelope: Envelope,
        *,
        arrived: bool,
    ) -> AgentRequest:
        """Write down whether the agent got it: what a retry is told."""
        ledger, request = self.ledger, accepted.request
        async with ledger.changing:
            if ledger.holds.get(request.id) is accepted.hold:
                del ledger.holds[request.id]
            if arrived:
                over = replace(
                    request,
                    state=RequestState.ANSWERED,
                    state_since=ledger.parts.clock(),
                    settled_by=RequestEnd.DEVICE,
                )
                record = _record(actor, envelope, AuditOutcome.DONE)
                outcome = ANSWERED
            else:
                over = replace(ledger.without_hold(request), verdict=None)
                outcome = RequestKeyboardOnly.code.value
                record = _record(actor, envelope, AuditOutcome.FAILED, code=outcome)
            seen = SeenEnvelope.of(envelope)
            await ledger.parts.store.finish_answer(over, seen, outcome, record)
            await ledger.published(over)
            return over


def _reads_clear(device: Device) -> bool:
    return Scope.READ in device.scopes and device.content is ContentMode.CLEAR


def _told_clearly(
    error: EnvelopeInvalid, request: AgentRequest | None
) -> SidestageError:
    """Return what the envelope's refusal means for a request."""
    if request is None and error.fault == Fault.SUBJECT:
        return RequestNotFound("There is no such request.")
    if error.fault == Fault.EXPIRED:
        return _timed_out()
    return error


def _timed_out() -> RequestTimedOut:
    return RequestTimedOut(
        "The time to answer from a device is over: answer in the agent's own dialog."
    )


def _gone() -> RequestKeyboardOnly:
    return RequestKeyboardOnly(
        "The agent went away before the answer reached it: look at its own dialog."
    )


def _record(
    actor: Principal,
    envelope: Envelope,
    outcome: AuditOutcome,
    *,
    code: str | None = None,
    detail: str | None = None,
) -> AuditRecord:
    return AuditRecord(
        actor=actor.actor,
        action=ACTION,
        target_id=envelope.header.subject_id or None,
        outcome=outcome,
        address=actor.address,
        code=code,
        message_id=envelope.header.message_id,
        detail=detail,
    )
