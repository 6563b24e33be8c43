"""Counts and usage over time, for dashboards."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

import strawberry

from resolvers.content import plain
from resolvers.context import Info, given
from resolvers.enums import SessionCountGroup
from resolvers.node import check_id
from resolvers.projects import Project, find_project
from resolvers.sessions import TokenUsage
from sidestage.errors import BadUserInput
from sidestage.ids import ProjectId
from sidestage.projects import model as projects
from sidestage.sessions import board
from sidestage.sessions.model import AgentKind, Session, SessionState

SPAN_LIMITS: Final = {
    board.UsageBucket.HOUR: timedelta(days=31),
    board.UsageBucket.DAY: timedelta(days=731),
}
"""At most some 740 points: what a chart can show."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many sessions share one state, project or agent."""

    count: int
    state: SessionState | None = None
    agent: AgentKind | None = None
    project_id: ProjectId | None = None


def _project(info: Info, root: strawberry.Parent[Count]) -> projects.Project | None:
    return find_project(info.context, root.project_id)


@strawberry.type(
    description="How many sessions share what they were grouped by; the rest is null."
)
class SessionCount:
    """How many sessions share what they were grouped by."""

    count: int = plain("How many sessions.")
    state: SessionState | None = plain("Their state, when grouped by STATE.")
    agent: AgentKind | None = plain("Their agent, when grouped by AGENT.")
    project = strawberry.field(
        resolver=_project,
        graphql_type=Project | None,
        description="Their project, when grouped by PROJECT; null: in no project.",
    )


GroupBy = Annotated[
    SessionCountGroup, strawberry.argument(description="By what to count.")
]


def count_sessions(info: Info, group_by: GroupBy) -> list[Count]:
    """Count the sessions by state, project or agent; the largest group first."""
    groups = Counter(
        map(_GROUPS[group_by], info.context.parts.sessions.feed.values())
    ).most_common()
    return [_COUNTS[group_by](count, value) for value, count in groups]


def _by_state(session: Session) -> object:
    return session.state


def _by_agent(session: Session) -> object:
    return session.agent


def _by_project(session: Session) -> object:
    return session.project_id


_GROUPS: Final = {
    SessionCountGroup.STATE: _by_state,
    SessionCountGroup.AGENT: _by_agent,
    SessionCountGroup.PROJECT: _by_project,
}
_COUNTS: Final = {
    SessionCountGroup.STATE: lambda count, value: Count(count, state=value),
    SessionCountGroup.AGENT: lambda count, value: Count(count, agent=value),
    SessionCountGroup.PROJECT: lambda count, value: Count(count, project_id=value),
}


@strawberry.type(description="Tokens of one stretch of time.")
class UsagePoint:
    """Tokens of one stretch of time."""

    start: datetime = plain("When the stretch begins.")
    usage: TokenUsage = plain("The tokens used in it.")
    messages: int = plain("How many model answers they are of.")


From = Annotated[
    datetime, strawberry.argument(name="from", description="From then on.")
]
To = Annotated[datetime, strawberry.argument(description="Until just before then.")]
Bucket = Annotated[
    board.UsageBucket,
    strawberry.argument(
        description="How wide a point is. HOUR serves 31 days at most, DAY two years."
    ),
]
InProject = Annotated[
    strawberry.ID | None,
    strawberry.argument(description="Only sessions of this project."),
]


async def read_usage(
    info: Info,
    from_: From,
    to: To,
    bucket: Bucket,
    project_id: InProject = strawberry.UNSET,
) -> list[board.UsagePoint]:
    """Return the tokens over time; stretches without any are left out."""
    _check_span(from_, to, bucket)
    points = await info.context.parts.sessions.usage(
        start=from_,
        end=to,
        bucket=bucket,
        project_id=_checked_project(given(project_id)),
    )
    return list(points)


def _check_span(start: datetime, end: datetime, bucket: board.UsageBucket) -> None:
    if start >= end:
        raise BadUserInput("from must be before to.")
    if end - start > SPAN_LIMITS[bucket]:
        days = SPAN_LIMITS[bucket].days
        raise BadUserInput(f"{bucket} serves {days} days at most.")


def _checked_project(id_: str | None) -> ProjectId | None:
    return ProjectId(check_id(id_, "project")) if id_ else None
