"""The one door through which terminals start, and the list of them.

`TerminalDesk` keeps the rows and joins them with what the host tells. How a start goes
stands in `starts.py`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from sidestage.audit import AuditRecord
from sidestage.devices.model import Principal, Scope
from sidestage.errors import (
    HostUnavailable,
    PermissionDenied,
    SidestageError,
    TerminalNotFound,
    TerminalNotRunning,
)
from sidestage.feeds import Feed
from sidestage.ids import ProjectId, TemplateId, TerminalId
from sidestage.sessions.model import Session
from sidestage.terminals import plans, reconcile, resume_rules
from sidestage.terminals.desk import (
    Admission,
    ResumeAvailability,
    Started,
    Template,
    Ticket,
    TicketMode,
)
from sidestage.terminals.model import (
    HostEvent,
    HostEventKind,
    HostTerminal,
    Terminal,
    TerminalState,
)
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.plans import checked_name, checked_size
from sidestage.terminals.screens import ScreenMatches, StyledLine
from sidestage.terminals.start_keys import StartKeys
from sidestage.terminals.starts import Starts
from sidestage.terminals.store import StoredTerminal
from sidestage.terminals.tickets import TicketBox

KEYS_FORGOTTEN_EVERY: Final = timedelta(hours=1)
ASK_AGAIN_SECONDS: Final = 5.0
"""Between two questions to the host about starts that it did not answer in time."""
FIRST_LIST_PATIENCE_SECONDS: Final = 10.0
"""How long a start waits for the host's first list before it gives up."""

_RUNNING: Final = TerminalState.RUNNING
Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


class TerminalDesk:
    """`sidestage.terminals.desk.Terminals`: `load` it, `run` it, then use it."""

    def __init__(self, parts: DeskParts) -> None:
        self.feed: Feed[Terminal] = Feed(lambda terminal: terminal.id)
        self._parts = parts
        self._tickets = TicketBox(clock=parts.clock)
        self._keys = StartKeys(clock=parts.clock)
        self._starts = Starts(parts, self.feed, self._keys, self._change)
        self._unconfirmed: dict[TerminalId, StoredTerminal] = {}
        self._reconciled = asyncio.Event()
        self._chores: set[asyncio.Task[None]] = set()

    async def load(self) -> None:
        """Read rows and keys from the store. Call once, before anything else."""
        await self._parts.templates.look()
        stored, keys = await self._parts.store.load()
        self._keys.restore(keys)
        for each in stored:
            if each.starting:
                self._unconfirmed[each.terminal.id] = each
            else:
                self.feed.upsert(each.terminal)
                self._link(each.terminal)

    async def run(self) -> None:
        """Follow the host and the sessions until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_host())
            tasks.create_task(self._follow_sessions())
            tasks.create_task(self._ask_about_starts())
            tasks.create_task(self._forget_keys())

    def list_templates(self) -> tuple[Template, ...]:
        """Return the templates of this server."""
        return self._parts.templates.templates

    def resume_availability(self, session: Session) -> ResumeAvailability | None:
        """Apply checks 3 to 7 to an ended session; None if it is not ended."""
        return resume_rules.availability(
            session,
            plans.project_of(session, self._parts.projects),
            here=self._parts.host_id,
        )

    async def start(
        self,
        *,
        project_id: ProjectId,
        template: TemplateId,
        name: str | None,
        cols: int,
        rows: int,
        idempotency_key: str | None,
        actor: Principal,
    ) -> Started:
        """Start a program in a project's folder (see `Terminals.start`)."""
        await self._host_known()
        terminal = await self._starts.start(
            project_id=project_id,
            template_id=template,
            name=None if name is None else checked_name(name),
            size=checked_size(cols, rows),
            idempotency_key=idempotency_key,
            actor=actor,
        )
        return self._started(terminal, actor)

    async def resume(
        self,
        *,
        session_id: str,
        cols: int,
        rows: int,
        idempotency_key: str | None,
        actor: Principal,
    ) -> Started:
        """Resume an ended session (see `Terminals.resume`)."""
        plans.check_session_id(session_id)
        size = checked_size(cols, rows)
        await self._host_known()
        terminal = await self._starts.resume(
            session_id, size=size, idempotency_key=idempotency_key, actor=actor
        )
        return self._started(terminal, actor)

    async def rename(
        self, terminal_id: TerminalId, *, name: str, actor: Principal
    ) -> Terminal:
        """Give the terminal a name; raises `TerminalNotFound`, `InvalidInput`."""
        terminal = replace(self._get(terminal_id), name=checked_name(name))
        record = plans.change_record("rename", terminal, actor)
        await self._parts.store.save(terminal, record)
        # The row may have changed while it was written: only the name is ours.
        now = replace(self._get(terminal_id), name=terminal.name)
        self.feed.upsert(now)
        return now

    async def resize(
        self, terminal_id: TerminalId, *, cols: int, rows: int, actor: Principal
    ) -> Terminal:
        """Set the size; raises `TerminalNotFound`, `TerminalNotRunning`."""
        del actor
        size = checked_size(cols, rows)
        terminal = self._get(terminal_id)
        if terminal.state is not _RUNNING:
            raise TerminalNotRunning("This terminal has ended.")
        await self._parts.host.resize(terminal_id, cols=size.cols, rows=size.rows)
        return replace(self._get(terminal_id), cols=size.cols, rows=size.rows)

    async def close(self, terminal_id: TerminalId, *, actor: Principal) -> Terminal:
        """End every process of the terminal and forget it (see `Terminals.close`)."""
        self._get(terminal_id)
        # Not found: LOST, or ended before this host began; nothing is left to end.
        with suppress(TerminalNotFound):
            await self._parts.host.remove(terminal_id)
        terminal = self.feed.get(terminal_id)
        if terminal is None:
            raise TerminalNotFound("Another client closed this terminal just now.")
        await self._parts.launcher.finish(terminal_id)
        record = plans.change_record("close", terminal, actor)
        await self._parts.store.drop(terminal_id, keys=False, record=record)
        self._parts.links.remove_terminal(terminal_id)
        self.feed.remove(terminal_id)
        return terminal

    def issue_ticket(
        self, terminal_id: TerminalId, *, mode: TicketMode, actor: Principal
    ) -> Ticket:
        """Make a ticket; raises `TerminalNotFound`, `PermissionDenied`."""
        needed = Scope.TERMINAL if mode is TicketMode.CONTROL else Scope.READ
        if not actor.may(needed):
            raise PermissionDenied(f"A {mode} ticket needs the scope {needed}.")
        self._get(terminal_id)
        return self._tickets.issue(terminal_id, mode, actor)

    def spend_ticket(self, terminal_id: TerminalId, secret: str) -> Admission:
        """Use a ticket up; raises `TicketRefused`."""
        return self._tickets.spend(terminal_id, secret)

    def drop_token(self, token_id: str) -> None:
        """Void the tickets of a token that was revoked."""
        self._tickets.drop_token(token_id)

    async def screen_text(self, terminal_id: TerminalId, *, lines: int) -> str | None:
        """Return the last *lines* of the screen (see `Terminals.screen_text`)."""
        host = self._parts.host
        return await self._seen(terminal_id, partial(host.screen_text, lines=lines))

    async def screen_lines(
        self, terminal_id: TerminalId, *, lines: int
    ) -> tuple[StyledLine, ...] | None:
        """Return the last rows as runs (see `Terminals.screen_lines`)."""
        host = self._parts.host
        return await self._seen(terminal_id, partial(host.screen_lines, lines=lines))

    async def search_screen(
        self, terminal_id: TerminalId, *, text: str, limit: int
    ) -> ScreenMatches | None:
        """Search screen and history (see `Terminals.search_screen`)."""
        search = partial(self._parts.host.search, text=text, limit=limit)
        return await self._seen(terminal_id, search)

    async def _seen(
        self, terminal_id: TerminalId, ask: Callable[[TerminalId], Awaitable[Answer]]
    ) -> Answer | None:
        self._get(terminal_id)
        with suppress(TerminalNotFound):  # LOST, without a record
            return await ask(terminal_id)
        return None

    def _started(self, terminal: Terminal, actor: Principal) -> Started:
        ticket = self._tickets.issue_for_start(terminal.id, actor)
        return Started(self.feed.get(terminal.id) or terminal, ticket)

    def _get(self, terminal_id: TerminalId) -> Terminal:
        terminal = self.feed.get(terminal_id)
        if terminal is None:
            raise TerminalNotFound("There is no terminal with that id.")
        return terminal

    async def _host_known(self) -> None:
        # Before the host's first list we cannot tell what it holds.
        try:
            async with asyncio.timeout(FIRST_LIST_PATIENCE_SECONDS):
                await self._reconciled.wait()
        except TimeoutError:
            raise HostUnavailable("The terminal host does not answer.") from None

    async def _follow_host(self) -> None:
        async for event in self._parts.host.watch():
            try:
                await self._apply(event)
            except SidestageError:
                _log.exception("The terminal host's news could not be applied.")

    async def _apply(self, event: HostEvent) -> None:
        if event.kind is HostEventKind.CONNECTED:
            await self._reconcile(event.terminals)
        elif event.kind is HostEventKind.CHANGED:
            for told in event.terminals:
                await self._heard(told)

    async def _reconcile(self, listed: tuple[HostTerminal, ...]) -> None:
        for told in listed:
            await self._heard(told)
        ids = {told.terminal_id for told in listed}
        now = self._parts.clock()
        for terminal_id in [t.id for t in self.feed.values() if t.id not in ids]:
            terminal = self.feed.get(terminal_id)
            if terminal is not None and terminal.state is _RUNNING:
                await self._change(reconcile.lost(terminal, at=now))
        for terminal_id in tuple(self._unconfirmed):
            del self._unconfirmed[terminal_id]
            await self._starts.came_to_nothing(terminal_id)
        for terminal_id in self._starts.unanswered() - ids:
            await self._starts.came_to_nothing(terminal_id)
        self._reconciled.set()
        self._chore(self._sweep())

    async def _sweep(self) -> None:
        """Take back files of terminals that a server before us began or ended."""
        prepared = await self._parts.launcher.list_prepared()
        running = {t.id for t in self.feed.values() if t.state is _RUNNING}
        for terminal_id in prepared - running - self._starts.under_way():
            await self._parts.launcher.finish(terminal_id)

    async def _ask_about_starts(self) -> None:
        # Without a break of the connection no list comes by itself, and a refusal that
        # came too late is told by nothing but the list.
        while True:
            await asyncio.sleep(ASK_AGAIN_SECONDS)
            asked = self._starts.unanswered()
            if asked:
                with suppress(HostUnavailable):
                    await self._settle(asked, await self._parts.host.list_terminals())

    async def _settle(
        self, asked: set[TerminalId], listed: tuple[HostTerminal, ...]
    ) -> None:
        for told in listed:
            if told.terminal_id in asked:
                await self._heard(told)
        still_asked = asked & self._starts.unanswered()
        for terminal_id in still_asked - {told.terminal_id for told in listed}:
            await self._starts.came_to_nothing(terminal_id)

    async def _heard(self, told: HostTerminal) -> None:
        before, now = self.feed.get(told.terminal_id), self._parts.clock()
        if before is None and self._starts.keep_early_news(told):
            return  # the start itself writes the row
        if before is not None:
            await self._change(reconcile.merged(before, told, at=now))
            return
        begun = self._begun(told.terminal_id)
        terminal = reconcile.merged(begun or self._adopted(told), told, at=now)
        self._link(terminal)
        record = None if begun is None else reconcile.confirmed_record(terminal)
        await self._change(terminal, record)

    def _begun(self, terminal_id: TerminalId) -> Terminal | None:
        """Return the row of a start of which nobody heard how it ended."""
        stored = self._unconfirmed.pop(terminal_id, None)
        if stored is not None:
            return stored.terminal
        return self._starts.answered(terminal_id)

    def _adopted(self, told: HostTerminal) -> Terminal:
        parts, conversation = self._parts, told.conversation_id
        known = None if conversation is None else parts.links.session_of(conversation)
        return reconcile.adopted(told, host_id=parts.host_id, session_id=known)

    async def _change(
        self, terminal: Terminal, record: AuditRecord | None = None
    ) -> None:
        # Into the list before anything is waited for: the next change is made from it.
        before = self.feed.get(terminal.id)
        self.feed.upsert(terminal)
        if reconcile.needs_writing(before, terminal):
            await self._parts.store.save(terminal, record)
        was_running = before is None or before.state is _RUNNING
        if was_running and terminal.state is not _RUNNING:
            self._chore(self._tidy(terminal.id))

    async def _tidy(self, terminal_id: TerminalId) -> None:
        self._parts.links.remove_terminal(terminal_id)
        await self._parts.launcher.finish(terminal_id)

    def _link(self, terminal: Terminal) -> None:
        if terminal.state is _RUNNING:
            self._parts.links.add_terminal(
                terminal.id,
                directory=terminal.directory,
                session_id=terminal.session_id,
            )

    async def _follow_sessions(self) -> None:
        feed = self._parts.sessions.feed
        seq = feed.seq
        for session in feed.values():
            await self._follow_session(session)
        while True:
            await feed.wait_beyond(seq)
            changes = feed.changes_after(seq)
            seq = feed.seq
            rows = feed.values() if changes is None else [c.after for c in changes]
            for row in rows:
                if row is not None and row.terminal_id is not None:
                    await self._follow_session(row)

    async def _follow_session(self, session: Session) -> None:
        terminal = self.feed.get(session.terminal_id or "")
        if terminal is None or terminal.state is not _RUNNING:
            return
        try:
            if session.conflict is not None:
                await self._starts.yield_if_untouched(terminal)
            elif session.state.is_live and terminal.session_id != session.id:
                await self._parts.host.hold_conversation(
                    terminal.id, session.origin.conversation_id
                )
                terminal = self.feed.get(terminal.id)
                if terminal is not None and terminal.state is _RUNNING:
                    await self._change(replace(terminal, session_id=session.id))
        except SidestageError:
            _log.exception("A terminal could not be brought in line with its session.")

    async def _forget_keys(self) -> None:
        while True:
            await asyncio.sleep(KEYS_FORGOTTEN_EVERY.total_seconds())
            await self._parts.store.forget_keys_before(self._keys.forget_old())

    def _chore(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chore_done)

    def _chore_done(self, task: "asyncio.Task[None]") -> None:
        self._chores.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("A terminal's files could not be tidied.", exc_info=error)
