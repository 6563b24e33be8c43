"""Watching open requests: what their sessions' rows and the passing of time say."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from sidestage.ids import SessionId
from sidestage.requests.ledger import RequestLedger
from sidestage.requests.model import (
    AgentRequest,
    RequestEnd,
    RequestId,
    RequestState,
)
from sidestage.requests.settling import Watched, is_call_open, settled_by_row
from sidestage.sessions.hooks import Hold
from sidestage.sessions.model import Session, SessionState

RETURN_PATIENCE_SECONDS: Final = 30.0
"""A hook that lost the server tries so long to come back with its request."""
DIALOG_PATIENCE_SECONDS: Final = 10.0
"""A dialog shows in the registry within 0.1 s; where it is polled, within seconds."""


@dataclass(slots=True)
class _Seen:
    """What was seen of an open request since it came."""

    was_asking: bool = False
    call_was_open: bool = False
    is_overdue: bool = False


@dataclass(slots=True)
class RequestWatch:
    """Settles what is over. For one event loop; works inside `running`."""

    ledger: RequestLedger
    _seen: dict[RequestId, _Seen] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Watch until the block ends; hooks that wait then are left waiting.

        Requests of an earlier run are settled first where their session's row says so:
        nobody saw how. So the list of sessions has to be complete by now.
        """
        for request in self._all_open():
            # It was on the screen and in the transcript long before we went away.
            known = request.origin.tool_use_id is not None
            self._seen[request.id] = _Seen(was_asking=True, call_was_open=known)
        seq = self.ledger.parts.sessions.feed.seq
        await self.check(self.ledger.open_sessions(), unseen=RequestEnd.UNKNOWN)
        for request in self._all_open():
            self._spawn(self._expect_return(request.id))
        self._spawn(self._follow_sessions(seq))
        try:
            yield
        finally:
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task

    def opened(self, request_id: RequestId, hold: Hold) -> None:
        """Watch a request that has just come."""
        self._seen[request_id] = _Seen()
        self.bound(request_id, hold)
        self._spawn(self._expect_dialog(request_id))

    def bound(self, request_id: RequestId, hold: Hold) -> None:
        """Watch the hook that a request is bound to."""
        self._spawn(self._watch_hold(request_id, hold))

    async def check(
        self,
        session_ids: Iterable[SessionId],
        *,
        unseen: RequestEnd = RequestEnd.KEYBOARD,
    ) -> None:
        """Settle what the sessions' rows say is over; *unseen* is who answered it."""
        for session_id in session_ids:
            row = self.ledger.parts.sessions.find(session_id)
            requests = self.ledger.open_of(session_id)
            for request in requests:
                by = self._judge(request, row, others=len(requests) - 1)
                if by is not None:
                    by = unseen if by is RequestEnd.KEYBOARD else by
                    await self.ledger.settle(request.id, by)
        self._forget_settled()

    async def check_all(self) -> None:
        """Check every session that has a request, as after a change of the policy."""
        await self.check(self.ledger.open_sessions())

    def _all_open(self) -> tuple[AgentRequest, ...]:
        ledger = self.ledger
        return tuple(
            request
            for session_id in ledger.open_sessions()
            for request in ledger.open_of(session_id)
        )

    def _forget_settled(self) -> None:
        opened = {request.id for request in self._all_open()}
        for request_id in self._seen.keys() - opened:
            del self._seen[request_id]

    def _judge(
        self, request: AgentRequest, row: Session | None, *, others: int
    ) -> RequestEnd | None:
        adoption = self.ledger.parts.adoption
        if row is not None and not adoption.adopts(row.directory):
            return RequestEnd.POLICY
        seen = self._seen.setdefault(request.id, _Seen())
        if row is not None:
            seen.was_asking |= row.state is SessionState.ASKING
            seen.call_was_open |= is_call_open(request, row)
        watched = Watched(
            request=request,
            others=others,
            was_asking=seen.was_asking,
            call_was_open=seen.call_was_open,
            is_overdue=seen.is_overdue,
        )
        return settled_by_row(watched, row)

    async def _follow_sessions(self, seq: int) -> None:
        feed = self.ledger.parts.sessions.feed
        while True:
            await feed.wait_beyond(seq)
            changes = feed.changes_after(seq)
            seq = feed.seq
            opened = self.ledger.open_sessions()
            if changes is None:  # more than it remembers: look at all
                await self.check(opened)
            else:
                await self.check(opened & {SessionId(it.id) for it in changes})

    async def _watch_hold(self, request_id: RequestId, hold: Hold) -> None:
        request = self.ledger.feed.get(request_id)
        if request is None:
            return
        left = (request.expires_at - self.ledger.parts.clock()).total_seconds()
        try:
            async with asyncio.timeout(max(0.0, left)):
                await hold.wait_closed()
        except TimeoutError:
            await self._time_out(request_id, hold)
        else:
            await self._lose(request_id, hold)

    async def _time_out(self, request_id: RequestId, hold: Hold) -> None:
        request = await self.ledger.unbind(request_id, hold, timed_out=True)
        if request is None:
            return
        await hold.answer(None)
        if request.origin.is_headless:
            # There is no dialog: without an opinion the agent goes on by itself.
            state, by = RequestState.TIMED_OUT, RequestEnd.TIME_OUT
            await self.ledger.settle(request_id, by, state=state)

    async def _lose(self, request_id: RequestId, hold: Hold) -> None:
        request = await self.ledger.unbind(request_id, hold, timed_out=False)
        if request is not None:
            await self.check((request.session_id,))
            await self._expect_return(request_id)

    async def _expect_return(self, request_id: RequestId) -> None:
        """Give up a request without dialog whose hook does not come back."""
        await asyncio.sleep(RETURN_PATIENCE_SECONDS)
        request = self.ledger.feed.get(request_id)
        is_gone = request_id not in self.ledger.holds
        if request is not None and request.origin.is_headless and is_gone:
            await self.ledger.settle(request_id, RequestEnd.UNKNOWN)

    async def _expect_dialog(self, request_id: RequestId) -> None:
        """Settle a request whose dialog never showed: it was over when it came."""
        await asyncio.sleep(DIALOG_PATIENCE_SECONDS)
        request, seen = self.ledger.feed.get(request_id), self._seen.get(request_id)
        if request is not None and seen is not None:
            seen.is_overdue = not seen.was_asking
            await self.check((request.session_id,))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
