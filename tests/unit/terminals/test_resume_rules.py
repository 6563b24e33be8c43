"""The checks that need only the row, and their order, which is part of the product."""

from dataclasses import replace
from itertools import combinations
from typing import Any, Final

import pytest

from sidestage.errors import ErrorCode, OutsideResumeUnavailable
from sidestage.ids import ConversationId, HostId
from sidestage.sessions.model import Session, SessionState
from sidestage.terminals.resume_rules import (
    availability,
    check_resumable,
    find_refusal,
)
from tests.fakes.values import HOST, a_project, a_session

PROJECT: Final = a_project()
ENDED: Final = a_session(state=SessionState.ENDED)

FAILURES: Final[dict[int, tuple[dict[str, Any], str]]] = {
    3: ({"project_id": None}, "Not in a project, so it can't be resumed."),
    4: ({"host_id": HostId("host:2")}, "On a host, so it can't be resumed here."),
    5: (
        {
            "origin": replace(
                ENDED.origin, conversation_id=ConversationId("--dangerous")
            )
        },
        "There is no conversation id, so it can't be resumed.",
    ),
    6: (
        {"has_prompt": False},
        "Nothing was said in this session yet, so it can't be resumed.",
    ),
    7: (
        {"directory_exists": False},
        "Its folder no longer exists, so it can't be resumed.",
    ),
}
"""For each check what makes a session fail it alone, and what it then says."""


def failing(*checks: int) -> Session:
    session = ENDED
    for check in checks:
        session = replace(session, **FAILURES[check][0])
    return session


def test_an_ended_session_that_fails_no_check_can_be_resumed() -> None:
    assert find_refusal(ENDED, PROJECT, here=HOST) is None
    assert check_resumable(ENDED, PROJECT, here=HOST) is PROJECT
    shown = availability(ENDED, PROJECT, here=HOST)
    assert shown is not None
    assert shown.available


def test_a_folder_that_nobody_looked_at_is_not_said_to_be_gone() -> None:
    """A row that was just found said so, until the look at its folder came back."""
    refusal = find_refusal(replace(ENDED, directory_exists=None), PROJECT, here=HOST)
    assert refusal == "Its folder was not looked at yet. Try again in a moment."


@pytest.mark.parametrize("check", FAILURES)
def test_each_check_has_its_sentence(check: int) -> None:
    assert find_refusal(failing(check), PROJECT, here=HOST) == FAILURES[check][1]


@pytest.mark.parametrize(("earlier", "later"), list(combinations(FAILURES, 2)))
def test_of_two_failing_checks_the_earlier_answers(earlier: int, later: int) -> None:
    """Two neighbours could change places, and every test passed."""
    session, sentence = failing(earlier, later), FAILURES[earlier][1]
    assert find_refusal(session, PROJECT, here=HOST) == sentence
    with pytest.raises(OutsideResumeUnavailable) as refused:
        check_resumable(session, PROJECT, here=HOST)
    assert str(refused.value) == sentence
    shown = availability(session, PROJECT, here=HOST)
    assert shown is not None
    assert shown.refusal is not None
    assert shown.refusal.code is ErrorCode.OUTSIDE_RESUME_UNAVAILABLE
    assert shown.refusal.message == sentence


def test_all_failing_at_once_is_the_first() -> None:
    assert find_refusal(failing(*FAILURES), None, here=HOST) == FAILURES[3][1]


def test_a_project_of_another_host_counts_as_elsewhere() -> None:
    elsewhere = a_project(host_id=HostId("host:2"))
    assert find_refusal(ENDED, elsewhere, here=HOST) == FAILURES[4][1]


def test_a_session_without_a_folder_has_none() -> None:
    nowhere = replace(ENDED, directory=None)
    assert find_refusal(nowhere, PROJECT, here=HOST) == FAILURES[7][1]


def test_a_live_session_shows_neither() -> None:
    for state in set(SessionState) - {SessionState.ENDED}:
        live = replace(failing(*FAILURES), state=state)
        assert availability(live, PROJECT, here=HOST) is None
