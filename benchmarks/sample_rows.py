"""The rows that all servers of a comparison serve: twelve flat fields of a session."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from sidestage.sessions.model import Session, SessionState
from tests.fakes.values import a_session

FIELDS: Final = (
    "id agent name directory currentDirectory state stateSince startedAt "
    "lastActivityAt gitBranch model permissionMode"
)
ROW_MARK: Final = b'"currentDirectory":'
"""Stands once in each row, however it is encoded."""
STATES: Final = (SessionState.RUNNING, SessionState.IDLE, SessionState.ASKING)


def make_sessions(count: int) -> tuple[Session, ...]:
    """Return *count* rows, alike but for what differs from one to the next."""
    return tuple(
        replace(
            a_session(number),
            name=f"Fix the build of module {number}, then run its tests",
            directory=f"/home/ada/code/project-{number % 20}",
            current_directory=f"/home/ada/code/project-{number % 20}/src/module",
            state=STATES[number % len(STATES)],
        )
        for number in range(1, count + 1)
    )


def write_rows(sessions: tuple[Session, ...], path: Path) -> None:
    """Write the rows as the peers read them: what our API would answer."""
    path.write_text(json.dumps([_shown(session) for session in sessions]))


def _shown(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "agent": session.agent.value,
        "name": session.name,
        "directory": session.directory,
        "currentDirectory": session.current_directory,
        "state": session.state.value,
        "stateSince": _time(session.state_since),
        "startedAt": _time(session.started_at),
        "lastActivityAt": _time(session.last_activity_at),
        "gitBranch": session.git_branch,
        "model": session.model,
        "permissionMode": session.permission_mode,
    }


def _time(moment: datetime | None) -> str | None:
    return (
        None
        if moment is None
        else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
