"""Delivery of hook events to who listens."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from sidestage.ids import ConversationId, SessionId
from sidestage.sessions import hook_delivery
from sidestage.sessions.hook_delivery import QUEUE_LIMIT, HookDelivery
from sidestage.sessions.hooks import Hold, HookEvent, HookKind
from tests.fakes.hooks import FakeHold, FakeListener

WORDS = ("what an agent wrote",)


def event(number: int = 0, session: str = "outside:1") -> HookEvent:
    payload: Mapping[str, Any] = {"number": number}
    return HookEvent(
        kind=HookKind.PROMPT,
        session_id=SessionId(session),
        conversation_id=ConversationId("a"),
        run=None,
        at=datetime(2026, 12, 1, tzinfo=UTC),
        terminal_id=None,
        is_from_subagent=False,
        was_spooled=False,
        payload=payload,
    )


class Gate(FakeListener):
    """Takes nothing in before it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()

    async def heard(self, event: HookEvent) -> None:
        await self.open.wait()
        await super().heard(event)


class Broken(FakeListener):
    async def heard(self, event: HookEvent) -> None:
        raise ValueError(*WORDS)

    async def held(self, event: HookEvent, hold: Hold) -> None:
        await self.heard(event)


@pytest.fixture
async def delivery() -> AsyncIterator[HookDelivery]:
    delivery = HookDelivery()
    yield delivery
    await delivery.close()


async def test_events_of_a_session_come_in_order_to_every_listener(
    delivery: HookDelivery,
) -> None:
    first, second = FakeListener(), FakeListener()
    delivery.add_listener(first)
    delivery.add_listener(second)
    for number in range(20):
        done = delivery.deliver(event(number))
    await done
    for listener in (first, second):
        told = [it.payload["number"] for it in listener.events]
        assert told == list(range(20))


async def test_a_session_does_not_wait_for_another(delivery: HookDelivery) -> None:
    gate = Gate()
    delivery.add_listener(gate)
    slow = delivery.deliver(event(1, "outside:1"))
    gate.open.set()
    await delivery.deliver(event(2, "outside:2"))
    await slow
    gate.open.clear()
    stuck = delivery.deliver(event(3, "outside:1"))
    assert not stuck.done()


async def test_a_listener_that_fails_keeps_nothing_from_the_others(
    delivery: HookDelivery, caplog: pytest.LogCaptureFixture
) -> None:
    listener = FakeListener()
    delivery.add_listener(Broken())
    delivery.add_listener(listener)
    with caplog.at_level(logging.ERROR):
        await delivery.deliver(event())
    assert len(listener.events) == 1
    assert delivery.failures == 1
    assert "ValueError" in caplog.text
    assert "what an agent wrote" not in caplog.text


async def test_a_listener_that_hangs_is_given_up(
    delivery: HookDelivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_delivery, "LISTENER_SECONDS", 0.01)
    listener = FakeListener()
    delivery.add_listener(Gate())
    delivery.add_listener(listener)
    await delivery.deliver(event())
    assert len(listener.events) == 1
    assert delivery.failures == 1


async def test_what_is_over_the_queue_is_dropped_counted_and_let_go(
    delivery: HookDelivery,
) -> None:
    gate = Gate()
    delivery.add_listener(gate)
    for number in range(QUEUE_LIMIT):
        delivery.deliver(event(number))
    hold = FakeHold()
    await delivery.deliver(event(), hold)
    await hold.wait_closed()
    assert hold.answers == [None]
    assert delivery.dropped == 1


async def test_a_hold_reaches_the_listeners_as_it_is(delivery: HookDelivery) -> None:
    listener = FakeListener({"behavior": "allow"})
    delivery.add_listener(listener)
    hold = FakeHold()
    await delivery.deliver(event(), hold)
    assert listener.holds == [hold]
    assert hold.answers == [{"behavior": "allow"}]


async def test_a_hold_nobody_listens_to_is_let_go_at_once(
    delivery: HookDelivery,
) -> None:
    hold = FakeHold()
    await delivery.deliver(event(), hold)
    assert hold.answers == [None]
