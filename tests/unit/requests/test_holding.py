"""When a hook waits for a person, and when it is let go (acceptance: 4, 6, 11)."""

import json
from typing import Any

import pytest

from sidestage.devices.model import DeviceState
from sidestage.requests.model import RequestKind, RequestState
from sidestage.requests.opening import LIFE, OPEN_LIMIT
from sidestage.sessions.hooks import HookKind
from tests.fakes.agent_requests import RUN, a_request
from tests.fakes.devices import a_device
from tests.fakes.hooks import FakeHold
from tests.fakes.requesting import SESSION, Requesting
from tests.fakes.values import session_id
from tests.unit.requests.test_parsing import recorded


async def test_a_permission_becomes_a_request_that_is_stored_then_shown() -> None:
    world = Requesting()
    async with world.running():
        payload = recorded("Bash")
        hold = await world.ask(
            "Bash",
            payload["tool_input"],
            permission_suggestions=payload["permission_suggestions"],
        )
        request = world.waiting()
    assert request.kind is RequestKind.PERMISSION
    assert request.state is RequestState.PENDING
    assert request.tool_name == "Bash"
    assert json.loads(request.input_json) == payload["tool_input"]
    assert [item.destination for item in request.suggestions] == ["session"] * 2
    assert request.expires_at - request.created_at <= LIFE
    assert request.origin.tool_use_id == "toolu_1"
    assert request.origin.run == RUN
    assert request.origin.claim == hold.claim
    assert world.store.rows[request.id] == request
    assert hold.answers == []
    assert world.push.said == [("waiting", request.id)]


async def test_what_cannot_be_stored_is_not_held() -> None:
    """An agent would wait for a card that nobody can see after a restart."""
    world = Requesting()
    world.store.is_broken = True
    hold = FakeHold()
    async with world.running():
        with pytest.raises(OSError, match="space"):
            await world.ask(hold=hold)
        assert world.ledger.open_of(SESSION) == ()
    assert hold.answers == [None]


async def is_held(world: Requesting, **payload: Any) -> bool:
    async with world.running():
        hold = await world.ask(**payload)
        opened = world.ledger.open_of(SESSION)
    assert hold.answers == ([] if opened else [None])
    assert sum(world.intake.counters.values()) == (0 if opened else 1)
    return bool(opened)


@pytest.mark.parametrize(
    ("mode", "held"),
    [
        ("default", True),
        ("acceptEdits", True),
        ("plan", True),
        ("auto", True),
        ("a later mode", True),
        ("bypassPermissions", False),
        ("dontAsk", False),
    ],
)
async def test_it_is_held_in_every_mode_whose_dialog_opens(
    mode: str, *, held: bool
) -> None:
    assert await is_held(Requesting(), permission_mode=mode) is held


async def test_a_sub_agents_hook_is_not_held_for_its_dialog_comes_after_it() -> None:
    """Held, it took the keyboard away: no dialog opened (measured with 2.1.328)."""
    assert not await is_held(Requesting(), agent_id="a2452d69ec939a349")


async def test_a_session_that_is_not_adopted_makes_no_request() -> None:
    world = Requesting()
    world.adoption.excluded.add(world.row.directory)
    assert not await is_held(world)


async def test_a_session_nobody_knows_makes_no_request() -> None:
    world = Requesting()
    world.sessions.feed.remove(SESSION)
    assert not await is_held(world)


async def test_nobody_connected_and_no_push_means_not_held() -> None:
    world = Requesting()
    world.presence.connected.clear()
    assert not await is_held(world)


async def test_a_device_out_of_reach_is_enough_when_it_can_be_told() -> None:
    world = Requesting()
    world.presence.connected.clear()
    world.push.has_endpoint = True
    assert await is_held(world)


async def test_a_connected_device_that_may_not_answer_does_not_count() -> None:
    world = Requesting()
    world.devices.feed.upsert(a_device(1, scopes=frozenset()))
    assert not await is_held(world)
    again = Requesting()
    again.devices.feed.upsert(a_device(1, state=DeviceState.REVOKED))
    assert not await is_held(again)


async def test_a_run_without_dialogs_is_held_only_if_that_is_switched_on() -> None:
    world = Requesting()
    world.set_processes(RUN, headless=frozenset({RUN}))
    assert not await is_held(world)
    switched_on = Requesting(holds_headless=True)
    switched_on.set_processes(RUN, headless=frozenset({RUN}))
    assert await is_held(switched_on)
    assert switched_on.waiting().origin.is_headless


async def test_what_a_device_could_not_answer_is_not_held() -> None:
    assert not await is_held(Requesting(), tool_name="AskUserQuestion", tool_input={})


async def test_a_session_has_so_many_requests_open_and_no_more() -> None:
    world = Requesting()
    async with world.running():
        for number in range(OPEN_LIMIT):
            await world.ask(tool_input={"n": number}, call_id=f"toolu_{number}")
        over = await world.ask(tool_input={"n": "over"}, call_id="toolu_over")
        assert len(world.ledger.open_of(SESSION)) == OPEN_LIMIT
    assert over.answers == [None]
    assert world.intake.counters == {"requests_over_limit": 1}


async def test_each_of_two_requests_is_matched_with_its_own_call() -> None:
    world = Requesting()
    async with world.running():
        both = ({"file_path": "/etc/a"}, {"file_path": "/etc/b"})
        for number, value in enumerate(both):
            await world.hear(
                HookKind.TOOL_STARTING,
                tool_name="Read",
                tool_input=value,
                tool_use_id=f"toolu_{number}",
            )
        for value in reversed(both):
            await world.ask("Read", value, call_id=None)
        opened = world.ledger.open_of(SESSION)
    assert [each.origin.tool_use_id for each in opened] == ["toolu_1", "toolu_0"]


async def test_the_same_call_twice_is_two_calls() -> None:
    world = Requesting()
    async with world.running():
        for call in ("toolu_1", "toolu_2"):
            await world.ask(call_id=call)
            await world.hear(HookKind.TOOL_DONE, tool_name="Bash", tool_use_id=call)
            assert world.last().origin.tool_use_id == call
            assert not world.last().state.is_open


async def test_a_call_that_ran_without_being_asked_about_is_not_meant() -> None:
    world = Requesting()
    async with world.running():
        same = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
        for kind in (HookKind.TOOL_STARTING, HookKind.TOOL_DONE):
            await world.hear(kind, tool_use_id="toolu_1", **same)
        await world.ask(call_id="toolu_2")
        assert world.waiting().origin.tool_use_id == "toolu_2"


async def test_a_call_of_another_session_is_not_this_ones() -> None:
    """Two forks have calls of one id: the second one's request was not matched, and
    the end of one of its calls withdrew them all."""
    world = Requesting()
    world.store.rows["request:f"] = a_request(
        9, session_id=session_id(2), state=RequestState.ANSWERED
    )
    async with world.running():
        await world.ask(call_id="toolu_9")
        assert world.waiting().origin.tool_use_id == "toolu_9"


async def test_without_its_event_the_transcript_tells_the_call() -> None:
    world = Requesting()
    world.set_open_calls("toolu_7")
    async with world.running():
        await world.ask(call_id=None)
        assert world.waiting().origin.tool_use_id == "toolu_7"


async def test_a_call_that_could_be_either_is_not_guessed() -> None:
    world = Requesting()
    world.set_open_calls("toolu_7", "toolu_8")
    async with world.running():
        await world.ask(call_id=None)
        assert world.waiting().origin.tool_use_id is None


async def test_requests_are_of_their_session_only() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        assert world.desk.open_of(session_id(2)) == ()
        assert world.desk.open_of(SESSION) == (world.waiting(),)
