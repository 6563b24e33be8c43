"""What comes of permission hooks: a request, a return, or no opinion."""

from collections import Counter
from dataclasses import dataclass, field

from sidestage.ids import new_id
from sidestage.requests.calls import Calls, prompt_id_of
from sidestage.requests.ledger import RequestLedger
from sidestage.requests.model import AgentRequest, RequestId
from sidestage.requests.opening import (
    OPEN_LIMIT,
    LetGo,
    is_return_of,
    make_request,
    why_let_go,
)
from sidestage.requests.parsing import Asked, parse_asked
from sidestage.requests.settling import ENDS_CALL, settled_by_event
from sidestage.requests.watch import RequestWatch
from sidestage.sessions.hooks import Hold, HookEvent, HookKind
from sidestage.sessions.model import Session


@dataclass(slots=True)
class RequestIntake:
    """`sidestage.sessions.hooks.HookListener`. For one event loop."""

    ledger: RequestLedger
    watch: RequestWatch
    counters: Counter[str] = field(default_factory=Counter)
    """How often a hook was not held, by why."""
    _calls: Calls = field(default_factory=Calls)

    async def heard(self, event: HookEvent) -> None:
        """Settle what *event* says is over."""
        if event.kind is HookKind.TOOL_STARTING and not event.is_from_subagent:
            self._calls.note(event.session_id, event.payload)
        for request in self.ledger.open_of(event.session_id):
            by = settled_by_event(request, event)
            if by is not None:
                await self.ledger.settle(request.id, by)
        if event.kind in ENDS_CALL:
            self._calls.forget(event.session_id, event.payload)

    async def held(self, event: HookEvent, hold: Hold) -> None:
        """Make a request of the hook that waits, bind one that came back, or let go."""
        try:
            reason = await self._take(event, hold)
        except BaseException:  # whatever it is: no agent must wait because of it
            await hold.answer(None)
            raise
        if reason is not None:
            self.counters[reason] += 1
            await hold.answer(None)

    async def _take(self, event: HookEvent, hold: Hold) -> LetGo | None:
        known = self._find_returned(event, hold)
        if known is not None:
            return await self._take_back(known, hold)
        sessions = self.ledger.parts.sessions
        row = sessions.find(event.session_id)
        if row is None:
            row = await sessions.refresh(event.session_id)
        asked = parse_asked(event.payload)
        reason = self._why_let_go(event, row)
        if reason is not None or row is None:
            return reason or LetGo.UNKNOWN_SESSION
        if asked is None:
            return LetGo.UNREADABLE
        request = self._make(event, hold, row, asked)
        await self.ledger.open(request, hold)
        self.watch.opened(request.id, hold)
        return None

    def _find_returned(self, event: HookEvent, hold: Hold) -> AgentRequest | None:
        for request in self.ledger.feed.values():
            if request.session_id == event.session_id and is_return_of(request, hold):
                return request
        return None

    async def _take_back(self, known: AgentRequest, hold: Hold) -> LetGo | None:
        request = await self.ledger.bind(known.id, hold)
        if request is None:
            return LetGo.OVER
        self.watch.bound(request.id, hold)
        await self.watch.check((request.session_id,))
        return None

    def _why_let_go(self, event: HookEvent, row: Session | None) -> LetGo | None:
        parts = self.ledger.parts
        reason = why_let_go(
            event,
            row,
            is_adopted=row is not None and parts.adoption.adopts(row.directory),
            holds_headless=parts.holds_headless,
        )
        if reason is not None:
            return reason
        if not parts.reaches_anyone():
            return LetGo.NOBODY
        if len(self.ledger.open_of(event.session_id)) >= OPEN_LIMIT:
            return LetGo.LIMIT
        return None

    def _make(
        self, event: HookEvent, hold: Hold, row: Session, asked: Asked
    ) -> AgentRequest:
        # Of this session only: a fork's calls have the ids of the calls they copy.
        known = [
            request
            for request in self.ledger.feed.values()
            if request.session_id == event.session_id
        ]
        tool_use_id = self._calls.find(
            event.session_id,
            prompt_id=prompt_id_of(event.payload),
            tool_name=asked.tool_name,
            input_json=asked.input_json,
            taken=(each.origin.tool_use_id for each in known),
            open_calls=row.origin.open_calls,
        )
        return make_request(
            RequestId(new_id("request")),
            asked,
            event,
            hold,
            row=row,
            tool_use_id=tool_use_id,
            now=self.ledger.parts.clock(),
        )
