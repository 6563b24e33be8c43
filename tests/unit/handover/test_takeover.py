"""Taking over without a question, and prompts typed by hand: lines 16a and 21."""

from dataclasses import replace

import pytest

from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from sidestage.errors import (
    AgentNotIdle,
    InvalidInput,
    OutsideSessionNotFound,
    OutsideSessionResumed,
    PromptNotSent,
    StartFailed,
    TerminalNotFound,
    TerminalNotRunning,
)
from sidestage.handover.model import OfferState
from sidestage.handover.takeover import TakenOver
from sidestage.ids import TerminalId
from sidestage.sessions.model import SessionState
from sidestage.sessions.transcript import EntryKind
from sidestage.terminals.model import Terminal
from tests.fakes.values import a_terminal, session_id
from tests.unit.handover.conftest import PARENT, Bench

OWNER = Principal(PrincipalKind.ADMIN, ADMIN_SCOPES, "admin", token_id="t1")


async def take_over(bench: Bench, key: str | None = None) -> TakenOver:
    return await bench.handover.take_over(
        PARENT, cols=90, rows=31, idempotency_key=key, actor=OWNER
    )


async def send(bench: Bench, text: str, terminal_id: str = "terminal:7") -> Terminal:
    return await bench.handover.send_prompt(TerminalId(terminal_id), text, actor=OWNER)


async def test_an_idle_session_is_forked_at_once_and_handed_off(bench: Bench) -> None:
    bench.add_parent(permission_mode="plan")
    offer = await bench.offer()
    taken = await take_over(bench)
    [fork] = bench.agents.forks
    assert taken.handed_off
    assert taken.terminal.id == fork.terminal_id
    assert (fork.session_id, fork.permission_mode) == (PARENT, "plan")
    assert (fork.cols, fork.rows, fork.is_fresh) == (90, 31, False)
    assert PARENT in bench.agents.handed_off
    assert bench.agents.continues[fork.conversation_id] == PARENT
    await bench.until(offer, OfferState.SUPERSEDED)
    assert ("session.take-over", "DONE", None) in await bench.actions()


async def test_a_person_who_typed_meanwhile_keeps_the_session(bench: Bench) -> None:
    bench.add_parent()
    bench.ask()
    begin = bench.agents._begin

    def begin_while_typing(fork: object) -> Terminal:
        bench.agents.tell(PARENT, SessionState.RUNNING)
        return begin(fork)  # type: ignore[arg-type]  # passed on as it came

    bench.agents._begin = begin_while_typing  # type: ignore[method-assign]  # a race
    taken = await take_over(bench)
    assert not taken.handed_off
    assert PARENT not in bench.agents.handed_off
    assert bench.agents.continues == {bench.agents.forks[0].conversation_id: PARENT}


@pytest.mark.parametrize("state", [SessionState.RUNNING, SessionState.ASKING])
async def test_a_session_that_is_not_idle_is_not_taken_over(
    bench: Bench, state: SessionState
) -> None:
    bench.add_parent()
    bench.agents.tell(PARENT, state)
    with pytest.raises(AgentNotIdle):
        await take_over(bench)
    assert bench.agents.forks == []


async def test_what_is_ended_unknown_or_ours_is_not_taken_over(bench: Bench) -> None:
    with pytest.raises(OutsideSessionNotFound):
        await take_over(bench)
    row = bench.add_parent()
    bench.agents.tell(PARENT, SessionState.ENDED)
    with pytest.raises(AgentNotIdle, match="Resume it"):
        await take_over(bench)
    bench.sessions.feed.upsert(replace(row, terminal_id=TerminalId("terminal:7")))
    with pytest.raises(OutsideSessionResumed) as refused:
        await take_over(bench)
    assert refused.value.terminal_id == "terminal:7"


async def test_a_take_over_that_failed_leaves_the_session(bench: Bench) -> None:
    bench.add_parent()
    offer = await bench.offer()
    bench.agents.fails_with = StartFailed("It did not start.")
    with pytest.raises(StartFailed):
        await take_over(bench)
    assert bench.agents.handed_off == {}
    assert bench.handover.feed.get(offer.id) == offer


async def test_the_same_key_gives_the_same_terminal(bench: Bench) -> None:
    bench.add_parent()
    bench.ask()
    first = await take_over(bench, "key-1")
    again = await take_over(bench, "key-1")
    assert first.terminal.id == again.terminal.id
    assert again.handed_off
    assert len(bench.agents.forks) == 1
    bench.agents.tell(PARENT, SessionState.IDLE)
    other = await take_over(bench, "key-2")
    assert other.terminal.id != first.terminal.id


@pytest.mark.parametrize("text", ["go on", "/cost", "two\nlines"])
async def test_a_prompt_is_typed_into_an_idle_agent(bench: Bench, text: str) -> None:
    bench.add_own_terminal()
    bench.ask()
    terminal = await send(bench, text)
    assert terminal.id == "terminal:7"
    assert bench.prompts(PARENT)[-1] == text
    assert ("terminal.prompt", "DONE", None) in await bench.actions()


async def test_a_prompt_may_run_a_shell_on_purpose(bench: Bench) -> None:
    bench.add_own_terminal()
    bench.ask()
    await send(bench, "!ls")
    assert bench.agents.ran == ["!ls"]


async def test_an_enter_that_got_lost_is_pressed_again_for_a_prompt(
    bench: Bench,
) -> None:
    bench.add_own_terminal()
    bench.ask()
    bench.agents.loses_enters = 2
    await send(bench, "go on")
    assert bench.prompts(PARENT)[-1] == "go on"


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (SessionState.RUNNING, "not waiting for a prompt"),
        (SessionState.ASKING, "shows a dialog"),
    ],
)
async def test_a_prompt_waits_for_nobody(
    bench: Bench, state: SessionState, sentence: str
) -> None:
    bench.add_own_terminal()
    bench.agents.tell(PARENT, state)
    with pytest.raises(AgentNotIdle, match=sentence):
        await send(bench, "go on")
    assert bench.prompts(PARENT) == []
    assert ("terminal.prompt", "REFUSED", "AGENT_NOT_IDLE") in await bench.actions()


async def test_a_prompt_does_not_join_somebodys_draft(bench: Bench) -> None:
    bench.add_own_terminal()
    bench.ask()
    bench.agents.boxes[TerminalId("terminal:7")] = "half a thou"
    with pytest.raises(PromptNotSent):
        await send(bench, "go on")
    assert bench.agents.boxes[TerminalId("terminal:7")] == "half a thou"


@pytest.mark.parametrize("text", ["", " \n", "\x1b", "x" * 8_001])
async def test_a_prompt_has_one_to_eight_thousand_characters(
    bench: Bench, text: str
) -> None:
    bench.add_own_terminal()
    with pytest.raises(InvalidInput):
        await send(bench, text)


async def test_a_prompt_needs_a_terminal_with_an_agent_in_it(bench: Bench) -> None:
    with pytest.raises(TerminalNotFound):
        await send(bench, "go on")
    bench.agents.terminals.upsert(a_terminal(7))
    with pytest.raises(AgentNotIdle):
        await send(bench, "go on")
    bench.agents.end(TerminalId("terminal:7"))
    with pytest.raises(TerminalNotRunning):
        await send(bench, "go on")


async def test_what_its_agent_does_at_the_keyboard_takes_a_session_back(
    bench: Bench,
) -> None:
    bench.add_parent()
    bench.ask()
    await take_over(bench)
    assert bench.agents.continues
    bench.agents.say(PARENT, EntryKind.NOTICE, "a task ended")
    await bench.handover.check_policy()
    assert PARENT in bench.agents.handed_off
    assert session_id(1) == PARENT
