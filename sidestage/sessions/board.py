"""The port through which the list of sessions is read."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from sidestage.feeds import Feed
from sidestage.ids import ProjectId, SessionId
from sidestage.sessions.model import Session, SourceHealth, TokenUsage


class UsageBucket(StrEnum):
    """How wide a point of `usage` is."""

    HOUR = "HOUR"
    DAY = "DAY"


@dataclass(frozen=True, slots=True)
class UsagePoint:
    """Tokens of one stretch of time (UTC, *start* included)."""

    start: datetime
    usage: TokenUsage
    messages: int


class Sessions(Protocol):
    """The current list of sessions."""

    @property
    def feed(self) -> Feed[Session]:
        """The rows by id, with their changes."""

    def find(self, session_id: SessionId) -> Session | None:
        """Return the row, or None if it is not in the current list."""

    def health(self) -> SourceHealth:
        """Tell how well the sources see."""

    async def refresh(self, session_id: SessionId) -> Session | None:
        """Look at the session's process and registry anew, now, and return its row."""

    async def usage(
        self,
        *,
        start: datetime,
        end: datetime,
        bucket: UsageBucket,
        project_id: ProjectId | None,
    ) -> tuple[UsagePoint, ...]:
        """Return tokens over time; empty buckets are left out."""
