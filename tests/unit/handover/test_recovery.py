"""A server dies at each step of an answer; another takes over from what is on disk."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from sidestage.handover.model import OfferBlock, OfferState
from sidestage.handover.service import Handover
from sidestage.handover.store import Changes, OfferStore, Stored
from sidestage.sessions.transcript import EntryKind
from tests.unit.handover.conftest import PARENT, Bench


@dataclass
class DyingStore:
    """A store whose process dies before or after the write that *is_it*."""

    store: OfferStore
    is_it: Callable[[Changes], bool]
    after: bool
    died: asyncio.Event = field(default_factory=asyncio.Event)

    async def load(self) -> Stored:
        return await self.store.load()

    async def write(self, changes: Changes) -> None:
        if not self.is_it(changes):
            await self.store.write(changes)
            return
        if self.after:
            await self.store.write(changes)
        self.died.set()
        await asyncio.Event().wait()  # nothing more happens in a dead process


def audited(name: str) -> Callable[[Changes], bool]:
    """Tell the write whose audit record says *name*."""
    return lambda changes: any(
        it.action == f"handover.{name}" for it in changes.records
    )


async def die_at(bench: Bench, step: str, *, after: bool) -> None:
    """Answer, and let the server die at that step."""
    store = DyingStore(bench.parts.store, audited(step), after)
    await bench.stop()
    bench.handover = Handover(replace(bench.parts, store=store))
    await bench.handover.load()
    bench.begin()
    [offer] = bench.offers()
    asked = asyncio.create_task(bench.answer(offer, bench.seal(offer)))
    async with asyncio.timeout(5):
        await store.died.wait()
    asked.cancel()
    await bench.restart()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["answer", "started", "typed", "continued"])
async def test_an_answer_arrives_once_wherever_the_server_died(
    bench: Bench, step: str, *, after: bool
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    await die_at(bench, step, after=after)
    [now] = bench.offers()
    if (step, after) == ("answer", False):
        assert now.state is OfferState.PENDING
        await bench.answer(offer)
    done = await bench.until(offer, OfferState.CONTINUED)
    assert done.accepted is not None
    assert done.accepted.envelope is None
    assert len(bench.agents.forks) == 1
    assert bench.prompts(bench.child()) == ["The second one"]
    assert PARENT in bench.agents.handed_off


async def test_what_may_have_been_sent_is_not_typed_again(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    await bench.stop()
    bench.agents.loses_enters = 10_000
    bench.begin()
    await bench.answer(offer)
    await bench.until_is(offer, lambda it: it.accepted and it.accepted.sent_at)
    # The CLI took the text and lost it: neither box nor transcript has it.
    [fork] = bench.agents.forks
    await bench.stop()
    bench.agents.boxes[fork.terminal_id] = ""
    bench.agents.loses_enters = 0
    await bench.restart()
    blocked = await bench.until_is(offer, lambda it: it.blocked_by)
    assert blocked.blocked_by is OfferBlock.NOT_CONFIRMED
    assert bench.prompts(bench.child()) == []
    # The owner sends it by hand.
    bench.agents.say(bench.child(), EntryKind.PROMPT, "The second one")
    await bench.until(offer, OfferState.CONTINUED)


async def test_a_continuation_that_its_owner_prompted_is_left_to_them(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.opens_dialog = True
    await bench.answer(offer)
    await bench.until_is(offer, lambda it: it.blocked_by)
    await bench.stop()
    [terminal] = bench.agents.terminals.values()
    bench.agents.register(terminal)
    bench.agents.say(bench.child(), EntryKind.PROMPT, "something else")
    await bench.restart()
    blocked = await bench.until_is(offer, lambda it: it.blocked_by is OfferBlock.BUSY)
    assert blocked.state is OfferState.ANSWERING
    assert bench.prompts(bench.child()) == ["something else"]
