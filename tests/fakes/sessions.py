"""A list of sessions in memory."""

from datetime import datetime

from sidestage.feeds import Feed
from sidestage.ids import ProjectId, SessionId
from sidestage.sessions.board import Sessions, UsageBucket, UsagePoint
from sidestage.sessions.model import Session, SourceHealth, TokenUsage


class FakeSessions(Sessions):
    """Holds the sessions it is given."""

    def __init__(self, *sessions: Session, ring_limit: int = 10_000) -> None:
        self._feed = Feed[Session](lambda session: session.id, ring_limit=ring_limit)
        for session in sessions:
            self._feed.upsert(session)

    @property
    def feed(self) -> Feed[Session]:
        """The rows by id, with their changes."""
        return self._feed

    def find(self, session_id: SessionId) -> Session | None:
        """Return the row, or None."""
        return self._feed.get(session_id)

    def health(self) -> SourceHealth:
        """Say that all is well."""
        return SourceHealth(watching=True)

    async def refresh(self, session_id: SessionId) -> Session | None:
        """Return the row as it is."""
        return self._feed.get(session_id)

    async def usage(
        self,
        *,
        start: datetime,
        end: datetime,
        bucket: UsageBucket,
        project_id: ProjectId | None,
    ) -> tuple[UsagePoint, ...]:
        """Return one point at the start."""
        return (UsagePoint(start, TokenUsage(1, 2, 3, 4), 1),)
