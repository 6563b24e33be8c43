"""Enter is sent only into a box that holds the text, of an agent that stayed idle."""

import pytest

from sidestage.handover.model import OfferBlock
from sidestage.handover.typing_in import Blocked, PromptTypist, Target
from sidestage.ids import TerminalId
from sidestage.sessions.model import SessionState
from tests.unit.handover.conftest import PARENT, QUICK, Bench

TERMINAL = TerminalId("terminal:7")
TARGET = Target(PARENT, TERMINAL)


def typist(bench: Bench) -> PromptTypist:
    bench.add_own_terminal()
    bench.ask()
    return PromptTypist(bench.agents, bench.agents, QUICK)


def open_dialog(bench: Bench) -> None:
    bench.agents.dialogs.add(TERMINAL)
    bench.agents.tell(PARENT, SessionState.ASKING)


async def test_a_dialog_that_opens_at_the_very_last_is_not_approved(
    bench: Bench,
) -> None:
    typing = typist(bench)

    async def note() -> None:
        open_dialog(bench)

    with pytest.raises(Blocked) as blocked:
        await typing.send("text", TARGET, before_enter=note)
    assert blocked.value.by is OfferBlock.DIALOG
    assert bench.agents.approved == []


async def test_an_agent_that_went_on_at_the_very_last_gets_no_enter(
    bench: Bench,
) -> None:
    typing = typist(bench)

    async def note() -> None:
        bench.agents.tell(PARENT, SessionState.RUNNING)
        bench.agents.tell(PARENT, SessionState.IDLE)

    with pytest.raises(Blocked) as blocked:
        await typing.send("text", TARGET, before_enter=note)
    assert blocked.value.by is OfferBlock.BUSY
    assert bench.prompts(PARENT) == ["look at the project"]
    assert bench.agents.boxes[TERMINAL] == ""


async def test_a_box_that_changed_at_the_very_last_gets_no_enter(bench: Bench) -> None:
    typing = typist(bench)

    async def note() -> None:
        bench.agents.boxes[TERMINAL] += " and what a person types"

    with pytest.raises(Blocked) as blocked:
        await typing.send("text", TARGET, before_enter=note)
    assert blocked.value.by is OfferBlock.PROMPT_BOX_IN_USE
    assert bench.prompts(PARENT) == ["look at the project"]
    assert bench.agents.boxes[TERMINAL] == "text and what a person types"


async def test_nothing_is_written_down_of_what_was_not_ready(bench: Bench) -> None:
    typing = typist(bench)
    bench.agents.on_paste = lambda _: bench.agents.tell(PARENT, SessionState.RUNNING)

    async def note() -> None:
        raise AssertionError("Enter is not near")

    with pytest.raises(Blocked):
        await typing.send("text", TARGET, before_enter=note)


async def test_what_a_dead_server_pasted_is_sent_and_not_pasted_again(
    bench: Bench,
) -> None:
    typing = typist(bench)
    bench.agents.boxes[TERMINAL] = "text"
    pasted: list[str] = []
    bench.agents.on_paste = pasted.append
    await typing.send("text", TARGET, before_enter=nothing)
    assert pasted == []
    assert bench.prompts(PARENT)[-1] == "text"


@pytest.mark.parametrize("is_ours", [False, True])
async def test_a_folded_paste_is_replaced_only_where_nobody_else_types(
    bench: Bench, *, is_ours: bool
) -> None:
    typing = typist(bench)
    bench.agents.boxes[TERMINAL] = "x" * 900
    bench.agents.folded.add(TERMINAL)
    target = Target(PARENT, TERMINAL, is_ours=is_ours)
    if is_ours:
        await typing.send("text", target, before_enter=nothing)
        assert bench.prompts(PARENT)[-1] == "text"
        return
    with pytest.raises(Blocked) as blocked:
        await typing.send("text", target, before_enter=nothing)
    assert blocked.value.by is OfferBlock.PROMPT_BOX_IN_USE
    assert bench.agents.boxes[TERMINAL] == "x" * 900


async def nothing() -> None:
    """Write nothing down."""
