"""The CLI's live processes: registry entries, checked against the process table."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.registry import (
    RegistryEntry,
    is_registry_file,
    read_registry,
)
from sidestage.agents.processes import ProcessTable
from sidestage.ids import ConversationId, TerminalId
from sidestage.sessions.evidence import (
    Activity,
    Evidence,
    Liveness,
    Sighting,
    add_activity,
    add_sighting,
)
from sidestage.sessions.lineage import ToldStatus
from sidestage.sessions.model import EvidenceSource, Process, SessionState

BOOT_SLACK: Final = timedelta(seconds=5)
"""Clocks are set while a machine starts; a registry file of this boot is newer."""
HOOK_LEAD: Final = timedelta(seconds=1)
"""How far a hook may be ahead of the registry, which tells the same 0.1 s later. A hook
that came late, or of a stop that another hook took back, must not stand for ever."""
REGISTRY_FILE_LIMIT: Final = 1_000
"""Registry files read a folder: killed processes leave theirs behind for ever."""
_STATE_OF_STATUS: Final = {
    "busy": SessionState.RUNNING,
    "waiting": SessionState.ASKING,
    "idle": SessionState.IDLE,
}


@dataclass(frozen=True, slots=True)
class RegistryFolder:
    """A folder of registry files: a config dir's, or a terminal's private one."""

    path: Path
    config_dir: Path
    terminal_id: TerminalId | None = None
    directory: str | None = None
    """Where the terminal's program was started."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a registry file and at its process. None: there is no such file."""

    folder: RegistryFolder
    path: str
    entry: RegistryEntry | None
    liveness: Liveness | None
    """None: the probe failed, so it changes nothing."""
    at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A registry entry that counts, and the folder it came from."""

    folder: RegistryFolder
    entry: RegistryEntry
    at: datetime
    """When the file was read."""


def list_registry_files(folder: RegistryFolder) -> list[str]:
    """Return the folder's registry files; an absent folder is empty. Blocks."""
    try:
        names = [path.name for path in folder.path.iterdir()]
    except OSError:
        return []
    files = sorted(name for name in names if is_registry_file(name))
    return [str(folder.path / name) for name in files[:REGISTRY_FILE_LIMIT]]


def look(
    folder: RegistryFolder, path: str, table: ProcessTable, at: datetime
) -> Reading:
    """Read a registry file and look at its process. Blocks."""
    entry = read_registry(Path(path))
    liveness = None if entry is None else check_liveness(entry, table)
    return Reading(folder, path, entry, liveness, at)


def check_liveness(entry: RegistryEntry, table: ProcessTable) -> Liveness | None:
    """Say whether the process that wrote *entry* exists; None if that failed."""
    if is_foreign(entry.pid_domain, table.domain):
        return Liveness.UNKNOWN
    times = (entry.started_at, entry.status_at, entry.updated_at)
    newest = max((time for time in times if time is not None), default=None)
    if newest is not None and newest < table.booted_at - BOOT_SLACK:
        return Liveness.GONE  # written before this machine started
    return check_process(entry.process, table)


def check_process(process: Process, table: ProcessTable) -> Liveness | None:
    """Say whether exactly this run exists; None if that could not be told."""
    try:
        ticks = table.find_start_ticks(process.pid)
    except OSError:
        return None
    return Liveness.ALIVE if ticks == process.start_ticks else Liveness.GONE


def is_foreign(domain: str | None, ours: str) -> bool:
    """Tell whether a pid of *domain* means nothing in *ours*.

    Both machine and namespace count: the first namespace has the same inode everywhere.
    """
    if domain is None:
        return False  # an older CLI that did not say
    parts, ours_parts = domain.split(":", 2), ours.split(":", 2)
    if len(parts) != 3 or parts[2] != ours_parts[2]:
        return True
    return bool(ours_parts[1]) and parts[1] != ours_parts[1]


@dataclass(slots=True)
class LiveProcesses:
    """What is known of every conversation's processes. For one event loop, no I/O."""

    directory_of: Callable[[ConversationId], str | None]
    """Where a conversation began, if a transcript says so."""
    claims: dict[str, Claim] = field(default_factory=dict)
    """By registry file."""
    refused_claims: int = 0
    _whereabouts: dict[Process, ConversationId] = field(default_factory=dict)
    """The conversation each live process is on."""
    _evidence: dict[ConversationId, Evidence] = field(default_factory=dict)
    _by_conversation: dict[ConversationId, set[str]] = field(default_factory=dict)

    def evidence(self, conversation: ConversationId) -> Evidence:
        """Return what is known of the conversation's processes."""
        return self._evidence.get(conversation) or Evidence()

    def conversations(self) -> set[ConversationId]:
        """Return every conversation that a registry entry names."""
        return set(self._by_conversation)

    def find_claim(self, conversation: ConversationId) -> Claim | None:
        """Return the claim of the conversation's newest process."""
        claims = [self.claims[path] for path in self.paths_of(conversation)]
        return max(
            claims,
            key=lambda claim: (
                self._is_live(claim),
                claim.entry.updated_at or claim.entry.started_at or _NEVER,
            ),
            default=None,
        )

    def paths_of(self, conversation: ConversationId) -> tuple[str, ...]:
        """Return the registry files that name the conversation."""
        return tuple(sorted(self._by_conversation.get(conversation, ())))

    def live_runs(self) -> dict[Process, ConversationId]:
        """Return each live process and the conversation it is on."""
        return dict(self._whereabouts)

    def apply(self, reading: Reading) -> set[ConversationId]:
        """Take a reading in; return the conversations it may have changed."""
        known = self.claims.get(reading.path)
        changed: set[ConversationId] = set()
        if known is not None:
            changed.add(known.entry.conversation_id)
        if known is not None and reading.at < known.at:
            return set()  # it came late: a newer look was taken in already
        if reading.entry is None:
            # The process may still be there: its own end tells of it.
            self._drop(reading.path)
            return changed
        claim = Claim(reading.folder, reading.entry, reading.at)
        if not self._accepts(reading.path, claim):
            self.refused_claims += 1
            self._drop(reading.path)
            return changed
        if known is not None and _is_older(reading.entry, known.entry):
            return set()
        if claim.folder.terminal_id is None:
            changed |= self._drop_pretenders(claim.entry.process)
        self._put(reading.path, claim)
        if reading.liveness is Liveness.ALIVE:
            changed |= self._note_departure(reading.entry, reading.at)
        self._note(reading)
        return changed | {reading.entry.conversation_id}

    def saw_end(self, run: Process, at: datetime) -> set[ConversationId]:
        """Take in that a process is gone; return what it changes."""
        conversation = self._whereabouts.pop(run, None)
        if conversation is None:
            return set()
        gone = Sighting(run, Liveness.GONE, at)
        self._evidence[conversation] = add_sighting(self.evidence(conversation), gone)
        return {conversation}

    def forget(self, conversation: ConversationId) -> bool:
        """Forget a conversation's processes; False if one lives or is registered."""
        if conversation in self._by_conversation or self.evidence(conversation).live():
            return False
        self._evidence.pop(conversation, None)
        return True

    def observe(self, conversation: ConversationId, activity: Activity) -> bool:
        """Take in what a hook or a terminal says; False if it changes nothing."""
        before = self.evidence(conversation)
        after = add_activity(before, activity)
        self._evidence[conversation] = after
        return after is not before

    def _accepts(self, path: str, claim: Claim) -> bool:
        """Tell whether the entry may speak for its conversation.

        A program inside a sandbox can write what it likes into its private folder, so
        an entry there speaks only for one conversation of its own terminal's folder,
        and never for a process that is registered elsewhere.
        """
        folder = claim.folder
        if folder.terminal_id is None:
            return True
        began = self.directory_of(claim.entry.conversation_id)
        if began and folder.directory and began != folder.directory:
            return False
        return not any(
            other.entry.process == claim.entry.process
            or (other.folder == folder and self._is_live(other))
            for other_path, other in self.claims.items()
            if other_path != path
        )

    def _drop_pretenders(self, process: Process) -> set[ConversationId]:
        """Drop the private claims on a process that is registered for all to see."""
        pretenders = {
            path: claim.entry.conversation_id
            for path, claim in self.claims.items()
            if claim.folder.terminal_id is not None and claim.entry.process == process
        }
        for path in pretenders:
            self._drop(path)
        return set(pretenders.values())

    def _is_live(self, claim: Claim) -> bool:
        run = self.evidence(claim.entry.conversation_id).runs.get(claim.entry.process)
        return run is not None and run.sighting.liveness is Liveness.ALIVE

    def _note_departure(
        self, entry: RegistryEntry, at: datetime
    ) -> set[ConversationId]:
        """Note that a process went on to another conversation (`/clear`, `/branch`).

        A process is on one conversation at a time: on the one its entry names now.
        """
        before = self._whereabouts.get(entry.process)
        self._whereabouts[entry.process] = entry.conversation_id
        if before is None or before == entry.conversation_id:
            return set()
        run = self.evidence(before).runs.get(entry.process)
        if run is not None:
            left = Sighting(
                entry.process,
                Liveness.LEFT,
                max(entry.updated_at or at, run.sighting.at),
                EvidenceSource.REGISTRY,
            )
            self._evidence[before] = add_sighting(self.evidence(before), left)
        return {before}

    def _note(self, reading: Reading) -> None:
        entry = reading.entry
        if entry is None or reading.liveness is None:
            return
        if reading.liveness is Liveness.GONE:
            self.saw_end(entry.process, reading.at)
        conversation = entry.conversation_id
        evidence = self.evidence(conversation)
        at = reading.at
        if reading.liveness is Liveness.GONE and entry.process not in evidence.runs:
            at = _end_of(entry) or at  # it ended before we looked for the first time
        evidence = add_sighting(
            evidence,
            Sighting(entry.process, reading.liveness, at),
            started_at=entry.started_at,
        )
        known = evidence.runs[entry.process].activity
        activity = _activity(entry, reading.at)
        if activity is not None and known is not None:
            activity = _overrule_hook(activity, known, reading.at)
        if activity is not None and not _is_same_untimed(entry, activity, known):
            evidence = add_activity(evidence, activity)
        self._evidence[conversation] = evidence

    def _put(self, path: str, claim: Claim) -> None:
        self._drop(path)
        self.claims[path] = claim
        self._by_conversation.setdefault(claim.entry.conversation_id, set()).add(path)

    def _drop(self, path: str) -> None:
        claim = self.claims.pop(path, None)
        if claim is None:
            return
        conversation = claim.entry.conversation_id
        self._by_conversation[conversation].discard(path)
        if not self._by_conversation[conversation]:
            del self._by_conversation[conversation]


def find_told_status(
    live: LiveProcesses, conversation: ConversationId
) -> ToldStatus | None:
    """Return what the conversation's one live process says; None if there are more."""
    runs = live.evidence(conversation).live()
    claim = live.find_claim(conversation)
    if len(runs) != 1 or claim is None or claim.entry.process != runs[0].sighting.run:
        return None
    told = _activity(claim.entry, claim.at)
    return None if told is None else ToldStatus(told.run, told.state, told.at)


_NEVER: Final = datetime.fromtimestamp(0, UTC)


def _is_older(entry: RegistryEntry, known: RegistryEntry) -> bool:
    """Tell whether a reading came late: the same run has told newer things."""
    if entry.process != known.process:
        return False
    if entry.updated_at is None or known.updated_at is None:
        return False
    return entry.updated_at < known.updated_at


def _activity(entry: RegistryEntry, at: datetime) -> Activity | None:
    state = _STATE_OF_STATUS.get(entry.status or "")
    if state is None:
        return None
    return Activity(
        entry.process,
        state,
        entry.status_at or entry.updated_at or at,
        EvidenceSource.REGISTRY,
        entry.waiting_for,
    )


def _is_same_untimed(
    entry: RegistryEntry, activity: Activity, known: Activity | None
) -> bool:
    """Tell whether an entry without times repeats what is known: no news."""
    if entry.status_at is not None or entry.updated_at is not None or known is None:
        return False
    return (activity.state, activity.source, activity.label) == (
        known.state,
        known.source,
        known.label,
    )


def _overrule_hook(activity: Activity, known: Activity, at: datetime) -> Activity:
    """Return the registry's word, newer than the hook's that it has not confirmed."""
    if known.source is not EvidenceSource.HOOK or activity.state is known.state:
        return activity
    if activity.at > known.at or at - known.at < HOOK_LEAD:
        return activity
    return replace(activity, at=known.at)


def _end_of(entry: RegistryEntry) -> datetime | None:
    """Return the last time a process that is gone is known to have lived."""
    times = (entry.status_at, entry.updated_at, entry.started_at)
    return max((time for time in times if time is not None), default=None)
