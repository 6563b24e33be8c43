"""Which sessions a client wants to see: a value, and how a session is held to it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sidestage.errors import BadUserInput
from sidestage.ids import ProjectId
from sidestage.sessions.model import AgentKind, Session, SessionState

TEXT_LIMIT_CHARACTERS: Final = 200
"""Longer than any name; a longer needle is a mistake."""
WINDOW_LIMIT_SECONDS: Final = 366 * 24 * 3600
"""A year: a longer window is every session."""
LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """What a session must be to match; None and the empty tuple ask for nothing."""

    states: tuple[SessionState, ...] = ()
    agent: AgentKind | None = None
    project_id: ProjectId | None = None
    text: str | None = None
    """Found in name, folder, branch or last words, without regard to case."""
    active_since: datetime | None = None
    active_within_seconds: int | None = None
    """Its last activity is no older than that; rows leave as time passes."""
    has_terminal: bool | None = None
    resumable: bool | None = None

    def __post_init__(self) -> None:
        """Raise `BadUserInput` for a filter that makes no sense."""
        if self.text is not None and len(self.text) > TEXT_LIMIT_CHARACTERS:
            raise BadUserInput(
                f"text must not be longer than {TEXT_LIMIT_CHARACTERS} characters"
            )
        within = self.active_within_seconds
        if within is not None and not 1 <= within <= WINDOW_LIMIT_SECONDS:
            raise BadUserInput(
                f"activeWithinSeconds must be from 1 to {WINDOW_LIMIT_SECONDS}"
            )

    def matches(self, session: Session, at: datetime) -> bool:
        """Tell whether *session* matches at the time *at*, but for `resumable`.

        Whether it is resumable hangs on projects and templates: see `with_resumable`.
        """
        return (
            self._is_kind(session)
            and self._is_recent(session, at)
            and (self.text is None or self.text.casefold() in words_of(session))
        )

    def _is_kind(self, session: Session) -> bool:
        return (
            (not self.states or session.state in self.states)
            and self.agent in (None, session.agent)
            and self.project_id in (None, session.project_id)
            and self.has_terminal in (None, session.terminal_id is not None)
        )

    def _is_recent(self, session: Session, at: datetime) -> bool:
        active = last_activity(session)
        if self.active_since is not None and active < self.active_since:
            return False
        leaves = self.leaves_at(session)
        return leaves is None or at < leaves

    def leaves_at(self, session: Session) -> datetime | None:
        """Return when *session* stops matching by the passing of time, or None."""
        if self.active_within_seconds is None:
            return None
        try:
            return last_activity(session) + timedelta(
                seconds=self.active_within_seconds
            )
        except OverflowError:  # a clock that ran wild wrote a time near year 9999
            return None

    def with_resumable(
        self, is_resumable: Callable[[Session], bool]
    ) -> Callable[[Session, datetime], bool]:
        """Return the whole rule, given how to tell a resumable session *now*."""
        if self.resumable is None:
            return self.matches
        return lambda session, at: (
            self.matches(session, at) and is_resumable(session) == self.resumable
        )

    @property
    def key(self) -> str:
        """One text for one filter, to which cursors are bound."""
        return repr(self)


def last_activity(session: Session) -> datetime:
    """Return when something last happened in *session*, as far as is known."""
    return session.last_activity_at or session.started_at or LONG_AGO


def words_of(session: Session) -> str:
    """Return the texts that `text` is looked for in, without case."""
    last = session.last_message
    texts = (session.name, session.directory, session.git_branch, last and last.text)
    return "\n".join(text for text in texts if text).casefold()
