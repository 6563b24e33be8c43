"""Every request as it stands: kept in memory, on disk and in the feed.

A change is written down first, then published. The hook's connection is the only way
by which a decision travels, so each open request is bound to its hook here.
"""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from sidestage.feeds import Feed
from sidestage.ids import SessionId
from sidestage.requests.model import (
    AgentRequest,
    RequestEnd,
    RequestId,
    RequestState,
)
from sidestage.requests.parts import LedgerParts
from sidestage.sessions.hooks import Hold

KEPT: Final = timedelta(hours=24)
"""Beyond its expiry: as long as the envelopes of its answers are known again."""
SETTLED_LIMIT: Final = 1_000
"""Settled requests kept: a busy day has a hundred."""


@dataclass(slots=True)
class RequestLedger:
    """The requests, and the hooks that wait for them. For one event loop.

    Whoever changes one holds `changing` from reading it until `save` returned, and
    leaves those in `delivering` alone: their answer is on its way.
    """

    parts: LedgerParts
    feed: Feed[AgentRequest] = field(init=False)
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    holds: dict[RequestId, Hold] = field(default_factory=dict)
    delivering: set[RequestId] = field(default_factory=set)
    _open: dict[SessionId, dict[RequestId, None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.feed = Feed(lambda request: request.id, clock=self.parts.clock)

    async def load(self) -> None:
        """Read every request; what was open is the keyboard's until its hook returns.

        Not written down as such: the next start would find the same.
        """
        now = self.parts.clock()
        for request in await self.parts.store.load():
            if not request.state.is_open:
                self._publish(request)
                continue
            is_late = request.has_timed_out or request.expires_at <= now
            state = RequestState.KEYBOARD_ONLY
            self._publish(replace(request, state=state, has_timed_out=is_late))

    def open_sessions(self) -> frozenset[SessionId]:
        """Return the sessions that have an open request."""
        return frozenset(self._open)

    def open_of(self, session_id: SessionId) -> tuple[AgentRequest, ...]:
        """Return what the session waits for, oldest first."""
        found = (self.feed.get(id_) for id_ in self._open.get(session_id, ()))
        return tuple(request for request in found if request is not None)

    async def open(self, request: AgentRequest, hold: Hold) -> None:
        """Write a new request down, bind it to its hook and publish it."""
        async with self.changing:
            await self.parts.store.add(request)
            self.holds[request.id] = hold
            self._publish(request)
        self.parts.push.waiting(request.id, request.session_id)

    async def bind(self, request_id: RequestId, hold: Hold) -> AgentRequest | None:
        """Bind a hook that came back; None if its request is over."""
        async with self.changing:
            request = self.feed.get(request_id)
            if request is None or not self._takes_back(request):
                return None
            pending = replace(
                request,
                state=RequestState.PENDING,
                state_since=self.parts.clock(),
                verdict=None,
            )
            self.holds[request_id] = hold
            await self.save(pending)
            return pending

    def _takes_back(self, request: AgentRequest) -> bool:
        is_busy = request.id in self.delivering
        return request.state.is_open and not request.has_timed_out and not is_busy

    async def unbind(
        self, request_id: RequestId, hold: Hold, *, timed_out: bool
    ) -> AgentRequest | None:
        """Leave the request to the keyboard; None if it waits on *hold* no more."""
        async with self.changing:
            request = self.feed.get(request_id)
            if self.holds.get(request_id) is not hold or request is None:
                return None
            if request_id in self.delivering:
                return None  # what becomes of its answer says the rest
            del self.holds[request_id]
            left = self.without_hold(request, timed_out=timed_out)
            await self.save(left)
            return left

    def without_hold(
        self, request: AgentRequest, *, timed_out: bool = False
    ) -> AgentRequest:
        """Return *request* as only the keyboard can answer it."""
        return replace(
            request,
            state=RequestState.KEYBOARD_ONLY,
            state_since=self.parts.clock(),
            has_timed_out=request.has_timed_out or timed_out,
        )

    async def settle(
        self,
        request_id: RequestId,
        by: RequestEnd,
        *,
        state: RequestState = RequestState.WITHDRAWN,
    ) -> None:
        """Withdraw a request that is open, and let its hook go without an opinion."""
        async with self.changing:
            request = self.feed.get(request_id)
            if request is None or not request.state.is_open:
                return
            if request_id in self.delivering:
                return
            if request.verdict is not None:
                by = RequestEnd.UNKNOWN  # an answer may have reached it in a crash
            now = self.parts.clock()
            over = replace(request, state=state, settled_by=by, state_since=now)
            await self.save(over)
            hold = self.holds.pop(request_id, None)
        if hold is not None:
            await hold.answer(None)

    async def save(self, request: AgentRequest) -> None:
        """Write *request* over its row and publish it; the caller holds `changing`."""
        await self.parts.store.save(request)
        await self.published(request)

    async def published(self, request: AgentRequest) -> None:
        """Publish what is written down already; the caller holds `changing`."""
        self._publish(request)
        if not request.state.is_open:
            self.parts.push.settled(request.id)
            await self._forget_old()

    def _publish(self, request: AgentRequest) -> None:
        ids = self._open.setdefault(request.session_id, {})
        if request.state.is_open:
            ids[request.id] = None
        else:
            ids.pop(request.id, None)
        if not ids:
            del self._open[request.session_id]
        self.feed.upsert(request)

    async def _forget_old(self) -> None:
        now = self.parts.clock()
        settled = [each for each in self.feed.values() if not each.state.is_open]
        surplus = len(settled) - SETTLED_LIMIT
        for number, request in enumerate(settled):
            if number < surplus or request.expires_at + KEPT < now:
                await self.parts.store.forget(request.id)
                self.feed.remove(request.id)
