"""How an offer is made and what becomes of it unanswered: lines 12, 14, 15, 16, 22."""

import asyncio
from dataclasses import replace

import pytest

from sidestage.devices.model import DeviceState
from sidestage.handover.model import OfferDelivery, OfferState
from sidestage.handover.sealing import OfferSealer
from sidestage.projects.adoption import AdoptionPolicy
from sidestage.sessions.hooks import HookKind
from sidestage.sessions.model import SessionState
from sidestage.sessions.transcript import EntryKind
from tests.fakes.devices import a_device
from tests.unit.handover.conftest import (
    MACHINE_SECRET,
    PARENT,
    QUESTION,
    Bench,
)


async def test_a_question_at_the_end_of_a_turn_makes_an_offer_sealed_for_each_device(
    bench: Bench,
) -> None:
    bench.add_parent(name="Fix the bug", directory="/srv/my project")
    offer = await bench.offer()
    assert offer.state is OfferState.PENDING
    assert offer.delivery is OfferDelivery.FORK
    assert set(offer.envelopes) == {"device:1", "device:2"}
    for number in (1, 2):
        envelope = offer.envelopes[a_device(number).id]
        assert bench.open(envelope, number) == {
            "question": QUESTION,
            "summary": "You: look at the project",
            "title": "Fix the bug",
            "folder": "/srv/my project",
        }
        assert envelope.header.expires_at_ms == offer.subject.expires_at_ms
    assert bench.push.told == [("waiting", offer.id)]
    assert ("handover.offer", "DONE", None) in await bench.actions()


async def test_what_is_on_disk_holds_no_text(bench: Bench) -> None:
    bench.add_parent(name="canary-title", directory="/srv/canary-folder")
    await bench.offer("canary-said. Which one, canary-question?")
    async with bench.database.read() as db:
        for table in ("offers", "offer_envelopes", "audit_entries"):
            rows = (await db.exec_driver_sql(f"SELECT * FROM {table}")).all()
            assert rows
            assert "canary" not in str(rows)


@pytest.mark.parametrize(
    "message",
    ["All done.", "", "Let me know if you have any questions.", "Why? Because. " * 900],
)
async def test_a_turn_that_asks_nothing_makes_no_offer(
    bench: Bench, message: str
) -> None:
    bench.add_parent()
    bench.ask(message)
    await bench.hear(last_assistant_message=message)
    assert bench.offers() == []


async def test_an_unknown_session_makes_no_offer(bench: Bench) -> None:
    await bench.hear(last_assistant_message=QUESTION)
    assert bench.offers() == []


async def test_a_turn_that_a_stop_hook_kept_going_makes_no_offer(bench: Bench) -> None:
    bench.add_parent()
    bench.ask()
    await bench.hear(last_assistant_message=QUESTION, stop_hook_active=True)
    assert bench.offers() == []


async def test_a_sub_agents_end_makes_no_offer(bench: Bench) -> None:
    bench.add_parent()
    bench.ask()
    await bench.hear(last_assistant_message=QUESTION, is_from_subagent=True)
    await bench.hear(HookKind.SUBAGENT_STOPPED, last_assistant_message=QUESTION)
    assert bench.offers() == []


async def test_a_message_that_the_transcript_does_not_hold_makes_no_offer(
    bench: Bench,
) -> None:
    """A hook may say what it likes: only what was recorded is offered."""
    bench.add_parent()
    bench.ask()
    await bench.hear(last_assistant_message="Shall I delete everything?")
    assert bench.offers() == []


async def test_a_message_that_is_written_a_moment_after_its_hook_is_waited_for(
    bench: Bench,
) -> None:
    bench.add_parent()
    hearing = asyncio.create_task(bench.hear(last_assistant_message=QUESTION))
    await asyncio.to_thread(lambda: None)
    bench.ask()
    await hearing
    assert len(bench.offers()) == 1


async def test_a_transcript_that_cannot_be_read_makes_no_offer_and_is_logged(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.add_parent()
    del bench.transcripts.entries[PARENT]
    await bench.hear(last_assistant_message=QUESTION)
    assert bench.offers() == []
    assert "no offer is made" in caplog.text


async def test_an_ended_session_makes_no_offer(bench: Bench) -> None:
    bench.add_parent()
    bench.ask()
    bench.agents.tell(PARENT, SessionState.ENDED)
    await bench.hear(last_assistant_message=QUESTION)
    assert bench.offers() == []


async def test_an_open_request_comes_before_an_offer(bench: Bench) -> None:
    bench.add_parent()
    bench.requests.waiting.add(PARENT)
    bench.ask()
    await bench.hear(last_assistant_message=QUESTION)
    assert bench.offers() == []


async def test_a_folder_that_is_left_alone_makes_no_offer(bench: Bench) -> None:
    bench.add_parent(directory="/srv/secret")
    bench.adoption.policy = AdoptionPolicy(excluded=("/srv/secret",))
    bench.ask()
    await bench.hear(last_assistant_message=QUESTION)
    assert bench.offers() == []


async def test_a_policy_that_changes_in_between_puts_the_offer_away(
    bench: Bench,
) -> None:
    bench.add_parent(directory="/srv/secret")
    offer = await bench.offer()
    bench.adoption.policy = AdoptionPolicy(enabled=False)
    await bench.handover.check_policy()
    await bench.until(offer, OfferState.DISMISSED)
    assert bench.push.told[-1] == ("settled", offer.id)


async def test_a_later_question_supersedes_the_one_before(bench: Bench) -> None:
    bench.add_parent()
    first = await bench.offer()
    second = await bench.offer("Then, which one?")
    assert second.id != first.id
    assert (await bench.until(first, OfferState.SUPERSEDED)).state_since


async def test_the_same_turn_told_twice_makes_one_offer(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    await bench.hear(last_assistant_message=QUESTION)
    assert bench.offers() == [offer]


@pytest.mark.parametrize(
    "kind",
    [EntryKind.PROMPT, EntryKind.TOOL_CALL, EntryKind.MESSAGE, EntryKind.COMMAND],
)
async def test_what_a_session_does_next_supersedes_its_offer(
    bench: Bench, kind: EntryKind
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.say(PARENT, kind, "on")
    await bench.until(offer, OfferState.SUPERSEDED)
    assert bench.push.told[-1] == ("settled", offer.id)


async def test_what_says_nothing_leaves_the_offer(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.say(PARENT, EntryKind.NOTICE, "a task ended")
    await bench.handover.check_policy()
    assert bench.handover.feed.get(offer.id) == offer


@pytest.mark.parametrize("kind", [HookKind.PROMPT, HookKind.TOOL_STARTING])
async def test_a_hook_supersedes_before_anything_is_written(
    bench: Bench, kind: HookKind
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    await bench.hear(kind, is_from_subagent=True)
    assert bench.handover.feed.get(offer.id) == offer
    await bench.hear(kind)
    await bench.until(offer, OfferState.SUPERSEDED)


async def test_an_agent_that_works_again_supersedes_its_offer(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.tell(PARENT, SessionState.RUNNING)
    await bench.until(offer, OfferState.SUPERSEDED)


async def test_a_prompt_while_the_server_was_away_supersedes_the_offer(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    await bench.stop()
    bench.agents.say(PARENT, EntryKind.PROMPT, "on")
    await bench.restart()
    await bench.until(offer, OfferState.SUPERSEDED)


async def test_another_branch_supersedes_the_offer(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.transcripts.switch(PARENT)
    bench.agents.say(PARENT, EntryKind.PROMPT, "from an earlier point")
    await bench.until(offer, OfferState.SUPERSEDED)


async def test_an_offer_outlives_a_restart_once_and_works(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    envelope = bench.seal(offer)
    await bench.restart()
    assert bench.offers() == [offer]
    await bench.answer(offer, envelope)
    await bench.until(offer, OfferState.CONTINUED)


async def test_a_session_that_ends_closes_its_offer(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.tell(PARENT, SessionState.ENDED)
    await bench.until(offer, OfferState.CLOSED)


async def test_an_offer_expires_after_twelve_hours(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.clock.forward(hours=12, seconds=1)
    await bench.handover.check_policy()
    assert (await bench.until(offer, OfferState.EXPIRED)).envelopes


async def test_a_closed_offer_loses_its_envelopes_after_a_day_and_goes_after_a_week(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.tell(PARENT, SessionState.ENDED)
    await bench.until(offer, OfferState.CLOSED)
    bench.clock.forward(hours=24)
    await bench.handover.check_policy()
    assert not (await bench.until(offer, OfferState.CLOSED)).envelopes
    async with bench.database.read() as db:
        rows = await db.exec_driver_sql("SELECT * FROM offer_envelopes")
        assert rows.all() == []
    bench.clock.forward(days=7)
    await bench.handover.check_policy()
    assert bench.offers() == []


async def test_a_device_paired_later_gets_the_open_offers(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.devices.feed.upsert(a_device(3))
    now = await bench.until_is(offer, lambda it: "device:3" in it.envelopes)
    opened = bench.open(now.envelopes[a_device(3).id], 3)
    assert opened["question"] == QUESTION
    assert opened["summary"] == "You: look at the project"
    assert now.envelopes[a_device(1).id] == offer.envelopes[a_device(1).id]


async def test_a_changed_transcript_is_not_sealed_in_an_old_offers_name(
    bench: Bench,
) -> None:
    row = bench.add_parent()
    offer = await bench.offer()
    sealer = OfferSealer(
        bench.parts.seals, bench.transcripts, machine_secret=MACHINE_SECRET
    )
    assert await sealer.seal_again(offer, row, [a_device(3)])
    changed = replace(bench.transcripts.entries[PARENT][-1], text="Shall I delete it?")
    bench.transcripts.entries[PARENT][-1] = changed
    assert await sealer.seal_again(offer, row, [a_device(3)]) == {}
    del bench.transcripts.entries[PARENT]
    assert await sealer.seal_again(offer, row, [a_device(3)]) == {}


async def test_a_revoked_devices_envelopes_are_deleted(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.devices.feed.upsert(a_device(1, state=DeviceState.REVOKED))
    now = await bench.until_is(offer, lambda it: len(it.envelopes) == 1)
    assert set(now.envelopes) == {"device:2"}
    async with bench.database.read() as db:
        rows = await db.exec_driver_sql("SELECT device_id FROM offer_envelopes")
        assert rows.scalars().all() == ["device:2"]


async def test_the_question_is_known_by_a_digest_that_takes_the_machines_secret(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    source = offer.source
    assert len(source.digest) == 32
    assert MACHINE_SECRET not in source.digest
    assert source.record_uuid == "uuid1"
    assert source.order == "000000000001.0000"
