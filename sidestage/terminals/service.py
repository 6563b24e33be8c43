"""The one door through which terminals start, and the list of them.

`TerminalDesk` takes what clients ask for. How a start goes stands in `starts.py`, how
rows change in `rows.py`, and what changes them in `host_news.py` and `session_news.py`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from sidestage.devices.model import Principal, Scope
from sidestage.errors import (
    PermissionDenied,
    SidestageError,
    StorageUnavailable,
    TerminalNotFound,
    TerminalNotRunning,
)
from sidestage.feeds import Feed
from sidestage.ids import ProjectId, TemplateId, TerminalId
from sidestage.sessions.model import Session
from sidestage.terminals import plans, resume_rules
from sidestage.terminals.desk import (
    Admission,
    ResumeAvailability,
    Started,
    Template,
    Ticket,
    TicketMode,
)
from sidestage.terminals.forks import Fork
from sidestage.terminals.host_news import HostNews
from sidestage.terminals.model import (
    Terminal,
    TerminalState,
)
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.plans import checked_name, checked_size
from sidestage.terminals.rows import TerminalRows
from sidestage.terminals.screens import ScreenMatches, StyledLine
from sidestage.terminals.session_news import SessionNews
from sidestage.terminals.start_keys import StartKeys
from sidestage.terminals.starts import Starts
from sidestage.terminals.tickets import TicketBox

KEYS_FORGOTTEN_EVERY: Final = timedelta(hours=1)
"""Keys count for 24 h; one that is kept an hour too long does no harm."""

_RUNNING: Final = TerminalState.RUNNING
Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


class TerminalDesk:
    """`sidestage.terminals.desk.Terminals`: `load` it, `run` it, then use it."""

    def __init__(self, parts: DeskParts) -> None:
        self._parts = parts
        self._rows = TerminalRows(parts)
        self.feed: Feed[Terminal] = self._rows.feed
        self._tickets = TicketBox(clock=parts.clock)
        self._keys = StartKeys(clock=parts.clock)
        self._starts = Starts(parts, self._rows, self._keys)
        self._host_news = HostNews(parts, self._rows, self._starts)
        self._session_news = SessionNews(parts, self._rows, self._starts)

    async def load(self) -> None:
        """Read rows and keys from the store. Call once, before anything else."""
        await self._parts.templates.look()
        stored, keys = await self._parts.store.load()
        self._keys.restore(keys)
        for each in stored:
            if each.starting:
                self._host_news.expect(each.terminal)
            else:
                self._rows.restore(each.terminal)

    async def run(self) -> None:
        """Follow the host and the sessions until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._host_news.follow())
            tasks.create_task(self._host_news.ask_about_starts())
            tasks.create_task(self._session_news.follow())
            tasks.create_task(self._rows.writer.run())
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
        await self._host_news.wait_for_list()
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
        await self._host_news.wait_for_list()
        terminal = await self._starts.resume(
            session_id, size=size, idempotency_key=idempotency_key, actor=actor
        )
        return self._started(terminal, actor)

    async def fork(self, fork: Fork, *, actor: Principal) -> Terminal:
        """Start a continuation (see `sidestage.terminals.forks.Forks`)."""
        await self._host_news.wait_for_list()
        return await self._starts.fork(fork, actor=actor)

    async def fate(self, terminal_id: TerminalId) -> Terminal | None:
        """Return what became of a start (see `sidestage.terminals.forks.Forks`)."""
        return await self._host_news.fate(terminal_id)

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
        # Without it the record keeps the old name, which matters only where the row is
        # lost, too.
        with suppress(SidestageError):
            await self._parts.host.rename(terminal_id, terminal.name)
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
        self._rows.writer.forget(terminal_id)
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

    async def _forget_keys(self) -> None:
        while True:
            await asyncio.sleep(KEYS_FORGOTTEN_EVERY.total_seconds())
            # What stays in a failing database is forgotten an hour later.
            with suppress(StorageUnavailable):
                await self._parts.store.forget_keys_before(self._keys.forget_old())
