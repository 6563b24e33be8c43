"""What ends a request without a device (acceptance: 7, 9, 10)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sidestage.requests.model import RequestEnd, RequestState
from sidestage.requests.opening import LIFE
from sidestage.requests.watch import DIALOG_PATIENCE_SECONDS, RETURN_PATIENCE_SECONDS
from sidestage.sessions.hooks import HookKind
from sidestage.sessions.model import EvidenceSource, Process, SessionState
from tests.fakes.agent_requests import RUN
from tests.fakes.fast_clock import run_fast
from tests.fakes.hooks import FakeHold
from tests.fakes.requesting import SESSION, Requesting
from tests.fakes.waiting import wait_for_row


async def settled(world: Requesting) -> RequestEnd | None:
    """Return what ended the last request, once it is over."""
    request = await wait_for_row(
        world.ledger.feed, world.last().id, lambda row: not row.state.is_open
    )
    assert request.state is RequestState.WITHDRAWN
    assert world.store.rows[request.id] == request
    assert world.ledger.open_of(SESSION) == ()
    assert world.push.said[-1] == ("settled", request.id)
    return request.settled_by


async def still_open(world: Requesting) -> bool:
    """Tell whether the last request is open after everything was looked at."""
    await world.watch.check((SESSION,))
    return world.last().state.is_open


@pytest.mark.parametrize("kind", [HookKind.TOOL_DONE, HookKind.TOOL_FAILED])
async def test_a_call_that_ran_was_allowed_at_the_keyboard(kind: HookKind) -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        await world.hear(kind, tool_name="Bash", tool_use_id="toolu_1")
        assert await settled(world) is RequestEnd.KEYBOARD
    assert hold.answers == [None]


async def test_another_call_that_ran_says_nothing() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        await world.hear(HookKind.TOOL_DONE, tool_name="Bash", tool_use_id="toolu_9")
        assert await still_open(world)


async def test_a_call_that_could_not_be_matched_is_known_by_tool_and_prompt() -> None:
    world = Requesting()
    async with world.running():
        await world.ask(call_id=None)
        done = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
        others = (
            {"prompt_id": "prompt-2"},
            {"tool_name": "Read"},
            {"tool_input": {"command": "pwd"}},
        )
        for other in others:
            await world.hear(HookKind.TOOL_DONE, **{**done, **other})
            assert await still_open(world)
        await world.hear(HookKind.TOOL_DONE, **done)
        assert await settled(world) is RequestEnd.KEYBOARD


async def test_a_question_that_could_not_be_matched_is_done_with_its_answers() -> None:
    world = Requesting()
    async with world.running():
        value = {"questions": [{"question": "Why?", "options": []}]}
        await world.ask("AskUserQuestion", value, call_id=None)
        answered = {**value, "answers": {"Why?": "Because."}}
        await world.hear(
            HookKind.TOOL_DONE, tool_name="AskUserQuestion", tool_input=answered
        )
        assert await settled(world) is RequestEnd.KEYBOARD


@pytest.mark.parametrize(
    ("kind", "payload", "by"),
    [
        (HookKind.STOPPED, {}, RequestEnd.KEYBOARD),
        (HookKind.STOP_FAILED, {}, RequestEnd.KEYBOARD),
        (HookKind.PROMPT, {"prompt_id": "prompt-2"}, RequestEnd.KEYBOARD),
        (HookKind.SESSION_ENDED, {"reason": "clear"}, RequestEnd.SESSION_ENDED),
    ],
)
async def test_what_comes_after_a_dialog_says_that_it_is_over(
    kind: HookKind, payload: dict[str, Any], by: RequestEnd
) -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        await world.hear(kind, **payload)
        assert await settled(world) is by


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (HookKind.PROMPT, {"prompt_id": "prompt-1"}),
        (HookKind.STOPPED, {"agent_id": "a1"}),
        (HookKind.SUBAGENT_STOPPED, {"agent_id": "a1"}),
        (HookKind.NOTIFICATION, {}),
        (HookKind.TOOL_STARTING, {"tool_name": "Read", "tool_use_id": "toolu_2"}),
    ],
)
async def test_what_may_come_while_a_dialog_is_open_says_nothing(
    kind: HookKind, payload: dict[str, Any]
) -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        await world.hear(kind, **payload)
        assert await still_open(world)


async def test_events_from_before_the_request_and_of_other_runs_say_nothing() -> None:
    """Spooled events come late; a second process may be on the same conversation."""
    world = Requesting()
    async with world.running():
        old = world.event(HookKind.STOPPED)
        await world.ask()
        await world.intake.heard(replace(old, was_spooled=True, run=None))
        other = replace(world.event(HookKind.STOPPED), run=Process(1, "1"))
        await world.intake.heard(other)
        assert await still_open(world)


@pytest.mark.parametrize("state", [SessionState.RUNNING, SessionState.IDLE])
async def test_a_refused_or_dismissed_dialog_is_told_by_the_registry(
    state: SessionState,
) -> None:
    """The CLI sends no event for Esc and for a refusal."""
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        await world.watch.check((SESSION,))
        world.set_state(state)
        assert await settled(world) is RequestEnd.KEYBOARD
    assert hold.answers == [None]


async def test_what_the_registry_said_before_the_dialog_does_not_count() -> None:
    """The status between two dialogs may arrive after the second one's request."""
    world = Requesting()
    async with world.running():
        before = world.now
        await world.ask()
        await world.watch.check((SESSION,))
        world.set_state(SessionState.RUNNING, since=before)
        assert await still_open(world)


async def test_only_the_registry_knows_that_no_dialog_is_open() -> None:
    """A hook's event of one call made its session RUNNING while another still asked."""
    world = Requesting()
    async with world.running():
        await world.ask()
        await world.watch.check((SESSION,))
        world.set_state(SessionState.RUNNING, EvidenceSource.HOOK)
        assert await still_open(world)
        world.set_state(SessionState.UNKNOWN)
        assert await still_open(world)


async def test_a_result_in_the_transcript_ends_a_request() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        world.set_open_calls("toolu_1")
        assert await still_open(world)
        world.set_open_calls()
        assert await settled(world) is RequestEnd.KEYBOARD


async def test_of_two_at_once_each_ends_by_its_own_result() -> None:
    """Measured: the status stays `waiting` until both dialogs are closed."""
    world = Requesting()
    async with world.running():
        await world.ask("Read", {"file_path": "/a"}, call_id="toolu_1")
        await world.ask("Read", {"file_path": "/b"}, call_id="toolu_2")
        first, second = world.ledger.open_of(SESSION)
        world.set_open_calls("toolu_1", "toolu_2", tool_name="Read")
        await world.watch.check((SESSION,))
        world.set_state(SessionState.RUNNING)
        await world.watch.check((SESSION,))
        assert len(world.ledger.open_of(SESSION)) == 2
        world.set_state(SessionState.ASKING)
        world.set_open_calls("toolu_1", tool_name="Read")
        await wait_for_row(
            world.ledger.feed, second.id, lambda row: not row.state.is_open
        )
        assert world.waiting().id == first.id
        await world.hear(HookKind.TOOL_DONE, tool_name="Read", tool_use_id="toolu_1")
        assert world.ledger.open_of(SESSION) == ()


async def test_an_interrupt_ends_all_of_them() -> None:
    world = Requesting()
    async with world.running():
        await world.ask("Read", {"file_path": "/a"}, call_id="toolu_1")
        await world.ask("Read", {"file_path": "/b"}, call_id="toolu_2")
        world.set_state(SessionState.IDLE)
        await settled(world)


async def test_a_session_whose_process_ended_asks_nothing() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        world.set_state(SessionState.ENDED, EvidenceSource.PROCESS)
        assert await settled(world) is RequestEnd.SESSION_ENDED


async def test_a_process_that_went_on_to_another_conversation_asks_nothing() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        world.set_processes(Process(9, "9"))
        assert await settled(world) is RequestEnd.SESSION_ENDED


async def test_a_session_that_was_taken_from_the_list_asks_nothing() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        world.sessions.feed.remove(SESSION)
        assert await settled(world) is RequestEnd.SESSION_ENDED


async def test_a_change_of_the_policy_withdraws_what_is_open() -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        world.adoption.excluded.add(world.row.directory)
        await world.watch.check(world.ledger.open_sessions())
        assert await settled(world) is RequestEnd.POLICY
    assert hold.answers == [None]


async def test_settling_twice_is_settling_once() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        await world.hear(HookKind.STOPPED)
        over = world.last()
        await world.ledger.settle(over.id, RequestEnd.SESSION_ENDED)
        assert world.last() == over


async def test_a_hook_that_went_away_leaves_the_keyboard() -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        await hold.answer(None)
        request = await wait_for_row(
            world.ledger.feed,
            world.last().id,
            lambda row: row.state is RequestState.KEYBOARD_ONLY,
        )
        assert not request.has_timed_out
        assert world.store.rows[request.id].state is RequestState.KEYBOARD_ONLY


async def keyboard_only(world: Requesting) -> None:
    await wait_for_row(
        world.ledger.feed,
        world.last().id,
        lambda row: row.state is not RequestState.PENDING,
        deadline_seconds=LIFE.total_seconds() + 60,
    )


def test_after_its_time_only_the_keyboard_answers_while_it_still_asks() -> None:
    async def story() -> None:
        world = Requesting()
        async with world.running():
            hold = await world.ask()
            await world.watch.check((SESSION,))
            await keyboard_only(world)
            request = world.waiting()
            assert request.state is RequestState.KEYBOARD_ONLY
            assert request.has_timed_out
            assert hold.answers == [None]
            world.set_state(SessionState.RUNNING)
            assert await settled(world) is RequestEnd.KEYBOARD

    run_fast(story())


def test_without_a_dialog_the_end_of_its_time_is_reported_as_that() -> None:
    """It must not look like the person's "no" (acceptance: 9)."""

    async def story() -> None:
        world = Requesting(holds_headless=True)
        world.set_processes(RUN, headless=frozenset({RUN}))
        async with world.running():
            await world.ask()
            request = await wait_for_row(
                world.ledger.feed,
                world.last().id,
                lambda row: not row.state.is_open,
                deadline_seconds=LIFE.total_seconds() + 60,
            )
            assert request.state is RequestState.TIMED_OUT
            assert request.settled_by is RequestEnd.TIME_OUT
            assert request.verdict is None

    run_fast(story())


def test_a_request_whose_dialog_never_showed_is_over() -> None:
    """A hook that came back to a server without its row made a card for ever."""

    async def story() -> None:
        world = Requesting()
        world.set_state(SessionState.RUNNING)
        async with world.running():
            await world.ask()
            request = await wait_for_row(
                world.ledger.feed,
                world.last().id,
                lambda row: not row.state.is_open,
                deadline_seconds=DIALOG_PATIENCE_SECONDS + 1,
            )
            assert request.settled_by is RequestEnd.KEYBOARD

    run_fast(story())


def test_a_run_without_a_dialog_whose_hook_is_gone_is_given_up() -> None:
    async def story() -> None:
        world = Requesting(holds_headless=True)
        world.set_processes(RUN, headless=frozenset({RUN}))
        async with world.running():
            hold = await world.ask()
            await hold.answer(None)
            request = await wait_for_row(
                world.ledger.feed,
                world.last().id,
                lambda row: not row.state.is_open,
                deadline_seconds=RETURN_PATIENCE_SECONDS + 1,
            )
            assert request.settled_by is RequestEnd.UNKNOWN

    run_fast(story())


# After a restart of the server.


async def before_restart(**asked: Any) -> tuple[Requesting, FakeHold]:
    world = Requesting()
    async with world.running():
        hold = await world.ask(**asked)
        world.set_open_calls("toolu_1")
        await world.watch.check((SESSION,))
    assert world.waiting().state is RequestState.PENDING
    return world, hold


async def test_what_was_pending_is_shown_first_and_is_the_keyboards() -> None:
    world, _ = await before_restart()
    again = world.restarted()
    await again.ledger.load()
    assert again.waiting().state is RequestState.KEYBOARD_ONLY
    assert again.waiting().id == world.waiting().id


async def test_a_hook_that_comes_back_gets_its_own_request_again() -> None:
    world, hold = await before_restart()
    again = world.restarted()
    async with again.running():
        returned = FakeHold(hold.digest, hold.claim)
        await again.ask(hold=returned, call_id=None)
        request = again.waiting()
        assert request.state is RequestState.PENDING
        assert request.id == world.waiting().id
        over = await again.send(again.seal(request), request)
    assert over.state is RequestState.ANSWERED
    assert returned.answers == [{"behavior": "allow"}]
    assert hold.answers == []


@pytest.mark.parametrize("forged", ["claim", "digest"])
async def test_without_claim_or_with_other_bytes_it_is_not_the_same_hook(
    forged: str,
) -> None:
    world, hold = await before_restart()
    again = world.restarted()
    async with again.running():
        digest = b"x" * 32 if forged == "digest" else hold.digest
        claim = b"x" * 32 if forged == "claim" else hold.claim
        await again.ask(hold=FakeHold(digest, claim), call_id=None)
        first, second = again.ledger.open_of(SESSION)
        assert first.state is RequestState.KEYBOARD_ONLY
        assert second.id != first.id


@pytest.mark.parametrize(
    "change",
    [
        {"state": SessionState.ENDED},
        {"state": SessionState.IDLE},
        {"state": SessionState.RUNNING},
    ],
)
async def test_after_a_restart_nothing_is_a_phantom(change: dict[str, Any]) -> None:
    world, hold = await before_restart()
    world.pass_time()
    world.set_state(change["state"])
    again = world.restarted()
    async with again.running():
        over = again.last()
        assert over.state is RequestState.WITHDRAWN
        by_row = change["state"] is SessionState.ENDED
        assert over.settled_by is (
            RequestEnd.SESSION_ENDED if by_row else RequestEnd.UNKNOWN
        )
        late = FakeHold(hold.digest, hold.claim)
        await again.ask(hold=late, call_id=None)
        assert again.ledger.open_of(SESSION) == ()
        assert late.answers == [None]


async def test_a_result_that_came_while_we_were_away_ends_it() -> None:
    world, _ = await before_restart()
    world.set_open_calls()
    again = world.restarted()
    async with again.running():
        assert again.last().settled_by is RequestEnd.UNKNOWN


async def test_a_session_that_still_asks_keeps_its_request_without_a_hook() -> None:
    world, _ = await before_restart()
    again = world.restarted()
    async with again.running():
        assert await still_open(again)


async def test_its_time_runs_on_while_the_server_is_away() -> None:
    world, hold = await before_restart()
    world.pass_time(LIFE.total_seconds() + 1)
    again = world.restarted()
    async with again.running():
        assert again.waiting().has_timed_out
        late = FakeHold(hold.digest, hold.claim)
        await again.ask(hold=late, call_id=None)
        assert late.answers == [None]
        assert again.waiting().state is RequestState.KEYBOARD_ONLY


async def test_old_requests_are_forgotten() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        await world.hear(HookKind.STOPPED)
        old = world.last()
        world.now += LIFE + timedelta(hours=25)
        await world.ask(call_id="toolu_2")
        await world.hear(HookKind.STOPPED)
    assert old.id not in world.store.rows
    assert world.ledger.feed.get(old.id) is None
    assert len(world.store.rows) == 1
