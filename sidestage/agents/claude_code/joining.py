"""Rows: what transcripts, registry and processes say of one conversation, joined."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.bystanders import (
    REGISTRY_PATIENCE_SECONDS,
    names_conversation,
    unregistered,
)
from sidestage.agents.claude_code.folding import Fold
from sidestage.agents.claude_code.library import Transcript, TranscriptLibrary
from sidestage.agents.claude_code.live import Claim, LiveProcesses
from sidestage.agents.claude_code.rows import Known, Place, build_row, directory_of
from sidestage.agents.folders import Folder
from sidestage.agents.processes import AgentProcess
from sidestage.ids import (
    ConversationId,
    HostId,
    SessionId,
    TerminalId,
    session_id,
)
from sidestage.projects.model import Projects
from sidestage.sessions.evidence import Liveness, Sighting, judge
from sidestage.sessions.model import (
    EvidenceSource,
    Process,
    Session,
    StateEvidence,
)

AGENT_NAME: Final = "claude-code"
"""How row ids name the CLI; changing it would change every id."""
UNWRITTEN_LIMIT: Final = 200
"""Sessions without a transcript that stay listed after they ended, until a restart."""


@dataclass(slots=True)
class Joiner:
    """Builds rows. For one event loop; does no I/O."""

    library: TranscriptLibrary
    live: LiveProcesses
    projects: Projects
    host_id: HostId
    machine_secret: bytes = field(repr=False)
    looked_at: datetime
    folders: dict[str, Folder] = field(default_factory=dict)
    unknown_folders: set[str] = field(default_factory=set)
    """Folders that rows name and nobody has looked at yet."""
    forgotten: list[SessionId] = field(default_factory=list)
    """Rows that are to be taken out."""
    handed_off: dict[SessionId, datetime] = field(default_factory=dict)
    continues: dict[ConversationId, SessionId] = field(default_factory=dict)
    """The sessions that conversations of ours continue: no transcript names them."""
    children: dict[ConversationId, set[ConversationId]] = field(default_factory=dict)
    """Conversations by the one they were forked from."""
    terminals: set[TerminalId] = field(default_factory=set)
    """The terminals of ours that run."""
    _expected: dict[TerminalId, tuple[ConversationId, StateEvidence]] = field(
        default_factory=dict
    )
    """What a terminal was started on, until its agent registers itself."""
    _said: dict[Process, TerminalId] = field(default_factory=dict)
    """Which terminal a process says it runs in, by its environment."""
    _last_claims: OrderedDict[ConversationId, Claim] = field(
        default_factory=OrderedDict
    )
    _bystanders: dict[Process, tuple[AgentProcess, Sighting]] = field(
        default_factory=dict
    )
    _ids: dict[ConversationId, SessionId] = field(default_factory=dict)

    def session_id(self, conversation: ConversationId) -> SessionId:
        """Return the row id of a conversation."""
        known = self._ids.get(conversation)
        if known is None:
            known = session_id(
                AGENT_NAME, conversation, machine_secret=self.machine_secret
            )
            self._ids[conversation] = known
        return known

    def find_row(self, conversation: ConversationId) -> Session | None:
        """Return the conversation's row, or None if it is no session (any more)."""
        transcript = self.library.find(conversation)
        claim = self._claim(conversation)
        if transcript is None and claim is None:
            return None
        fold = transcript.fold if transcript else Fold()
        if fold.is_sidechain:
            return None
        known = self._known(conversation, transcript, claim)
        return build_row(known, self._place(known))

    def list_changed_by(
        self, conversations: Iterable[ConversationId]
    ) -> set[ConversationId]:
        """Return the conversations and their forks, whose rows name them."""
        changed = set(conversations)
        for conversation in tuple(changed):
            changed |= self.children.get(conversation, set())
        return changed

    def list_folders(self) -> set[str]:
        """Return the folders that transcripts and registry name."""
        folds = (transcript.fold for transcript in self.library.transcripts.values())
        entries = (claim.entry for claim in self.live.claims.values())
        named = {fold.directory for fold in folds} | {it.directory for it in entries}
        return {directory for directory in named if directory is not None}

    def take_agents(self, agents: Iterable[AgentProcess]) -> set[ConversationId]:
        """Take in which agents run; return the conversations this may change."""
        agents = tuple(agents)
        moved = self._take_said(agents)
        now = datetime.now(UTC)
        before = self._bystanders
        self._bystanders = {
            agent.process: (agent, _first_sighting(agent, before, now))
            for agent in self.list_unregistered(agents)
            if agent.age_seconds >= REGISTRY_PATIENCE_SECONDS
            # Ours say themselves what they are on; another server's do not, here.
            and agent.terminal_id not in self.terminals
        }
        places = {_whereabouts(agent): agent for agent, _ in before.values()}
        for agent, _ in self._bystanders.values():
            # Who stands where it stood changes nothing.
            if places.pop(_whereabouts(agent), None) is None:
                places[_whereabouts(agent)] = agent
        return moved | self._list_near(places.values())

    def _take_said(self, agents: Iterable[AgentProcess]) -> set[ConversationId]:
        before = self._said
        self._said = {
            agent.process: TerminalId(agent.terminal_id)
            for agent in agents
            if agent.terminal_id is not None
        }
        moved = before.keys() ^ self._said.keys()
        live = self.live.live_runs()
        return {live[process] for process in moved if process in live}

    def add_terminal(
        self, terminal_id: TerminalId, conversation: ConversationId | None
    ) -> set[ConversationId]:
        """Note a terminal of ours, started on *conversation*; return what changes."""
        self.terminals.add(terminal_id)
        changed = self._inside(terminal_id)
        if conversation is not None:
            now = datetime.now(UTC)
            evidence = StateEvidence(EvidenceSource.TERMINAL, now)
            self._expected[terminal_id] = (conversation, evidence)
            changed.add(conversation)
        return changed

    def remove_terminal(self, terminal_id: TerminalId) -> set[ConversationId]:
        """Note that a terminal no longer runs; return what this changes."""
        self.terminals.discard(terminal_id)
        return self._inside(terminal_id) | self.found_agent(terminal_id)

    def found_agent(self, terminal_id: TerminalId) -> set[ConversationId]:
        """Note that a terminal's agent speaks for itself; return what this changes."""
        expected = self._expected.pop(terminal_id, None)
        return set() if expected is None else {expected[0]}

    def _inside(self, terminal_id: TerminalId) -> set[ConversationId]:
        live = self.live.live_runs()
        inside = (run for run, said in self._said.items() if said == terminal_id)
        return {live[run] for run in inside if run in live}

    def list_unregistered(
        self, agents: Iterable[AgentProcess]
    ) -> tuple[AgentProcess, ...]:
        """Return the agents of which no registry entry tells."""
        registered = {claim.entry.process for claim in self.live.claims.values()}
        return unregistered(agents, registered | set(self.live.live_runs()))

    def terminal_of(
        self, conversation: ConversationId
    ) -> tuple[TerminalId, Process] | None:
        """Return the terminal of ours that is on the conversation, and its process."""
        live = {run.sighting.run for run in self.live.evidence(conversation).live()}
        for path in self.live.paths_of(conversation):
            claim = self.live.claims[path]
            terminal_id = self._terminal_behind(claim)
            if terminal_id is not None and claim.entry.process in live:
                return terminal_id, claim.entry.process
        return None

    def _expected_in(self, conversation: ConversationId) -> TerminalId | None:
        for terminal_id, (expected, _) in self._expected.items():
            if expected == conversation:
                return terminal_id
        return None

    def _terminal_behind(self, claim: Claim) -> TerminalId | None:
        if claim.folder.terminal_id is not None:
            return claim.folder.terminal_id
        # Without a sandbox an agent registers where all do; its environment tells.
        said = self._said.get(claim.entry.process)
        return said if said in self.terminals else None

    def _claim(self, conversation: ConversationId) -> Claim | None:
        """Return the newest claim on the conversation, the last one if it is gone."""
        claim = self.live.find_claim(conversation)
        if claim is None:
            return self._last_claims.get(conversation)
        self._last_claims[conversation] = claim
        self._last_claims.move_to_end(conversation)
        while len(self._last_claims) > UNWRITTEN_LIMIT:
            oldest, _ = self._last_claims.popitem(last=False)
            self._forget(oldest)
        return claim

    def _forget(self, conversation: ConversationId) -> None:
        """Forget a conversation of which there is neither transcript nor process."""
        if self.library.find(conversation) is None and self.live.forget(conversation):
            self.forgotten.append(self.session_id(conversation))
            del self._ids[conversation]

    def _known(
        self,
        conversation: ConversationId,
        transcript: Transcript | None,
        claim: Claim | None,
    ) -> Known:
        entry = claim.entry if claim else None
        fold = transcript.fold if transcript else Fold()
        evidence = self.live.evidence(conversation)
        path, is_placed = directory_of(
            fold,
            _folder_name(transcript),
            entry.directory if entry else None,
        )
        directory = self._folder(path)
        home = transcript.config_dir if transcript else None
        return Known(
            conversation_id=conversation,
            config_dir=home or (claim.folder.config_dir if claim else Path("/")),
            transcript=Path(transcript.stamp.path) if transcript else None,
            fold=fold,
            modified_at=transcript.modified_at if transcript else None,
            entry=entry,
            directory=directory.real_path if directory else None,
            directory_exists=directory.exists if directory else False,
            is_placed=is_placed,
            processes=tuple(run.sighting.run for run in evidence.live()),
            headless=self._headless(conversation),
            verdict=judge(
                evidence,
                bystander=self._find_bystander(conversation, directory),
                looked_at=self.looked_at,
            ),
        )

    def _headless(self, conversation: ConversationId) -> frozenset[Process]:
        claims = (self.live.claims[path] for path in self.live.paths_of(conversation))
        entries = (claim.entry for claim in claims)
        return frozenset(entry.process for entry in entries if entry.is_headless)

    def _place(self, known: Known) -> Place:
        id_ = self.session_id(known.conversation_id)
        terminal = self.terminal_of(known.conversation_id)
        project = None
        if known.directory and known.is_placed:
            project = self.projects.find_for(known.directory)
        return Place(
            session_id=id_,
            host_id=self.host_id,
            project_id=project.id if project else None,
            terminal_id=terminal[0]
            if terminal
            else self._expected_in(known.conversation_id),
            continued_from_id=self._continued_from(known),
            handed_off_at=self.handed_off.get(id_),
        )

    def _continued_from(self, known: Known) -> SessionId | None:
        parent = known.fold.parent_conversation
        if known.conversation_id in self.continues:
            return self.continues[known.conversation_id]
        if parent is None:
            return None
        parent_id = ConversationId(parent)
        self.children.setdefault(parent_id, set()).add(known.conversation_id)
        if self.library.find(parent_id) is None:
            return None
        return self.session_id(parent_id)

    def _folder(self, path: str | None) -> Folder | None:
        if path is None:
            return None
        known = self.folders.get(path)
        if known is None:
            self.unknown_folders.add(path)
            return Folder(path, exists=None)
        return known

    def _find_bystander(
        self, conversation: ConversationId, directory: Folder | None
    ) -> StateEvidence | None:
        terminal_id = self._expected_in(conversation)
        if terminal_id is not None:
            return self._expected[terminal_id][1]
        for agent, sighting in self._bystanders.values():
            stands_there = (
                directory is not None and agent.directory == directory.real_path
            )
            if stands_there or names_conversation(agent, conversation):
                return StateEvidence(sighting.source, sighting.at)
        return None

    def _list_near(self, agents: Iterable[AgentProcess]) -> set[ConversationId]:
        """Return the conversations that one of *agents* may be on."""
        agents = tuple(agents)
        if not agents:
            return set()
        places = {agent.directory for agent in agents}
        return {
            conversation
            for conversation in self.library.conversations() | set(self._last_claims)
            if self._real_path(conversation) in places
            or any(names_conversation(agent, conversation) for agent in agents)
        }

    def _real_path(self, conversation: ConversationId) -> str | None:
        transcript = self.library.find(conversation)
        claim = self._last_claims.get(conversation)
        fold = transcript.fold if transcript else Fold()
        path, _ = directory_of(
            fold, _folder_name(transcript), claim.entry.directory if claim else None
        )
        folder = self._folder(path)
        return folder.real_path if folder else None


def _folder_name(transcript: Transcript | None) -> str | None:
    return Path(transcript.stamp.path).parent.name if transcript else None


def _first_sighting(
    agent: AgentProcess,
    known: Mapping[Process, tuple[AgentProcess, Sighting]],
    now: datetime,
) -> Sighting:
    if agent.process in known:
        return known[agent.process][1]
    return Sighting(agent.process, Liveness.UNKNOWN, now)


def _whereabouts(agent: AgentProcess) -> tuple[object, ...]:
    """Return what decides which conversations a bystander may be on."""
    return agent.process, agent.directory, agent.arguments
