"""What becomes of an answer: lines 16 to 23 of the handover's acceptance."""

import asyncio
from dataclasses import replace

import pytest

from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind, Scope
from sidestage.errors import (
    AgentNotFound,
    AgentNotIdle,
    AnswerStartsACommand,
    DeviceKeyRequired,
    EnvelopeInvalid,
    EnvelopeReplayed,
    HostUnavailable,
    InvalidInput,
    OfferNotFound,
    OfferNotOpen,
    PermissionDenied,
)
from sidestage.handover.model import OfferBlock, OfferDelivery, OfferState
from sidestage.sessions.model import SessionState
from sidestage.sessions.transcript import EntryKind
from tests.fakes.devices import a_device
from tests.unit.handover.conftest import (
    PARENT,
    QUESTION,
    Bench,
    an_actor,
    deleted_transcript,
)


async def test_an_answer_is_typed_into_a_fork_and_ends_as_continued(
    bench: Bench,
) -> None:
    bench.add_parent(permission_mode="acceptEdits")
    offer = await bench.offer()
    told = await bench.answer(offer)
    assert told.state in (OfferState.ANSWERING, OfferState.CONTINUED)
    continued = await bench.until(offer, OfferState.CONTINUED)
    [fork] = bench.agents.forks
    assert fork.session_id == PARENT
    assert (fork.permission_mode, fork.is_fresh) == ("acceptEdits", False)
    assert bench.prompts(bench.child()) == ["The second one"]
    assert continued.continuation_id == bench.child()
    assert continued.terminal_id == fork.terminal_id
    assert continued.accepted is not None
    assert continued.accepted.envelope is None


async def test_the_parent_is_handed_off_until_its_keyboard_is_used(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    await bench.answer(offer)
    await bench.until(offer, OfferState.CONTINUED)
    assert PARENT in bench.agents.handed_off
    assert bench.agents.continues[bench.agents.forks[0].conversation_id] == PARENT
    await bench.hear(last_assistant_message=QUESTION)
    assert bench.handover.open_of(PARENT) is None

    await bench.restart()
    assert PARENT in bench.agents.handed_off
    bench.agents.say(PARENT, EntryKind.PROMPT, "here again")
    await until(lambda: PARENT not in bench.agents.handed_off)
    assert await bench.offer("And now, which one?")


async def test_the_same_envelope_again_gets_the_same_outcome_and_starts_nothing(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    envelope = bench.seal(offer)
    both = await asyncio.gather(
        bench.answer(offer, envelope), bench.answer(offer, envelope)
    )
    assert {it.id for it in both} == {offer.id}
    await bench.until(offer, OfferState.CONTINUED)
    again = await bench.answer(offer, envelope)
    assert again.state is OfferState.CONTINUED
    assert len(bench.agents.forks) == 1


async def test_of_two_devices_one_wins_and_the_other_is_told_the_state(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    results = await asyncio.gather(
        bench.answer(offer, number=1),
        bench.answer(offer, number=2),
        return_exceptions=True,
    )
    losers = [it for it in results if isinstance(it, OfferNotOpen)]
    assert len(losers) == 1
    assert losers[0].state in ("ANSWERING", "CONTINUED")
    await bench.until(offer, OfferState.CONTINUED)
    assert len(bench.agents.forks) == 1
    assert len(bench.prompts(bench.child())) == 1
    with pytest.raises(OfferNotOpen) as late:
        await bench.answer(offer, number=2)
    assert late.value.state == "CONTINUED"


async def test_other_bytes_under_a_known_message_id_are_a_replay(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    first = bench.seal(offer)
    await bench.answer(offer, first)
    other = bench.seal(offer, "Something else")
    header = replace(other.header, message_id=first.header.message_id)
    with pytest.raises(EnvelopeReplayed):
        await bench.answer(offer, replace(other, header=header))


async def test_a_start_that_failed_sets_the_offer_back_and_may_be_retried(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    envelope = bench.seal(offer)
    bench.agents.fails_with = AgentNotFound("It is not installed.")
    with pytest.raises(AgentNotFound):
        await bench.answer(offer, envelope)
    back = await bench.until(offer, OfferState.PENDING)
    assert back.last_failure == "AGENT_NOT_FOUND"
    assert back.accepted is not None
    assert back.accepted.envelope == envelope
    bench.agents.fails_with = None
    await bench.answer(offer, envelope)
    done = await bench.until(offer, OfferState.CONTINUED)
    assert done.last_failure is None
    assert len(bench.agents.forks) == 1
    assert ("handover.started", "FAILED", "AGENT_NOT_FOUND") in await bench.actions()


async def test_a_host_that_started_without_answering_gets_no_second_start(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.is_lost = True
    with pytest.raises(HostUnavailable):
        await bench.answer(offer)
    await bench.until(offer, OfferState.CONTINUED)
    assert len(bench.agents.forks) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("", InvalidInput),
        ("\x1b", InvalidInput),
        ("x" * 8_001, InvalidInput),
        ("/cost", AnswerStartsACommand),
        ("  \n/cost", AnswerStartsACommand),
        ("exit", AnswerStartsACommand),
    ],
)
async def test_an_answer_that_may_not_be_typed_changes_nothing(
    bench: Bench, answer: str, error: type[Exception]
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    with pytest.raises(error):
        await bench.answer(offer, bench.seal(offer, answer))
    assert bench.handover.feed.get(offer.id) == offer
    assert bench.agents.forks == []
    assert ("handover.answer", "REFUSED") in [it[:2] for it in await bench.actions()]


@pytest.mark.parametrize(
    ("answer", "typed"),
    [
        ("-", "-"),
        ("- a dash", "- a dash"),
        ("# no heading", "# no heading"),
        ("@README.md", "@README.md"),
        ("!touch x", " !touch x"),
        ("one\r\ntwo\n\nthree", "one\ntwo\n\nthree"),
        ("a\x1b[201~b\x00c", "a[201~bc"),
        ("Ångström", "Ångström"),
        ("x" * 500, "x" * 500),
        ("line\n" * 8 + "end", "line\n" * 8 + "end"),
        ("a backslash \\", "a backslash \\"),
    ],
)
async def test_an_answer_reaches_the_agent_as_it_was_written(
    bench: Bench, answer: str, typed: str
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    await bench.answer(offer, bench.seal(offer, answer))
    await bench.until(offer, OfferState.CONTINUED)
    assert bench.prompts(bench.child()) == [typed]
    assert bench.agents.ran == []


@pytest.mark.parametrize("answer", ["x" * 8_000, "line\n" * 500 + "end"])
async def test_an_answer_too_tall_to_be_seen_is_pasted_whole(
    bench: Bench, answer: str
) -> None:
    """The CLI folds it in the box and tags it in the transcript: still one prompt."""
    bench.add_parent()
    offer = await bench.offer()
    await bench.answer(offer, bench.seal(offer, answer))
    await bench.until(offer, OfferState.CONTINUED)
    [typed] = bench.prompts(bench.child())
    assert f"\n{answer}\n" in typed
    assert "pasted_content" in typed


async def test_a_session_that_went_on_takes_no_answer(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.say(PARENT, EntryKind.PROMPT, "never mind")
    with pytest.raises(OfferNotOpen) as refused:
        await bench.answer(offer)
    assert refused.value.state == "SUPERSEDED"
    assert bench.agents.forks == []


async def test_a_conversation_that_is_gone_is_told_anew_in_a_fresh_one(
    bench: Bench,
) -> None:
    row = bench.add_parent()
    offer = await bench.offer()
    bench.sessions.feed.upsert(deleted_transcript(row))
    del bench.transcripts.entries[PARENT]
    bench.agents.tell(PARENT, SessionState.IDLE)
    await bench.answer(offer, bench.seal(offer, "!the second"))
    await bench.until(offer, OfferState.CONTINUED)
    [fork] = bench.agents.forks
    assert fork.is_fresh
    [told] = bench.prompts(bench.child())
    for part in (QUESTION, "You: look at the project", "!the second"):
        assert part in told
    assert told[0] not in "!/"


async def test_what_failed_after_it_had_started_is_told_and_not_started_again(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.opens_dialog = True
    envelope = bench.seal(offer)
    await bench.answer(offer, envelope)
    bench.agents.end(bench.agents.forks[0].terminal_id)
    ended = await bench.until_is(offer, lambda it: it.blocked_by)
    assert ended.state is OfferState.ANSWERING
    assert ended.blocked_by is OfferBlock.TERMINAL_ENDED
    again = await bench.answer(offer, envelope)
    assert again.blocked_by is OfferBlock.TERMINAL_ENDED
    assert len(bench.agents.forks) == 1


async def test_a_dialog_before_the_prompt_leaves_it_with_its_terminal_until_it_is_gone(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.opens_dialog = True
    await bench.answer(offer)
    blocked = await bench.until_is(offer, lambda it: it.blocked_by)
    assert blocked.state is OfferState.ANSWERING
    assert blocked.blocked_by is OfferBlock.DIALOG
    assert blocked.terminal_id == bench.agents.forks[0].terminal_id
    terminal = bench.agents.terminals.get(blocked.terminal_id or "")
    assert terminal is not None
    bench.agents.register(terminal)
    await bench.until(offer, OfferState.CONTINUED)
    assert bench.prompts(bench.child()) == ["The second one"]
    assert bench.agents.approved == []


async def test_a_dialog_that_opens_between_the_check_and_enter_is_not_approved(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()

    def open_dialog(terminal_id: str) -> None:
        bench.agents.on_paste = None
        bench.agents.tell(bench.child(), SessionState.ASKING)
        bench.agents.dialogs.add(bench.agents.forks[0].terminal_id)

    bench.agents.on_paste = open_dialog
    await bench.answer(offer)
    blocked = await bench.until_is(offer, lambda it: it.blocked_by)
    assert blocked.blocked_by is OfferBlock.DIALOG
    assert bench.agents.approved == []
    assert bench.prompts(bench.child()) == []

    bench.agents.dialogs.clear()
    bench.agents.tell(bench.child(), SessionState.IDLE)
    await bench.until(offer, OfferState.CONTINUED)
    assert bench.prompts(bench.child()) == ["The second one"]


async def test_a_status_that_moved_and_came_back_is_seen_by_its_time(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    pastes: list[str] = []

    def work_a_little(terminal_id: str) -> None:
        pastes.append(terminal_id)
        if len(pastes) == 1:
            bench.agents.tell(bench.child(), SessionState.RUNNING)
            bench.agents.tell(bench.child(), SessionState.IDLE)

    bench.agents.on_paste = work_a_little
    await bench.answer(offer)
    await bench.until(offer, OfferState.CONTINUED)
    assert bench.prompts(bench.child()) == ["The second one"]
    assert len(pastes) == 2


async def test_an_enter_that_got_lost_is_pressed_again(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.loses_enters = 2
    await bench.answer(offer)
    await bench.until(offer, OfferState.CONTINUED)
    assert bench.prompts(bench.child()) == ["The second one"]


# In a terminal of ours.


async def test_a_question_in_a_terminal_of_ours_is_answered_there(bench: Bench) -> None:
    row = bench.add_own_terminal()
    offer = await bench.offer()
    assert offer.delivery is OfferDelivery.TYPE
    await bench.answer(offer)
    continued = await bench.until(offer, OfferState.CONTINUED)
    assert bench.agents.forks == []
    assert bench.prompts(PARENT)[-1] == "The second one"
    assert continued.continuation_id == PARENT
    assert continued.terminal_id == row.terminal_id
    assert PARENT not in bench.agents.handed_off


@pytest.mark.parametrize("state", [SessionState.RUNNING, SessionState.ASKING])
async def test_an_agent_of_ours_that_is_not_idle_gets_nothing_typed(
    bench: Bench, state: SessionState
) -> None:
    bench.add_own_terminal()
    offer = await bench.offer()
    bench.clock.forward(seconds=1)
    told = replace(bench.agents.statuses[PARENT], state=state, at=bench.clock())
    bench.agents.statuses[PARENT] = told
    with pytest.raises(AgentNotIdle):
        await bench.answer(offer)
    now = bench.handover.feed.get(offer.id)
    assert now is not None
    assert now.state is OfferState.PENDING
    assert bench.prompts(PARENT) == ["look at the project"]


async def test_an_agent_of_ours_that_still_runs_its_stop_hooks_is_waited_for(
    bench: Bench,
) -> None:
    bench.add_own_terminal()
    offer = await bench.offer()
    idle = bench.agents.statuses[PARENT]
    bench.agents.statuses[PARENT] = replace(idle, state=SessionState.RUNNING)
    await bench.answer(offer)
    assert bench.prompts(PARENT) == ["look at the project"]
    bench.agents.statuses[PARENT] = idle
    await bench.until(offer, OfferState.CONTINUED)
    assert bench.prompts(PARENT)[-1] == "The second one"


async def test_a_parent_whose_keyboard_was_used_meanwhile_is_not_handed_off(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.opens_dialog = True
    await bench.answer(offer)
    bench.agents.say(PARENT, EntryKind.PROMPT, "I am here")
    [terminal] = bench.agents.terminals.values()
    bench.agents.register(terminal)
    await bench.until(offer, OfferState.CONTINUED)
    assert PARENT not in bench.agents.handed_off
    assert bench.agents.continues == {bench.agents.forks[0].conversation_id: PARENT}


async def test_somebodys_draft_is_neither_sent_nor_deleted(bench: Bench) -> None:
    row = bench.add_own_terminal()
    assert row.terminal_id is not None
    offer = await bench.offer()
    bench.agents.boxes[row.terminal_id] = "half a thou"
    await bench.answer(offer)
    blocked = await bench.until_is(offer, lambda it: it.blocked_by)
    assert blocked.blocked_by is OfferBlock.PROMPT_BOX_IN_USE
    assert bench.agents.boxes[row.terminal_id] == "half a thou"
    bench.agents.boxes[row.terminal_id] = ""
    await bench.until(offer, OfferState.CONTINUED)


async def test_a_prompt_at_the_keyboard_while_it_is_blocked_supersedes_the_answer(
    bench: Bench,
) -> None:
    row = bench.add_own_terminal()
    assert row.terminal_id is not None
    offer = await bench.offer()
    bench.agents.boxes[row.terminal_id] = "half a thou"
    await bench.answer(offer)
    await bench.until_is(offer, lambda it: it.blocked_by)
    bench.agents.boxes[row.terminal_id] = ""
    bench.agents.say(PARENT, EntryKind.PROMPT, "half a thought")
    await bench.until(offer, OfferState.SUPERSEDED)
    assert "The second one" not in bench.prompts(PARENT)


# Refusals.


async def test_only_a_devices_own_envelope_for_this_very_offer_counts(
    bench: Bench,
) -> None:
    bench.add_parent()
    offer = await bench.offer()
    sealed = bench.seal(offer)
    admin = Principal(PrincipalKind.ADMIN, ADMIN_SCOPES, "admin", None, "t")
    with pytest.raises(DeviceKeyRequired):
        await bench.handover.answer(offer.id, sealed, actor=admin)
    with pytest.raises(OfferNotFound):
        await bench.handover.answer("offer:none", sealed, actor=admin)
    with pytest.raises(EnvelopeInvalid):
        await bench.answer(offer, sealed, number=2)
    other = replace(sealed, header=replace(sealed.header, subject_id="offer:2"))
    with pytest.raises(EnvelopeInvalid):
        await bench.answer(offer, other)
    device = a_device(scopes=frozenset({Scope.VIEW}))
    with pytest.raises(PermissionDenied):
        await bench.handover.answer(offer.id, sealed, actor=an_actor(device))
    assert bench.agents.forks == []
    assert bench.handover.feed.get(offer.id) == offer
    refused = [it for it in await bench.actions() if it[1] == "REFUSED"]
    assert len(refused) == 4


async def test_an_expired_answer_is_refused(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.clock.forward(hours=12, seconds=1)
    with pytest.raises(EnvelopeInvalid):
        await bench.answer(offer)
    assert bench.agents.forks == []


async def test_what_a_person_dismissed_is_not_typed_any_more(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.opens_dialog = True
    await bench.answer(offer)
    await bench.handover.dismiss(offer.id, actor=an_actor(a_device()))
    terminal = bench.agents.terminals.values()[0]
    bench.agents.register(terminal)
    await bench.stop()
    assert bench.prompts(bench.child()) == []
    assert len(bench.agents.forks) == 1
    with pytest.raises(OfferNotOpen):
        await bench.handover.dismiss(offer.id, actor=an_actor(a_device()))


async def until(holds: "asyncio.Future[bool] | object") -> None:
    """Let the loop turn until *holds*, for at most five seconds."""
    assert callable(holds)
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.to_thread(lambda: None)
