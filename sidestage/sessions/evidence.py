"""How a session's state is known: pieces of evidence, and the verdict on them.

Liveness comes from the process, activity from the agent's registry and hooks, content
from the transcript; none stands in for another. Everything here is a pure function.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from sidestage.sessions.model import (
    EvidenceSource,
    Process,
    SessionConflict,
    SessionState,
    StateEvidence,
)

CONFLICT_MESSAGE: Final = (
    "Two processes write this conversation: what one of them writes may be lost."
)
RUN_LIMIT: Final = 16
"""Runs remembered a conversation; the oldest ended ones are forgotten."""


class Liveness(StrEnum):
    """What is known of a process."""

    ALIVE = "ALIVE"
    GONE = "GONE"
    LEFT = "LEFT"
    """The process exists, but went on to another conversation."""
    UNKNOWN = "UNKNOWN"
    """Its pid belongs to another namespace or machine, so it proves nothing."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Whether a run's process was there when we looked."""

    run: Process
    liveness: Liveness
    at: datetime
    source: EvidenceSource = EvidenceSource.PROCESS


@dataclass(frozen=True, slots=True)
class Activity:
    """What a run was doing at a time: RUNNING, ASKING or IDLE."""

    run: Process
    state: SessionState
    at: datetime
    source: EvidenceSource
    label: str | None = None
    """For ASKING: what the agent says it waits for."""


@dataclass(frozen=True, slots=True)
class Run:
    """One process's evidence on one conversation."""

    sighting: Sighting
    activity: Activity | None = None
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything known of one conversation's processes."""

    runs: Mapping[Process, Run] = field(default_factory=dict)

    def live(self) -> tuple[Run, ...]:
        """Return the runs whose process exists, the latest start last."""
        alive = (
            run for run in self.runs.values() if run.sighting.liveness is Liveness.ALIVE
        )
        return tuple(
            sorted(alive, key=lambda run: int(run.sighting.run.start_ticks or 0))
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """A conversation's state, since when, and why."""

    state: SessionState
    since: datetime | None
    """None: nobody saw it begin; the transcript's last time is the best there is."""
    evidence: StateEvidence | None
    label: str | None = None
    conflict: SessionConflict | None = None


def add_sighting(
    evidence: Evidence, sighting: Sighting, *, started_at: datetime | None = None
) -> Evidence:
    """Add what was seen of a process; an older look never replaces a newer one.

    A process that is gone stays gone: pid and start time together are never reused.
    """
    known = evidence.runs.get(sighting.run)
    if known is None:
        return _put(evidence, Run(sighting, None, started_at))
    if known.sighting.liveness is Liveness.GONE or sighting.at < known.sighting.at:
        return evidence
    if known.sighting.liveness is sighting.liveness:
        return evidence  # the first time it was seen so is the one that counts
    return _put(evidence, replace(known, sighting=sighting))


def add_activity(evidence: Evidence, activity: Activity) -> Evidence:
    """Add what a run does; only newer news of the same run replaces what is known."""
    known = evidence.runs.get(activity.run)
    if known is None:
        return evidence
    if known.activity is not None and activity.at < known.activity.at:
        return evidence
    return _put(evidence, replace(known, activity=activity))


def _put(evidence: Evidence, run: Run) -> Evidence:
    runs = {**evidence.runs, run.sighting.run: run}
    if len(runs) > RUN_LIMIT:
        gone = [
            key for key, it in runs.items() if it.sighting.liveness is Liveness.GONE
        ]
        for key in gone[: len(runs) - RUN_LIMIT]:
            del runs[key]
    return Evidence(runs)


def judge(
    evidence: Evidence, *, bystander: StateEvidence | None, looked_at: datetime
) -> Verdict:
    """Return the state the evidence supports.

    *bystander* tells of an agent process without a registry entry that stands in the
    session's folder, or of a terminal of ours that started one on the conversation: it
    may be on it, so ENDED cannot be claimed.
    *looked_at* is when the absence of any process was first established.
    """
    live = evidence.live()
    if live:
        return _judge_live(live)
    unknown = _newest(evidence.runs.values(), Liveness.UNKNOWN)
    if unknown is not None:
        return _unknown(_evidence_of(unknown.sighting))
    if bystander is not None:
        return _unknown(bystander)
    gone = _newest(evidence.runs.values(), Liveness.GONE, Liveness.LEFT)
    if gone is None:
        source = StateEvidence(EvidenceSource.REGISTRY, looked_at)
        return Verdict(SessionState.ENDED, None, source)
    sighting = gone.sighting
    return Verdict(
        SessionState.ENDED, sighting.at, StateEvidence(sighting.source, sighting.at)
    )


def _judge_live(live: tuple[Run, ...]) -> Verdict:
    told = [run.activity for run in live if run.activity is not None]
    conflict = _conflict(live)
    if not told:
        sighting = live[-1].sighting
        return replace(_unknown(_evidence_of(sighting)), conflict=conflict)
    activity = max(told, key=lambda activity: activity.at)
    return Verdict(
        activity.state,
        activity.at,
        StateEvidence(activity.source, activity.at),
        activity.label,
        conflict,
    )


def _conflict(live: tuple[Run, ...]) -> SessionConflict | None:
    if len(live) < 2:
        return None
    second = live[1]
    return SessionConflict(second.started_at or second.sighting.at, CONFLICT_MESSAGE)


def _evidence_of(sighting: Sighting) -> StateEvidence:
    return StateEvidence(sighting.source, sighting.at)


def _unknown(evidence: StateEvidence) -> Verdict:
    return Verdict(SessionState.UNKNOWN, evidence.observed_at, evidence)


def _newest(runs: Iterable[Run], *liveness: Liveness) -> Run | None:
    matching = [run for run in runs if run.sighting.liveness in liveness]
    return max(matching, key=lambda run: run.sighting.at, default=None)
