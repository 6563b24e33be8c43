"""From a hook's bytes and its peer to an attributed event, or to a count of drops.

An event from the shared socket belongs to a session if the nearest registered agent
among its peer's parents is on that very conversation. One from a terminal's own socket
belongs to that terminal, and can speak of no session but its own.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sidestage.agents.claude_code.board import SessionBoard
from sidestage.agents.claude_code.hooks import HookPayload, find_activity, parse_hook
from sidestage.ids import ConversationId, TerminalId
from sidestage.sessions.evidence import Liveness
from sidestage.sessions.hook_delivery import HookDelivery
from sidestage.sessions.hooks import Hold, HookEvent, HookKind
from sidestage.sessions.model import Process

ATTRIBUTION_SECONDS: Final = 2.0
"""How long an agent has to register itself: it runs its first hook before that, and
registers 0.2 s later (2.1.328)."""
EVENTS_PER_SECOND: Final = 100
"""Of one session; real ones reach ten."""
RATES_LIMIT: Final = 1_000
"""Sessions whose rates are remembered; older seconds are forgotten first."""


@dataclass(frozen=True, slots=True)
class HookPeer:
    """Who sent an event, as the kernel tells it."""

    ancestors: tuple[Process, ...] = ()
    """The process and its parents, the nearest first."""
    terminal_id: TerminalId | None = None
    """The terminal of ours whose own socket it came through."""


class HookIntake:
    """Takes events in. For one event loop."""

    def __init__(
        self,
        board: SessionBoard,
        delivery: HookDelivery,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._board = board
        self._delivery = delivery
        self._clock = clock
        self._turns: dict[ConversationId, tuple[asyncio.Lock, int]] = {}
        self._rates: dict[str, tuple[int, int]] = {}

    def counters(self) -> Mapping[str, int]:
        """Return what was taken and what was dropped, for `server.health`."""
        return {
            **{f"hook_{name}": self.counts[name] for name in _COUNTED},
            "hook_queue_drops": self._delivery.dropped,
            "hook_listener_failures": self._delivery.failures,
        }

    async def take(self, data: bytes, peer: HookPeer, hold: Hold | None = None) -> None:
        """Take one event in; returns once it is queued for delivery, or dropped.

        The hold of an event that is dropped is let go.
        """
        began = time.perf_counter()
        try:
            await self._take(data, peer, hold)
        finally:
            self.counts["handling_us"] += round((time.perf_counter() - began) * 1e6)

    async def _take(self, data: bytes, peer: HookPeer, hold: Hold | None) -> None:
        at = self._clock()
        payload = parse_hook(data)
        if payload is None:
            self.counts["events_bad"] += 1
        elif not self._has_room(peer.terminal_id or payload.conversation_id, at):
            self.counts["events_over_rate"] += 1
        else:
            async with self._turn(payload.conversation_id):
                event = await self._attribute(payload, peer, at)
                if event is not None:
                    await self._hand_on(event, payload, hold)
                    return
        if hold is not None:
            await hold.answer(None)

    def take_spooled(self, data: bytes, at: datetime) -> "asyncio.Future[None] | None":
        """Take in an event that waited on disk; None if it is dropped.

        Nothing proves whose it is, so it must be of a session that is listed.
        """
        payload = parse_hook(data)
        if payload is None:
            self.counts["spool_torn"] += 1
            return None
        session_id = self._board.session_id(payload.conversation_id)
        if self._board.find(session_id) is None:
            self.counts["events_unattributed"] += 1
            return None
        self.counts["spool_applied"] += 1
        event = payload.to_event(
            session_id, at=min(at, self._clock()), run=None, was_spooled=True
        )
        return self._delivery.deliver(event)

    async def _hand_on(
        self, event: HookEvent, payload: HookPayload, hold: Hold | None
    ) -> None:
        self.counts["events_taken"] += 1
        self.counts["payloads_cut"] += payload.is_cut
        activity = find_activity(event)
        if activity is not None:
            self._board.observe(event.conversation_id, activity)
        holds = event.kind is HookKind.PERMISSION_REQUEST and not payload.is_cut
        # What cannot be shown whole is not answered from afar.
        self._delivery.deliver(event, hold if holds else None)
        if hold is not None and not holds:
            await hold.answer(None)

    async def _attribute(
        self, payload: HookPayload, peer: HookPeer, at: datetime
    ) -> HookEvent | None:
        run = await self._find_run(payload.conversation_id, peer)
        if run is None:
            self.counts["events_unattributed"] += 1
            return None
        session_id = self._board.session_id(payload.conversation_id)
        return payload.to_event(
            session_id, at=at, run=run, terminal_id=peer.terminal_id
        )

    async def _find_run(
        self, conversation: ConversationId, peer: HookPeer
    ) -> Process | None:
        run = self._look(conversation, peer)
        if run is not None or not (peer.ancestors or peer.terminal_id):
            return run
        await self._board.read_registry()
        try:
            async with asyncio.timeout(ATTRIBUTION_SECONDS):
                while True:
                    seq = self._board.feed.seq
                    run = self._look(conversation, peer)
                    if run is not None:
                        return run
                    await self._board.feed.wait_beyond(seq)
        except TimeoutError:
            return None

    def _look(self, conversation: ConversationId, peer: HookPeer) -> Process | None:
        agent = self._find_agent(peer)
        if agent is None:
            return None
        # Also one that has just left it: `/clear` ends a session after it began the
        # next, and registers before it runs the hooks.
        run = self._board.live.evidence(conversation).runs.get(agent)
        if run is None or run.sighting.liveness is Liveness.GONE:
            return None
        return agent

    def _find_agent(self, peer: HookPeer) -> Process | None:
        """Return the registered agent that the peer proves to come from."""
        if peer.terminal_id is not None:
            sighting = self._board.terminals.get(peer.terminal_id)
            return None if sighting is None else sighting.process
        live = self._board.live.live_runs()
        claims = self._board.live.claims.values()
        # What a sandbox writes into its own registry says nothing about us out here.
        private = {it.entry.process for it in claims if it.folder.terminal_id}
        return next((it for it in peer.ancestors if it in live.keys() - private), None)

    def _has_room(self, key: str, at: datetime) -> bool:
        second = int(at.timestamp())
        if len(self._rates) > RATES_LIMIT:
            self._rates = {
                key: rate for key, rate in self._rates.items() if rate[0] == second
            }
        began, count = self._rates.get(key, (second, 0))
        count = count + 1 if began == second else 1
        self._rates[key] = (second, count)
        return count <= EVENTS_PER_SECOND

    @asynccontextmanager
    async def _turn(self, conversation: ConversationId) -> AsyncGenerator[None]:
        """Keep the events of a conversation in the order in which they came."""
        lock, waiting = self._turns.get(conversation, (asyncio.Lock(), 0))
        self._turns[conversation] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._turns[conversation]
            if waiting == 1:
                del self._turns[conversation]
            else:
                self._turns[conversation] = (lock, waiting - 1)


_COUNTED: Final = (
    "events_taken",
    "events_bad",
    "events_unattributed",
    "events_over_rate",
    "handling_us",
    "payloads_cut",
    "spool_applied",
    "spool_torn",
)
