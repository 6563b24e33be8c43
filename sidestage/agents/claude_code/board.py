"""The list of Claude Code sessions, kept current. For one event loop."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sidestage.agents.claude_code.bystanders import names_conversation, stands_in
from sidestage.agents.claude_code.joining import Joiner
from sidestage.agents.claude_code.library import TranscriptLibrary
from sidestage.agents.claude_code.live import (
    LiveProcesses,
    Reading,
    RegistryFolder,
    find_told_status,
)
from sidestage.agents.claude_code.looking import (
    Look,
    list_agents,
    look_around,
    look_at,
)
from sidestage.agents.claude_code.usage_query import collect_usage
from sidestage.agents.exits import ProcessExits
from sidestage.agents.folders import look_at_folders
from sidestage.agents.processes import ProcessTable
from sidestage.feeds import Feed
from sidestage.ids import ConversationId, HostId, ProjectId, SessionId, TerminalId
from sidestage.projects.model import Projects
from sidestage.sessions.board import UsageBucket, UsagePoint
from sidestage.sessions.evidence import Activity
from sidestage.sessions.index import TranscriptStore
from sidestage.sessions.lineage import ToldStatus
from sidestage.sessions.model import Process, Session, SourceHealth


@dataclass(frozen=True, slots=True)
class TerminalSighting:
    """Which conversation a terminal's child is on now, and who else is on it."""

    terminal_id: TerminalId
    conversation_id: ConversationId = field(repr=False)
    session_id: SessionId
    process: Process
    foreign: tuple[Process, ...]
    """Live processes on the conversation that are not this terminal's."""


class SessionBoard:
    """The current list (the port `Sessions`). Made and fed by `open_discovery`."""

    def __init__(
        self,
        *,
        config_dirs: tuple[Path, ...],
        machine_secret: bytes,
        host_id: HostId,
        projects: Projects,
        store: TranscriptStore,
        table: ProcessTable,
    ) -> None:
        self.feed: Feed[Session] = Feed(lambda row: row.id)
        self.terminals: Feed[TerminalSighting] = Feed(lambda it: it.terminal_id)
        self.library = TranscriptLibrary(store, self._recompute)
        self.live = LiveProcesses(self._began_in)
        self.is_watching = False
        self.watch_notes: tuple[str, ...] = ()
        self._exits = ProcessExits(table, self._on_exit)
        self._table = table
        self._config_dirs = config_dirs
        self._private: dict[TerminalId, RegistryFolder] = {}
        self._conversations: dict[SessionId, ConversationId] = {}
        self._folders_wanted = asyncio.Event()
        self._is_open = False
        self._joiner = Joiner(
            self.library,
            self.live,
            projects,
            host_id,
            machine_secret,
            datetime.now(UTC),
        )

    # The port.

    def find(self, session_id: SessionId) -> Session | None:
        """Return the row, or None if it is not in the current list."""
        return self.feed.get(session_id)

    def health(self) -> SourceHealth:
        """Tell how well the source sees."""
        folds = [it.fold for it in self.library.transcripts.values()]
        counters = {
            "transcripts": len(folds),
            "transcripts_left_out": self.library.left_out,
            "transcripts_to_index": self.library.waiting_count,
            "bad_lines": sum(fold.bad_lines for fold in folds),
            "overlong_lines": sum(fold.overlong_lines for fold in folds),
            "unknown_records": sum(fold.unknown_lines for fold in folds),
            "refused_registry_entries": self.live.refused_claims,
        }
        return SourceHealth(self.is_watching, self.watch_notes, counters)

    async def refresh(self, session_id: SessionId) -> Session | None:
        """Look at the session's process and registry anew, now, and return its row."""
        await self.read_registry()
        conversation = self._conversations.get(session_id)
        row = self.feed.get(session_id)
        if conversation is None or row is None:
            return row
        transcript = self.library.find(conversation)
        if transcript is not None:
            await self.library.changed([(transcript.stamp.path, transcript.config_dir)])
            await self._look_at_folders({transcript.fold.directory or ""})
        self._recompute({conversation})
        return self.feed.get(session_id)

    async def usage(
        self,
        *,
        start: datetime,
        end: datetime,
        bucket: UsageBucket,
        project_id: ProjectId | None,
    ) -> tuple[UsagePoint, ...]:
        """Return tokens over time; empty buckets are left out."""
        found = (
            self.library.find(row.origin.conversation_id)
            for row in self.feed.values()
            if project_id is None or row.project_id == project_id
        )
        hours = [transcript.fold.hours for transcript in found if transcript]
        # Folds are never changed once they are in the library: a thread may read them.
        return await asyncio.to_thread(
            collect_usage, hours, start=start, end=end, bucket=bucket
        )

    # What starting and watching terminals needs.

    def session_id(self, conversation_id: ConversationId) -> SessionId:
        """Return the row id of a conversation, listed or not."""
        return self._joiner.session_id(conversation_id)

    async def starting_agent(
        self, directory: str, conversation_id: ConversationId
    ) -> bool:
        """Tell whether an agent without a registry entry may be on the conversation.

        It is one of this user's processes, and stands in *directory* or names the id in
        its arguments. One in a terminal of ours counts only if it names the id: else
        the terminal itself says which conversation it is on. Looks at processes now.
        """
        agents = await asyncio.to_thread(list_agents, self._table)
        await self.read_registry()
        if self.live.evidence(conversation_id).live():
            return True  # it registered just now
        candidates = self._joiner.list_unregistered(agents or ())
        own = frozenset(self._private)
        return await asyncio.to_thread(
            lambda: any(
                names_conversation(agent, conversation_id)
                or (agent.terminal_id not in own and stands_in(agent, directory))
                for agent in candidates
            )
        )

    async def watch_terminals(self) -> AsyncIterator[TerminalSighting]:
        """Yield what each terminal's child is on: what is known first, then changes."""
        seq = self.terminals.seq
        for sighting in self.terminals.values():
            yield sighting
        while True:
            await self.terminals.wait_beyond(seq)
            changes = self.terminals.changes_after(seq) or ()
            seq = self.terminals.seq
            latest = {change.id: change.after for change in changes}
            for change in latest.values():
                if change is not None:
                    yield change

    def add_terminal(
        self,
        terminal_id: TerminalId,
        folder: RegistryFolder,
        session_id: SessionId | None = None,
    ) -> None:
        """Read a terminal's private registry folder too.

        *session_id* is what its agent was started on; a dialog may hold the agent for
        long before it registers itself.
        """
        self._private[terminal_id] = folder
        conversation = self._conversations.get(session_id) if session_id else None
        self._recompute(self._joiner.add_terminal(terminal_id, conversation))

    def remove_terminal(self, terminal_id: TerminalId) -> None:
        """Forget a terminal's private registry folder and what it said."""
        folder = self._private.pop(terminal_id, None)
        self.terminals.remove(terminal_id)
        self._recompute(self._joiner.remove_terminal(terminal_id))
        now = datetime.now(UTC)
        self._apply(
            Look(
                tuple(
                    Reading(claim.folder, path, None, None, now)
                    for path, claim in self.live.claims.items()
                    if claim.folder == folder
                )
            )
        )

    def observe(self, conversation_id: ConversationId, activity: Activity) -> None:
        """Take in what a hook or a terminal says about a run."""
        if self.live.observe(conversation_id, activity):
            self._recompute({conversation_id})

    def set_handed_off(self, session_id: SessionId, at: datetime | None) -> None:
        """Mark the session as handed off at *at*, or (None) not any more."""
        if at is None:
            self._joiner.handed_off.pop(session_id, None)
        else:
            self._joiner.handed_off[session_id] = at
        conversation = self._conversations.get(session_id)
        if conversation is not None:
            self._recompute({conversation})

    def set_continues(
        self, conversation_id: ConversationId, parent_id: SessionId
    ) -> None:
        """Note that the conversation continues a session, listed yet or not."""
        self._joiner.continues[conversation_id] = parent_id
        self._recompute({conversation_id})

    async def told_status(self, session_id: SessionId) -> ToldStatus | None:
        """Read the registry now; None if no single live process says what it does."""
        await self.read_registry()
        conversation = self._conversations.get(session_id)
        if conversation is None:
            return None
        return find_told_status(self.live, conversation)

    # What feeds it.

    def registry_folders(self) -> tuple[RegistryFolder, ...]:
        """Return every folder of registry files."""
        shared = (RegistryFolder(home / "sessions", home) for home in self._config_dirs)
        return (*shared, *self._private.values())

    async def open(self) -> None:
        """Fill the list for the first time."""
        await self.library.open(self._config_dirs)
        await self.read_registry()
        await self.look_for_agents()
        await self._look_at_folders(self._joiner.list_folders())
        self._is_open = True
        self.recompute_all()

    def close(self) -> None:
        """Stop watching processes."""
        self._exits.close()

    async def read_registry(self, paths: Iterable[str] | None = None) -> None:
        """Read registry files anew: those at *paths*, or all, and check processes."""
        folders = self.registry_folders()
        if paths is not None:
            wanted = tuple(paths)
            look = await asyncio.to_thread(look_at, folders, wanted, self._table)
        else:
            known = frozenset(self.live.claims)
            runs = tuple(self.live.live_runs())
            look = await asyncio.to_thread(
                look_around, folders, known, runs, self._table
            )
        self._apply(look)

    async def read_transcripts(self, paths: Iterable[tuple[str, Path]]) -> None:
        """Take in what was added to transcripts (each with its config dir)."""
        await self.library.changed(paths)

    async def look_for_agents(self) -> None:
        """Look for agent processes that no registry names."""
        agents = await asyncio.to_thread(list_agents, self._table)
        if agents is None:
            return  # a failed probe changes nothing
        self._recompute(self._joiner.take_agents(agents))

    async def rescan(self) -> None:
        """Look at every file again, for what a missed change would have told."""
        await self.library.rescan(self._config_dirs)
        await self.read_registry()

    async def resolve_folders(self) -> None:
        """Look at folders that new rows name, until cancelled."""
        while True:
            await self._folders_wanted.wait()
            self._folders_wanted.clear()
            unknown = set(self._joiner.unknown_folders)
            self._joiner.unknown_folders.clear()
            await self._look_at_folders(unknown)
            self._recompute_in(unknown)

    async def recheck_folders(self) -> None:
        """Look again whether the folders of all rows exist."""
        before = dict(self._joiner.folders)
        await self._look_at_folders(before)
        after = self._joiner.folders
        self._recompute_in({path for path in before if after[path] != before[path]})

    def recompute_all(self) -> None:
        """Compute every row anew, as after a change of the projects."""
        self._recompute(self.library.conversations() | self.live.conversations())

    # Joining.

    def _began_in(self, conversation: ConversationId) -> str | None:
        transcript = self.library.find(conversation)
        return None if transcript is None else transcript.fold.directory

    def _apply(self, look: Look) -> None:
        changed: set[ConversationId] = set()
        for reading in look.readings:
            changed |= self.live.apply(reading)
        for run in look.ended:
            changed |= self.live.saw_end(run, datetime.now(UTC))
        self._exits.watch_only(self.live.live_runs())
        self._recompute(changed)

    def _on_exit(self, process: Process) -> None:
        self._recompute(self.live.saw_end(process, datetime.now(UTC)))

    async def _look_at_folders(self, paths: Iterable[str]) -> None:
        known = self._joiner.folders
        seen = await asyncio.to_thread(look_at_folders, tuple(paths), dict(known))
        known.update(seen)

    def _recompute_in(self, folders: set[str]) -> None:
        if folders:
            self._recompute(
                transcript.conversation_id
                for transcript in self.library.transcripts.values()
                if transcript.fold.directory in folders
            )
            self._recompute(self.live.conversations())

    def _recompute(self, conversations: Iterable[ConversationId]) -> None:
        if not self._is_open:
            return  # `open` computes every row once all is known
        for conversation in self._joiner.list_changed_by(conversations):
            id_ = self._joiner.session_id(conversation)
            row = self._joiner.find_row(conversation)
            if row is None:
                self.feed.remove(id_)
                self._conversations.pop(id_, None)
            else:
                self.feed.upsert(row)
                self._conversations[id_] = conversation
                self._note_terminal(row)
        self._drop_forgotten()
        if self._joiner.unknown_folders:
            self._folders_wanted.set()

    def _drop_forgotten(self) -> None:
        """Take out the rows of sessions that left nothing and are over the limit."""
        while self._joiner.forgotten:
            id_ = self._joiner.forgotten.pop()
            self.feed.remove(id_)
            self._conversations.pop(id_, None)

    def _note_terminal(self, row: Session) -> None:
        terminal = self._joiner.terminal_of(row.origin.conversation_id)
        if terminal is None:
            return
        terminal_id, own = terminal
        self._recompute(self._joiner.found_agent(terminal_id))
        self.terminals.upsert(
            TerminalSighting(
                terminal_id,
                row.origin.conversation_id,
                row.id,
                own,
                tuple(run for run in row.origin.processes if run != own),
            )
        )
