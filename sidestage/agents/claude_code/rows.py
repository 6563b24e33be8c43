"""A row of the list out of what is known: pure, so that a table of cases tests it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final

from sidestage.agents.claude_code.folder_names import encode_folder
from sidestage.agents.claude_code.folding import Fold, moment
from sidestage.agents.claude_code.registry import RegistryEntry
from sidestage.ids import ConversationId, HostId, ProjectId, SessionId, TerminalId
from sidestage.sessions.evidence import Verdict
from sidestage.sessions.model import (
    AgentKind,
    MessagePreview,
    MessageRole,
    OpenCall,
    Process,
    Session,
    SessionOrigin,
    SessionState,
    WaitingFor,
    WaitingKind,
)
from sidestage.text import clean_path, clean_text, shorten

NAME_LIMIT_CHARACTERS: Final = 80
LABEL_LIMIT_CHARACTERS: Final = 80
UNNAMED: Final = "Claude Code session"
_EPOCH: Final = datetime.fromtimestamp(0, UTC)

_KIND_OF_LABEL: Final = {
    "permission prompt": WaitingKind.PERMISSION,
    "sandbox request": WaitingKind.PERMISSION,
    "worker request": WaitingKind.PERMISSION,
    "input needed": WaitingKind.QUESTION,
    "goal proposal": WaitingKind.DIALOG,
    "dialog open": WaitingKind.DIALOG,
}
_KIND_OF_TOOL: Final = {
    "ExitPlanMode": WaitingKind.PLAN,
    "AskUserQuestion": WaitingKind.QUESTION,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """All that is known of one conversation."""

    conversation_id: ConversationId = field(repr=False)
    config_dir: Path
    transcript: Path | None = field(repr=False)
    fold: Fold
    """An empty one when there is no transcript (yet)."""
    modified_at: datetime | None
    """The transcript's modification time."""
    entry: RegistryEntry | None
    """The newest process's registry entry, also after that process ended."""
    directory: str | None
    """Where the conversation began, without links."""
    directory_exists: bool | None
    is_placed: bool
    """Whether its transcript lies where a session of that folder has it."""
    processes: tuple[Process, ...]
    verdict: Verdict
    headless: frozenset[Process] = frozenset()
    """Those of the processes that show no dialog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the row stands among other things of ours."""

    session_id: SessionId
    host_id: HostId
    project_id: ProjectId | None
    terminal_id: TerminalId | None
    continued_from_id: SessionId | None
    handed_off_at: datetime | None = None


def directory_of(
    fold: Fold, folder_name: str | None, registry_directory: str | None
) -> tuple[str | None, bool]:
    """Return where the conversation began, and whether its transcript lies there.

    A transcript lies in a folder named for the one it began in (*folder_name*). A fork
    into another folder starts with copied records that name the old one. What names
    neither was put there by somebody: a program in one project's sandbox can write what
    it likes, but only into that project's folder of transcripts. A process without a
    transcript tells its folder itself.
    """
    if folder_name is None:
        return registry_directory, True
    for directory in (fold.directory, fold.current_directory):
        if directory is not None and encode_folder(Path(directory)) == folder_name:
            return directory, True
    return fold.directory or registry_directory, fold.directory is None


def build_row(known: Known, place: Place) -> Session:
    """Return the row of a conversation."""
    fold, verdict, entry = known.fold, known.verdict, known.entry
    last_activity = moment(fold.last_activity_at) or known.modified_at
    started = moment(fold.started_at) or (entry.started_at if entry else None)
    since = verdict.since or last_activity or started or _EPOCH
    return Session(
        id=place.session_id,
        agent=AgentKind.CLAUDE_CODE,
        host_id=place.host_id,
        name=choose_name(fold, entry.name if entry else None, known.directory),
        directory=known.directory,
        directory_exists=known.directory_exists,
        current_directory=_shown_path(fold.current_directory or known.directory),
        project_id=place.project_id,
        state=verdict.state,
        state_since=since,
        state_evidence=verdict.evidence,
        waiting_for=waiting_for(fold, verdict, since),
        terminal_id=place.terminal_id,
        started_at=started,
        last_activity_at=last_activity,
        ended_at=since if verdict.state is SessionState.ENDED else None,
        git_branch=fold.git_branch,
        model=fold.model,
        permission_mode=fold.permission_mode,
        agent_version=(entry.version if entry else None) or fold.version,
        usage=fold.token_usage if fold.complete and known.transcript else None,
        last_message=_last_message(fold),
        conflict=verdict.conflict,
        continued_from_id=place.continued_from_id,
        handed_off_at=place.handed_off_at,
        has_prompt=fold.has_prompt,
        origin=_origin(known),
    )


def _shown_path(path: str | None) -> str | None:
    return None if path is None else clean_path(path)


def choose_name(fold: Fold, given_name: str | None, directory: str | None) -> str:
    """Return the person's title, the CLI's, the first prompt, or the folder's name."""
    for name in (given_name, fold.person_title, fold.cli_title, fold.first_prompt):
        if name is not None and (cleaned := _clean_name(name)):
            return cleaned
    return _clean_name(PurePosixPath(directory or "").name) or UNNAMED


def _clean_name(name: str) -> str:
    cut = clean_text(name[: 4 * NAME_LIMIT_CHARACTERS], multiline=False)
    return shorten(cut, NAME_LIMIT_CHARACTERS)


def waiting_for(fold: Fold, verdict: Verdict, since: datetime) -> WaitingFor | None:
    """Return what an asking session waits for; None for any other."""
    if verdict.state is not SessionState.ASKING:
        return None
    label = clean_text(verdict.label or "", multiline=False)
    tool = _open_tool(fold)
    return WaitingFor(
        _waiting_kind(label, tool), shorten(label, LABEL_LIMIT_CHARACTERS), tool, since
    )


def _waiting_kind(label: str, tool: str | None) -> WaitingKind:
    kind = _KIND_OF_LABEL.get(label, WaitingKind.UNKNOWN)
    if kind is WaitingKind.DIALOG:
        return kind  # another dialog stands before the tool's own
    return _KIND_OF_TOOL.get(tool or "", kind)


def _open_tool(fold: Fold) -> str | None:
    """Return the tool whose dialog is open: calls of one answer ask one by one."""
    if not fold.open_calls:
        return None
    newest = fold.open_calls[-1][2]
    return next(name for _, name, answer in fold.open_calls if answer == newest)


def _last_message(fold: Fold) -> MessagePreview | None:
    if fold.last_role is None or fold.last_text is None:
        return None
    return MessagePreview(
        MessageRole(fold.last_role), fold.last_text, moment(fold.last_text_at)
    )


def _origin(known: Known) -> SessionOrigin:
    return SessionOrigin(
        known.conversation_id,
        known.config_dir,
        known.transcript,
        known.processes[-1] if known.processes else None,
        known.processes,
        known.headless,
        tuple(OpenCall(call_id, name) for call_id, name, _ in known.fold.open_calls),
    )
