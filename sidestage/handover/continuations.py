"""Bringing an accepted answer to its agent: start, type, see it in the transcript.

One task an answer. Each step is written down before it is taken, so that a server that
died goes on where it stopped: what was started is found in the host's list, what was
sent in the transcript. Nothing is started twice and nothing is typed twice.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from sidestage.audit import AuditOutcome
from sidestage.devices.model import Principal, PrincipalKind
from sidestage.envelopes.envelope import Purpose
from sidestage.errors import HostUnavailable, SidestageError
from sidestage.handover.answer_text import checked_answer, seed_text
from sidestage.handover.book import OfferBook, offer_record
from sidestage.handover.delivery import AnswerDelivery, accepted_of
from sidestage.handover.model import (
    Accepted,
    Continuation,
    Offer,
    OfferDelivery,
    OfferState,
)
from sidestage.handover.modes import continuation_mode
from sidestage.handover.parts import HandoverParts
from sidestage.handover.store import Changes
from sidestage.terminals.forks import Fork

HOST_AGAIN_SECONDS: Final = 5.0
"""Between two questions to a host that does not answer; it is told of by events."""

_ANSWERING: Final = frozenset({OfferState.ANSWERING})
_log = logging.getLogger(__name__)


class Continuations:
    """The answers on their way. `recover` once, then `begin` each new one."""

    def __init__(
        self, parts: HandoverParts, book: OfferBook, delivery: AnswerDelivery
    ) -> None:
        self._parts = parts
        self._book = book
        self._delivery = delivery
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._starting: dict[str, asyncio.Future[None]] = {}

    async def begin(self, offer: Offer, text: str, *, actor: Principal) -> None:
        """Bring *text* to the agent; return once something runs, or raise why not.

        It goes on when the caller hangs up. Raises what `Forks.fork` raises.
        """
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._starting[offer.id] = started
        self._spawn(offer, text, actor, started)
        await asyncio.shield(started)

    async def wait_started(self, offer: Offer) -> None:
        """Return once the start of the offer's answer has succeeded, or raise."""
        started = self._starting.get(offer.id)
        if started is not None:
            await asyncio.shield(started)

    async def recover(self) -> None:
        """Take up every answer that a server before us did not finish."""
        for offer in self._book.list_in(OfferState.ANSWERING):
            text = self._reopened(offer)
            if text is not None:
                self._spawn(offer, text, _device_actor(offer), None)

    async def settle(self, offer: Offer) -> Offer | None:
        """Look now whether the transcript shows the answer; return the offer."""
        text = self._reopened(offer)
        if text is not None and offer.state is OfferState.ANSWERING:
            await self._delivery.confirm(offer, text)
        return self._book.get(offer.id)

    async def close(self) -> None:
        """Stop; what is under way is taken up by the next server."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _spawn(
        self,
        offer: Offer,
        text: str,
        actor: Principal,
        started: "asyncio.Future[None] | None",
    ) -> None:
        work = self._carry(offer, text, actor, started)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[offer.id] = task

        def done(finished: "asyncio.Task[None]") -> None:
            if self._tasks.get(offer.id) is finished:
                del self._tasks[offer.id]
            if self._starting.get(offer.id) is started:
                self._starting.pop(offer.id, None)
            _settle(started, finished)

        task.add_done_callback(done)

    async def _carry(
        self,
        offer: Offer,
        text: str,
        actor: Principal,
        started: "asyncio.Future[None] | None",
    ) -> None:
        if offer.delivery is OfferDelivery.FORK:
            runs = await self._start(offer, actor, started)
            if runs is None:
                return
            offer = runs
        if started is not None and not started.done():
            started.set_result(None)
        await self._delivery.deliver(offer, text)

    async def _start(
        self,
        offer: Offer,
        actor: Principal,
        started: "asyncio.Future[None] | None",
    ) -> Offer | None:
        """Start the continuation, or find it; None if the offer has moved on.

        A failure before anything ran sets the offer back, the answer kept.
        """
        accepted = accepted_of(offer)
        if accepted.sent_at is not None:
            return offer  # it ran once; what is left of it, its terminal tells
        fork = self._fork_of(offer, accepted)
        try:
            await self._parts.forks.fork(fork, actor=actor)
        except HostUnavailable as error:
            # Whoever asked is told at once; the offer says later how it ended.
            fail(started, error)
            if not await self._ran_all_the_same(fork):
                await self._set_back(offer, error.code.value, actor)
                return None
        except SidestageError as error:
            await self._set_back(offer, error.code.value, actor)
            raise
        return await self._book.move(
            offer.id,
            _ANSWERING,
            record=offer_record(
                "started", offer, actor=actor, detail=f"terminal={fork.terminal_id}"
            ),
            changes=Changes(continuation=self._continuation(offer, accepted)),
            last_failure=None,
        )

    def _fork_of(self, offer: Offer, accepted: Accepted) -> Fork:
        session = self._parts.sessions.find(offer.session_id)
        return Fork(
            terminal_id=accepted.terminal_id,
            session_id=offer.session_id,
            conversation_id=accepted.conversation_id,
            permission_mode=continuation_mode(session),
            project_id=offer.project_id,
            is_fresh=accepted.is_fresh,
        )

    async def _ran_all_the_same(self, fork: Fork) -> bool:
        while True:
            with suppress(HostUnavailable):
                return await self._parts.forks.fate(fork.terminal_id) is not None
            await asyncio.sleep(HOST_AGAIN_SECONDS)

    def _continuation(self, offer: Offer, accepted: Accepted) -> Continuation:
        return Continuation(
            accepted.conversation_id, offer.session_id, self._parts.clock()
        )

    async def _set_back(self, offer: Offer, code: str, actor: Principal) -> None:
        record = offer_record(
            "started", offer, actor=actor, outcome=AuditOutcome.FAILED, code=code
        )
        await self._book.move(
            offer.id,
            _ANSWERING,
            record=record,
            state=OfferState.PENDING,
            last_failure=code,
        )

    def _reopened(self, offer: Offer) -> str | None:
        """Return what is to be typed, out of the envelope that was kept."""
        accepted = offer.accepted
        if accepted is None or accepted.envelope is None:
            return None
        device = self._parts.devices.feed.get(accepted.device_id)
        if device is None:
            _log.error("The device of an accepted answer is gone: %s", offer.id)
            return None
        try:
            content = self._parts.seals.reopen(
                accepted.envelope, purpose=Purpose.HANDOVER_ANSWER, device=device
            )
            return typed_text(content, is_fresh=accepted.is_fresh)
        except SidestageError as error:
            _log.error("An accepted answer cannot be opened: %s", error.code)
            return None


def typed_text(content: Mapping[str, Any], *, is_fresh: bool) -> str:
    """Return what is typed for an opened answer; raises what `checked_answer` does."""
    answer = checked_answer(content["answer"])
    if not is_fresh:
        return answer
    return seed_text(
        answer=answer, question=content["question"], summary=content["summary"]
    )


def fail(future: "asyncio.Future[None] | None", error: BaseException) -> None:
    """Give *error* to whoever waits, if anybody does and was told nothing yet."""
    if future is not None and not future.done():
        future.set_exception(error)
        future.exception()  # nobody need wait: it is not "lost"


def _settle(
    started: "asyncio.Future[None] | None", finished: "asyncio.Task[None]"
) -> None:
    if finished.cancelled():
        fail(started, HostUnavailable("The server stopped meanwhile; ask again."))
        return
    error = finished.exception()
    if error is not None:
        if not isinstance(error, SidestageError):
            _log.error("An answer's delivery failed.", exc_info=error)
        fail(started, error)
    elif started is not None and not started.done():
        started.set_result(None)


def _device_actor(offer: Offer) -> Principal:
    """Return who stands behind an answer that another server accepted."""
    device_id = accepted_of(offer).device_id
    return Principal(PrincipalKind.DEVICE, frozenset(), device_id, device_id)
