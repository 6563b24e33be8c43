"""When a session may be resumed: one rule, used by every row and by the start.

The order of the checks and their sentences are part of the product: the first check
that fails answers. Checks 0 to 2 and 8 to 10 stand in `service.py`, since they need the
moment; these need only the row.
"""

from collections.abc import Callable
from typing import Final

from sidestage.errors import ErrorCode, OutsideResumeUnavailable
from sidestage.ids import HostId, is_conversation_id
from sidestage.projects.model import Project
from sidestage.sessions.model import Session, SessionState
from sidestage.terminals.desk import Refusal, ResumeAvailability

NOT_AN_ID: Final = "That is not an outside session id."
BAD_SIZE: Final = "cols and rows must be whole numbers from 1 to 500"
GONE: Final = "That session is no longer in the list."
OPEN_ALREADY: Final = "This session is already open in a terminal."
IN_FLIGHT: Final = "This session is already being resumed."
UNKNOWN_STATE: Final = "It can't be told whether this session still runs."
LIVE: Final = "This session is still running. Only an ended session can be resumed."
NO_PROJECT: Final = "Not in a project, so it can't be resumed."
OTHER_HOST: Final = "On a host, so it can't be resumed here."
NO_CONVERSATION: Final = "There is no conversation id, so it can't be resumed."
NOTHING_SAID: Final = "Nothing was said in this session yet, so it can't be resumed."
NO_FOLDER: Final = "Its folder no longer exists, so it can't be resumed."
UNSEEN_FOLDER: Final = "Its folder was not looked at yet. Try again in a moment."
STARTING: Final = "An agent is just starting in this folder. Try again in a moment."
TAKEN: Final = "Someone opened this conversation elsewhere just now."

_Check = Callable[[Session, Project | None, HostId], bool]


def _outside_projects(session: Session, project: Project | None, _: HostId) -> bool:
    return project is None or session.project_id is None


def _elsewhere(session: Session, project: Project | None, here: HostId) -> bool:
    return session.host_id != here or (project is not None and project.host_id != here)


def _without_conversation(session: Session, _p: Project | None, _: HostId) -> bool:
    return not is_conversation_id(session.origin.conversation_id)


def _without_prompt(session: Session, _p: Project | None, _: HostId) -> bool:
    return not session.has_prompt


def _without_folder(session: Session, _p: Project | None, _: HostId) -> bool:
    return session.directory is None or session.directory_exists is False


def _before_a_look(session: Session, _p: Project | None, _: HostId) -> bool:
    return session.directory_exists is None


_CHECKS: Final[tuple[tuple[_Check, str], ...]] = (
    (_outside_projects, NO_PROJECT),  # 3
    (_elsewhere, OTHER_HOST),  # 4
    (_without_conversation, NO_CONVERSATION),  # 5
    (_without_prompt, NOTHING_SAID),  # 6
    (_without_folder, NO_FOLDER),  # 7
    (_before_a_look, UNSEEN_FOLDER),  # 7, for a moment
)


def find_refusal(
    session: Session, project: Project | None, *, here: HostId
) -> str | None:
    """Apply checks 3 to 7; return the sentence of the first that fails, or None."""
    for fails, message in _CHECKS:
        if fails(session, project, here):
            return message
    return None


def check_resumable(
    session: Session, project: Project | None, *, here: HostId
) -> Project:
    """Apply checks 3 to 7; return the project or raise `OutsideResumeUnavailable`."""
    message = find_refusal(session, project, here=here)
    if message is not None or project is None:
        raise OutsideResumeUnavailable(message or NO_PROJECT)
    return project


def availability(
    session: Session, project: Project | None, *, here: HostId
) -> ResumeAvailability | None:
    """Return what a row shows; None for a session that has not ended."""
    if session.state is not SessionState.ENDED:
        return None
    message = find_refusal(session, project, here=here)
    if message is None:
        return ResumeAvailability(available=True, refusal=None)
    refusal = Refusal(ErrorCode.OUTSIDE_RESUME_UNAVAILABLE, message)
    return ResumeAvailability(available=False, refusal=refusal)
