"""How a terminal starts: the row, the host, the outcome, and what survives a crash.

The row and the idempotency key are on disk before the host is called, so that after a
crash at any step the host's list and the row find each other again.
"""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import replace
from typing import Final, Protocol

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.devices.model import Principal
from sidestage.errors import (
    ConversationTaken,
    ErrorCode,
    HostUnavailable,
    IdempotencyKeyReused,
    OutsideResumeBusy,
    OutsideSessionNotFound,
    OutsideSessionResumed,
    SidestageError,
    StartFailed,
    StorageUnavailable,
    TerminalLimitReached,
)
from sidestage.ids import ProjectId, SessionId, TemplateId, TerminalId, new_id
from sidestage.terminals import forks, plans, reconcile, resume_rules, start_keys
from sidestage.terminals.forks import Fork
from sidestage.terminals.model import (
    CreateTerminal,
    HostTerminal,
    Terminal,
    TerminalState,
)
from sidestage.terminals.parts import DeskParts
from sidestage.terminals.plans import Plan, Request, Size
from sidestage.terminals.rows import TerminalRows
from sidestage.terminals.store import StartKey

_UNANSWERED: Final = "The terminal host has not answered this start yet."
_log = logging.getLogger(__name__)


class Starts:
    """Starts in flight, and the way each goes."""

    def __init__(
        self,
        parts: DeskParts,
        rows: TerminalRows,
        keys: start_keys.StartKeys,
    ) -> None:
        self._parts = parts
        self._rows = rows
        self._feed = rows.feed
        self._keys = keys
        self._early: dict[TerminalId, HostTerminal] = {}
        self._resuming: set[str] = set()
        self._in_flight: dict[TerminalId, Terminal] = {}
        self._unanswered: dict[TerminalId, Terminal] = {}
        self._forking: set[TerminalId] = set()
        self._tasks: set[asyncio.Task[Terminal]] = set()

    def keep_early_news(self, told: HostTerminal) -> bool:
        """Keep news of a terminal whose start is not written down yet.

        False if no start of this process is under way for it.
        """
        if told.terminal_id not in self._in_flight:
            return False
        self._early[told.terminal_id] = told
        return True

    def under_way(self) -> frozenset[TerminalId]:
        """Return the starts that have begun and may still become terminals."""
        return frozenset((*self._in_flight, *self._unanswered, *self._forking))

    def unanswered(self) -> set[TerminalId]:
        """Return the starts of which the host never said how they ended."""
        return set(self._unanswered)

    def answered(self, terminal_id: TerminalId) -> Terminal | None:
        """Take back the row of an unanswered start that the host turns out to have."""
        terminal = self._unanswered.pop(terminal_id, None)
        if terminal is not None:
            self._resuming.discard(terminal.session_id or "")
        return terminal

    async def start(
        self,
        *,
        project_id: ProjectId,
        template_id: TemplateId,
        name: str | None,
        size: Size,
        idempotency_key: str | None,
        actor: Principal,
    ) -> Terminal:
        """Start *template_id* in the project's folder."""
        bound = start_keys.bound_key(idempotency_key, actor.credential)
        digest = start_keys.input_digest(
            "start", project_id, template_id, name or "", *map(str, size)
        )
        known = await self._known(bound, digest)
        if known is not None:
            return known
        request = self._request(size, actor)

        async def go(key: StartKey | None) -> Terminal:
            await self._parts.templates.look()
            plan = plans.plan_start(
                self._parts,
                request,
                project_id=project_id,
                template_id=template_id,
                name=name,
            )
            return await self._carry_out(plan, key)

        return await self._run(go, request, bound, digest)

    async def resume(
        self,
        session_id: str,
        *,
        size: Size,
        idempotency_key: str | None,
        actor: Principal,
    ) -> Terminal:
        """Resume the session; checks 1 to 10 in their order."""
        bound = start_keys.bound_key(idempotency_key, actor.credential)
        digest = start_keys.input_digest("resume", session_id, *map(str, size))
        known = await self._known(bound, digest)
        if known is not None:
            return known
        self._check_free(session_id)
        # No await stands between the check and the mark: of two phones one wins.
        self._resuming.add(session_id)
        request = self._request(size, actor)

        async def go(key: StartKey | None) -> Terminal:
            try:
                await self._parts.templates.look()
                plan = await plans.plan_resume(
                    self._parts, request, SessionId(session_id)
                )
                return await self._carry_out(plan, key)
            finally:
                if request.terminal_id not in self._unanswered:
                    self._resuming.discard(session_id)

        return await self._run(go, request, bound, digest)

    async def fork(self, fork: Fork, *, actor: Principal) -> Terminal:
        """Start a continuation; the same one again gives what it became."""
        known = self._feed.get(fork.terminal_id)
        if known is not None:
            return known
        if fork.terminal_id in self.under_way():
            raise HostUnavailable(_UNANSWERED)
        request = Request(
            terminal_id=fork.terminal_id,
            size=plans.checked_size(fork.cols, fork.rows),
            actor=actor,
        )

        async def go(key: StartKey | None) -> Terminal:
            try:
                await self._parts.templates.look()
                plan = await forks.plan_fork(self._parts, request, fork)
                return await self._carry_out(plan, key)
            finally:
                self._forking.discard(fork.terminal_id)

        # No await stands before it is under way: a second call finds it.
        self._forking.add(fork.terminal_id)
        return await self._run(go, request, None, "")

    async def came_to_nothing(self, terminal_id: TerminalId) -> None:
        """Take back a start that the host does not know: a retry may start anew."""
        await self._drop(terminal_id)
        self._keys.release(terminal_id)
        self._parts.links.remove_terminal(terminal_id)
        await self._parts.launcher.finish(terminal_id)
        terminal = self._unanswered.pop(terminal_id, None)
        if terminal is not None:
            self._resuming.discard(terminal.session_id or "")

    async def yield_if_untouched(self, terminal: Terminal) -> bool:
        """End *terminal* if nobody typed into it: someone else has its conversation."""
        if await self._parts.host.had_input(terminal.id):
            return False
        current = self._feed.get(terminal.id)
        if current is None or current.state is not TerminalState.RUNNING:
            return True
        reason = ErrorCode.CONVERSATION_TAKEN
        if current.end_reason is None:
            _log.warning("A resumed conversation was opened elsewhere; ours is ended.")
            ended = replace(current, end_reason=reason.value)
            # Into the list at once: news of its end meanwhile goes on from it.
            self._feed.upsert(ended)
            await self._rows.writer.write(ended, _yield_record(ended, reason))
        # Also if it is being ended already: true is told only once it is gone.
        await self._parts.host.end(terminal.id, reason=reason.value)
        return True

    def _request(self, size: Size, actor: Principal) -> Request:
        terminal_id = TerminalId(new_id("terminal"))
        return Request(terminal_id=terminal_id, size=size, actor=actor)

    async def _known(self, key: str | None, digest: str) -> Terminal | None:
        known = self._keys.find(key, digest)
        if known is None:
            return None
        if known.outcome is not None:
            return await asyncio.shield(known.outcome)
        terminal = self._feed.get(known.key.terminal_id)
        if terminal is None and known.key.terminal_id in self._unanswered:
            raise HostUnavailable(_UNANSWERED)
        if terminal is None:
            raise IdempotencyKeyReused(start_keys.CLOSED)
        return terminal

    async def _run(
        self,
        work: "_Work",
        request: Request,
        bound_key: str | None,
        digest: str,
    ) -> Terminal:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Terminal] = loop.create_future()
        key = self._keys.claim(bound_key, digest, request.terminal_id, outcome)
        # A task of its own: the start goes on when the client that asked hangs up.
        task = loop.create_task(work(key))
        self._tasks.add(task)

        def done(finished: "asyncio.Task[Terminal]") -> None:
            self._tasks.discard(finished)
            self._in_flight.pop(request.terminal_id, None)
            self._early.pop(request.terminal_id, None)
            self._settle(finished, outcome, key, request.terminal_id)

        task.add_done_callback(done)
        return await asyncio.shield(outcome)

    def _settle(
        self,
        finished: "asyncio.Task[Terminal]",
        outcome: "asyncio.Future[Terminal]",
        key: StartKey | None,
        terminal_id: TerminalId,
    ) -> None:
        error = _error_of(finished)
        if error is None or terminal_id in self._unanswered:
            self._keys.settle(key)
        else:
            self._keys.release(terminal_id)
        if error is None:
            outcome.set_result(finished.result())
        else:
            outcome.set_exception(error)
            outcome.exception()  # whoever still waits raises it; it is not "lost"

    def _check_free(self, session_id: str) -> None:
        if self._parts.sessions.find(SessionId(session_id)) is None:
            raise OutsideSessionNotFound(resume_rules.GONE)
        for terminal in self._feed.values():
            if (
                terminal.session_id == session_id
                and terminal.state is TerminalState.RUNNING
            ):
                raise OutsideSessionResumed(
                    resume_rules.OPEN_ALREADY, terminal_id=terminal.id
                )
        if session_id in self._resuming:
            raise OutsideResumeBusy(resume_rules.IN_FLIGHT)

    async def _carry_out(self, plan: Plan, key: StartKey | None) -> Terminal:
        self._check_room()
        terminal = plans.row_of(plan, self._parts)
        self._in_flight[terminal.id] = terminal
        request = await self._prepare(plan, terminal)
        await self._parts.store.begin(terminal, key, plans.begun_record(plan))
        self._parts.links.add_terminal(
            terminal.id,
            directory=terminal.directory,
            session_id=terminal.session_id,
        )
        told = await self._ask_host(plan, terminal, request)
        terminal = reconcile.merged(terminal, told)
        await self._rows.writer.write(terminal, plans.done_record(plan, terminal))
        self._feed.upsert(terminal)
        del self._in_flight[terminal.id]
        # A program that ended at once has told so while its start was written down.
        early = self._early.pop(terminal.id, None)
        if early is not None:
            await self._rows.change(reconcile.merged(terminal, early))
        await self._check_alone(terminal)
        return self._feed.get(terminal.id) or terminal

    async def _prepare(self, plan: Plan, terminal: Terminal) -> CreateTerminal:
        project = plan.start.project
        await asyncio.to_thread(
            self._parts.check_project, project.path, project.device, project.inode
        )
        return replace(
            await self._parts.launcher.prepare(plan.start),
            name=terminal.name,
            project_id=terminal.project_id,
        )

    async def _ask_host(
        self, plan: Plan, terminal: Terminal, request: CreateTerminal
    ) -> HostTerminal:
        try:
            return await self._parts.host.create(request)
        except HostUnavailable:
            # It may have started all the same; the host's next list tells.
            self._unanswered[terminal.id] = terminal
            raise
        except SidestageError as error:
            await self._failed(plan, error)
            raise

    async def _check_alone(self, terminal: Terminal) -> None:
        if terminal.session_id is None:
            return
        foreign = await self._parts.links.foreign_process(
            terminal.session_id, terminal.id
        )
        if foreign and await self.yield_if_untouched(terminal):
            raise ConversationTaken(resume_rules.TAKEN)

    async def _failed(self, plan: Plan, error: SidestageError) -> None:
        terminal_id = plan.start.terminal_id
        await self._drop(terminal_id, plans.failed_record(plan, error))
        self._parts.links.remove_terminal(terminal_id)
        await self._parts.launcher.finish(terminal_id)

    async def _drop(
        self, terminal_id: TerminalId, record: AuditRecord | None = None
    ) -> None:
        """Delete the row of a start that came to nothing."""
        try:
            await self._parts.store.drop(terminal_id, keys=True, record=record)
        except StorageUnavailable as error:
            # It stays a row of a start: the next server asks the host, and drops it.
            _log.warning("A start that came to nothing is still stored. %s", error)

    def _check_room(self) -> None:
        running = sum(
            terminal.state is TerminalState.RUNNING for terminal in self._feed.values()
        )
        if running + len(self._in_flight) >= self._parts.terminals_limit:
            raise TerminalLimitReached(
                f"{self._parts.terminals_limit} terminals run already, as many as the "
                "settings allow. Close one first."
            )


class _Work(Protocol):
    def __call__(self, key: StartKey | None) -> Coroutine[None, None, Terminal]: ...


def _error_of(task: "asyncio.Task[Terminal]") -> BaseException | None:
    if task.cancelled():
        return StartFailed("The server stopped while it started the terminal.")
    return task.exception()


def _yield_record(terminal: Terminal, code: ErrorCode) -> AuditRecord:
    return AuditRecord(
        actor="system",
        action="session.yield",
        target_id=terminal.session_id or terminal.id,
        outcome=AuditOutcome.DONE,
        code=code.value,
        detail=f"terminal={terminal.id}",
    )
