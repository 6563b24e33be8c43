from datetime import UTC, datetime, timedelta

import pytest

from sidestage.sessions.evidence import (
    Activity,
    Evidence,
    Liveness,
    Sighting,
    add_activity,
    add_sighting,
    judge,
)
from sidestage.sessions.model import (
    EvidenceSource,
    Process,
    SessionState,
    StateEvidence,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
ONE = Process(100, "5000")
TWO = Process(200, "6000")

ALIVE, GONE = Liveness.ALIVE, Liveness.GONE
LEFT, UNKNOWN = Liveness.LEFT, Liveness.UNKNOWN
RUNNING, ASKING, IDLE = SessionState.RUNNING, SessionState.ASKING, SessionState.IDLE
REGISTRY, HOOK = EvidenceSource.REGISTRY, EvidenceSource.HOOK


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def saw(liveness: Liveness, seconds: float, run: Process = ONE) -> Sighting:
    return Sighting(run, liveness, at(seconds))


def does(
    state: SessionState,
    seconds: float,
    run: Process = ONE,
    source: EvidenceSource = REGISTRY,
    label: str | None = None,
) -> Activity:
    return Activity(run, state, at(seconds), source, label)


def evidence(*pieces: Sighting | Activity) -> Evidence:
    known = Evidence()
    for piece in pieces:
        if isinstance(piece, Sighting):
            known = add_sighting(known, piece, started_at=piece.at)
        else:
            known = add_activity(known, piece)
    return known


@pytest.mark.parametrize(
    ("pieces", "state", "since"),
    [
        ([], SessionState.ENDED, None),
        ([saw(ALIVE, 0), does(RUNNING, 1)], RUNNING, 1),
        ([saw(ALIVE, 0), does(ASKING, 1)], ASKING, 1),
        ([saw(ALIVE, 0), does(IDLE, 1)], IDLE, 1),
        # The process exists, but nothing says what it does.
        ([saw(ALIVE, 0)], SessionState.UNKNOWN, 0),
        ([saw(ALIVE, 0), does(RUNNING, 1), saw(GONE, 2)], SessionState.ENDED, 2),
        # A pid of another namespace proves nothing, whatever its file says.
        ([saw(UNKNOWN, 0), does(RUNNING, 1)], SessionState.UNKNOWN, 0),
        # One process ended, another one carries on.
        (
            [saw(GONE, 0), saw(ALIVE, 1, TWO), does(IDLE, 2, TWO)],
            IDLE,
            2,
        ),
        ([saw(GONE, 0), saw(UNKNOWN, 1, TWO)], SessionState.UNKNOWN, 1),
        # The process went on to another conversation, and may come back.
        ([saw(ALIVE, 0), does(IDLE, 1), saw(LEFT, 2)], SessionState.ENDED, 2),
        ([saw(ALIVE, 0), saw(LEFT, 1), saw(ALIVE, 2), does(IDLE, 3)], IDLE, 3),
    ],
)
def test_the_state_is_what_the_evidence_supports(
    pieces: list[Sighting | Activity], state: SessionState, since: float | None
) -> None:
    verdict = judge(evidence(*pieces), bystander=None, looked_at=NOON)
    assert verdict.state is state
    assert verdict.since == (None if since is None else at(since))


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (does(RUNNING, 5), does(IDLE, 6), IDLE),
        (does(IDLE, 6), does(RUNNING, 5), IDLE),
        (does(ASKING, 5, source=HOOK), does(RUNNING, 4), ASKING),
        (does(RUNNING, 5, source=HOOK), does(IDLE, 6), IDLE),
    ],
)
def test_the_newest_news_of_a_run_wins_whatever_comes_last(
    first: Activity, second: Activity, kept: SessionState
) -> None:
    """A one-second poll overwrote the hook's correct state with what it had read."""
    known = evidence(saw(ALIVE, 0), first, second)
    assert judge(known, bystander=None, looked_at=NOON).state is kept


def test_news_of_an_ended_run_says_nothing_about_the_next_one() -> None:
    known = evidence(
        saw(ALIVE, 0), saw(GONE, 1), saw(ALIVE, 2, TWO), does(IDLE, 3, TWO)
    )
    known = add_activity(known, does(RUNNING, 9, ONE))
    assert judge(known, bystander=None, looked_at=NOON).state is IDLE


def test_a_process_that_is_gone_never_comes_back() -> None:
    known = evidence(saw(ALIVE, 0), saw(GONE, 1), saw(ALIVE, 2), does(IDLE, 3))
    verdict = judge(known, bystander=None, looked_at=NOON)
    assert verdict.state is SessionState.ENDED
    assert verdict.since == at(1)


def test_a_late_look_does_not_undo_a_newer_one() -> None:
    known = evidence(saw(ALIVE, 5), does(IDLE, 5), saw(GONE, 4))
    assert judge(known, bystander=None, looked_at=NOON).state is IDLE


def test_activity_of_an_unseen_run_is_no_proof_that_it_lives() -> None:
    known = evidence(does(RUNNING, 1))
    assert judge(known, bystander=None, looked_at=NOON).state is SessionState.ENDED


def test_two_live_processes_are_a_conflict_since_the_second_came() -> None:
    known = evidence(
        saw(ALIVE, 0), saw(ALIVE, 7, TWO), does(IDLE, 8), does(RUNNING, 9, TWO)
    )
    verdict = judge(known, bystander=None, looked_at=NOON)
    assert verdict.state is RUNNING
    assert verdict.conflict is not None
    assert verdict.conflict.since == at(7)
    ended = add_sighting(known, saw(GONE, 10, TWO))
    assert judge(ended, bystander=None, looked_at=NOON).conflict is None


def test_an_agent_without_a_registry_in_the_folder_makes_ended_unknown() -> None:
    bystander = StateEvidence(EvidenceSource.PROCESS, NOON)
    verdict = judge(Evidence(), bystander=bystander, looked_at=NOON)
    assert verdict.state is SessionState.UNKNOWN
    live = evidence(saw(ALIVE, 0), does(IDLE, 1))
    assert judge(live, bystander=bystander, looked_at=NOON).state is IDLE


def test_the_evidence_names_its_source_and_time() -> None:
    known = evidence(saw(ALIVE, 0), does(ASKING, 2, source=HOOK, label="input needed"))
    verdict = judge(known, bystander=None, looked_at=NOON)
    assert verdict.evidence is not None
    assert verdict.evidence.source is HOOK
    assert verdict.evidence.observed_at == at(2)
    assert verdict.label == "input needed"


def test_ended_runs_are_forgotten_before_live_ones() -> None:
    known = evidence(saw(ALIVE, 0))
    for number in range(100):
        run = Process(1000 + number, str(number))
        known = add_sighting(known, saw(GONE, number, run))
    assert len(known.runs) <= 17
    assert known.live()[0].sighting.run == ONE
