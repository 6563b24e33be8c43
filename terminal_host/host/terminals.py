"""Every terminal of this host: starting them, their locks and limits, ending them."""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from sidestage.errors import (
    HostUnavailable,
    OutsideSessionResumed,
    StartFailed,
    TerminalLimitReached,
    TerminalNotFound,
    TerminalNotRunning,
)
from sidestage.ids import ConversationId, TerminalId
from sidestage.terminals.model import CreateTerminal, SandboxReport
from terminal_host.host import processes
from terminal_host.host.families import find_terminal_family
from terminal_host.host.leftovers import Leftover, remove_leftover, write_leftover
from terminal_host.host.live_screen import LiveScreen
from terminal_host.host.pace import Pace
from terminal_host.host.past_terminal import PastTerminal
from terminal_host.host.ports import Confiner
from terminal_host.host.pty import PtyProgram, spawn
from terminal_host.host.record_format import RecordMeta
from terminal_host.host.recorder import Recorder
from terminal_host.host.terminal import HELD_LIMIT_BYTES, HostedTerminal
from terminal_host.host_messages import Holder
from terminal_host.screen import Engine

RUNNING_LIMIT: Final = 32
"""Programs at once; an agent's tree takes 300 MB and more."""
ENDED_LIMIT: Final = 64
"""Ended terminals whose screen is kept; the oldest goes first."""
SCREEN_THREADS: Final = 2
"""Threads that feed screens: the engine releases the GIL, and two cores are common."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """What one host may hold."""

    running: int = RUNNING_LIMIT
    ended: int = ENDED_LIMIT
    held_bytes: int = HELD_LIMIT_BYTES


AnyTerminal = HostedTerminal | PastTerminal
Watcher = Callable[[TerminalId, AnyTerminal | None], None]
"""Told of each change: the terminal, or None once it is forgotten."""


class HostedTerminals:
    """The registry. For one event loop, in the process's main thread."""

    def __init__(
        self,
        folder: Path,
        confiner: Confiner,
        make_engine: Callable[[int, int], Engine],
        *,
        recorder: Recorder,
        limits: HostLimits,
    ) -> None:
        self.draining = False
        self._folder = folder
        self._confiner = confiner
        self._make_engine = make_engine
        self._recorder = recorder
        recorder.is_current = lambda one: self._terminals.get(one.id) is one
        recorder.on_pruned = self._forget_past
        self._limits = limits
        self._boot_id = processes.boot_id()
        self._pace = Pace(asyncio.get_running_loop().time)
        self._executor = ThreadPoolExecutor(SCREEN_THREADS, thread_name_prefix="screen")
        # As many as programs, so that a stop takes no longer than its slowest.
        self._enders = ThreadPoolExecutor(limits.running, thread_name_prefix="end")
        self._terminals: dict[TerminalId, AnyTerminal] = {}
        self._starting: dict[TerminalId, asyncio.Future[HostedTerminal]] = {}
        self._conversations: dict[ConversationId, TerminalId] = {}
        self._watchers: set[Watcher] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: set[TerminalId] = set()

    def restore(self, metas: Iterable[RecordMeta]) -> None:
        """Take in what hosts before this one recorded."""
        for meta in metas:
            self._terminals[meta.terminal_id] = PastTerminal(
                meta,
                partial(self._recorder.find, meta.terminal_id),
                self._executor,
                on_change=self._tell,
            )

    def values(self) -> tuple[AnyTerminal, ...]:
        """Return every terminal, ended ones included, in the order of their start."""
        return tuple(self._terminals.values())

    def get(self, terminal_id: TerminalId) -> AnyTerminal:
        """Return the terminal; raises `TerminalNotFound`."""
        terminal = self._terminals.get(terminal_id)
        if terminal is None:
            raise TerminalNotFound("The host has no such terminal.")
        return terminal

    def watch(self, watcher: Watcher) -> None:
        """Tell *watcher* of every change from now on, until `unwatch`."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Tell *watcher* no more."""
        self._watchers.discard(watcher)

    async def create(self, request: CreateTerminal) -> HostedTerminal:
        """Start a program, or return the terminal that has this id already.

        Raises what `TerminalHost.create` does.
        """
        there = self._terminals.get(request.terminal_id)
        if isinstance(there, HostedTerminal):
            return there
        starting = self._starting.get(request.terminal_id)
        if starting is not None:
            return await asyncio.shield(starting)
        return await self._create(request)

    async def wait_started(self) -> None:
        """Return once the starts under way have become terminals or come to nothing."""
        if self._starting:
            await asyncio.wait(tuple(self._starting.values()))

    async def end(self, terminal_id: TerminalId) -> None:
        """End every process of the terminal; return when they are gone."""
        terminal = self.get(terminal_id)
        if isinstance(terminal, HostedTerminal) and terminal.running:
            self._end_processes(terminal)
            await asyncio.shield(terminal.done)

    async def remove(self, terminal_id: TerminalId) -> None:
        """End the terminal and forget it and its record; raises `TerminalNotFound`."""
        try:
            await self.end(terminal_id)
            self._forget(terminal_id)
        finally:
            # Also where the terminal is not known: its record may be unreadable.
            await self._recorder.remove(terminal_id)

    def hold_conversation(
        self, terminal_id: TerminalId, conversation_id: ConversationId
    ) -> None:
        """Move the terminal's lock; raises `OutsideSessionResumed`."""
        terminal = self.get(terminal_id)
        if isinstance(terminal, PastTerminal):
            raise TerminalNotRunning("This terminal has ended.")
        self._lock(conversation_id, terminal_id)
        self._unlock(terminal.conversation_id, terminal_id, but=conversation_id)
        terminal.conversation_id = conversation_id
        self._tell(terminal)

    def drop(self, holder: Holder) -> int:
        """Close the attachments of *holder*; return how many there were."""
        dropped = [
            attachment
            for terminal in self._terminals.values()
            for attachment in terminal.attachments
            if attachment.holder == holder
        ]
        for attachment in dropped:
            attachment.close()
        return len(dropped)

    def reap(self) -> None:
        """Act on the children that have died. Call it on SIGCHLD."""
        roots = {t.root.pid: t for t in self._hosted() if t.running}
        for pid, status in processes.reap_orphans().items():
            terminal = roots.get(pid)
            if terminal is not None:
                self._start_task(self._finish(terminal, status))

    async def close(self) -> None:
        """Record every screen; end every terminal, in parallel; stop the threads.

        The programs did not end by themselves, so nobody is told that they did: the
        next host lists them as LOST.
        """
        self.draining = True
        await self._recorder.close()
        self._watchers.clear()
        running = [t for t in self._hosted() if t.running]
        await asyncio.gather(*(self.end(t.id) for t in running))
        for terminal in self._terminals.values():
            terminal.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._enders.shutdown(wait=False, cancel_futures=True)

    async def _create(self, request: CreateTerminal) -> HostedTerminal:
        self._check_room()
        if request.conversation_id is not None:
            self._lock(request.conversation_id, request.terminal_id)
        loop = asyncio.get_running_loop()
        starting = self._starting[request.terminal_id] = loop.create_future()
        try:
            terminal = await self._start(request)
        except BaseException as error:
            self._unlock(request.conversation_id, request.terminal_id)
            starting.set_exception(error)
            starting.exception()  # nobody else may be waiting for it
            raise
        else:
            starting.set_result(terminal)
            return terminal
        finally:
            del self._starting[request.terminal_id]

    async def _start(self, request: CreateTerminal) -> HostedTerminal:
        context = self._confiner.confine(request)
        # Confining blocks (it reads files and asks programs), so it is a thread's work;
        # spawning is not: a sandbox dies with the thread that started it.
        confined = await asyncio.to_thread(context.__enter__)
        try:
            program = spawn(
                confined.argv,
                environment=request.environment,
                directory=request.directory,
                cols=request.cols,
                rows=request.rows,
                pass_fds=confined.pass_fds,
            )
            # In the same turn of the loop: nobody may reap it before it is known.
            return self._adopt(request, program, confined.report)
        finally:
            await asyncio.to_thread(context.__exit__, None, None, None)

    def _adopt(
        self, request: CreateTerminal, program: PtyProgram, report: SandboxReport
    ) -> HostedTerminal:
        stat = processes.find_stat(program.pid)
        if stat is None:  # cannot be: we alone reap it
            program.close()
            raise StartFailed("The program vanished as it started.")
        write_leftover(
            self._folder / request.terminal_id,
            Leftover(request.terminal_id, stat.key, self._boot_id),
        )
        terminal = HostedTerminal(
            request,
            program,
            stat.key,
            screen=LiveScreen(self._make_engine, cols=request.cols, rows=request.rows),
            executor=self._executor,
            pace=self._pace,
            sandbox=report,
            on_change=self._tell,
            on_screen=self._recorder.changed,
            held_limit_bytes=self._limits.held_bytes,
        )
        past = self._terminals.pop(request.terminal_id, None)
        self._terminals[request.terminal_id] = terminal
        self._start_task(self._begin_record(terminal, past))
        self._tell(terminal)
        # It may have died before it was in the list.
        self.reap()
        return terminal

    async def _begin_record(
        self, terminal: HostedTerminal, past: AnyTerminal | None
    ) -> None:
        """Put the record of *terminal* in the place of an earlier one's."""
        if past is not None:
            past.close()
            await self._recorder.remove(past.id)
        self._recorder.changed(terminal)

    def _hosted(self) -> list[HostedTerminal]:
        values = self._terminals.values()
        return [each for each in values if isinstance(each, HostedTerminal)]

    def _check_room(self) -> None:
        if self.draining:
            raise HostUnavailable("The terminal host is stopping.")
        running = sum(t.running for t in self._terminals.values())
        if running + len(self._starting) >= self._limits.running:
            raise TerminalLimitReached(
                f"{self._limits.running} terminals run already. Close one first."
            )

    def _lock(self, conversation: ConversationId, terminal_id: TerminalId) -> None:
        holder = self._conversations.setdefault(conversation, terminal_id)
        if holder != terminal_id:
            raise OutsideSessionResumed(
                "This session is already open in a terminal.", terminal_id=holder
            )

    def _unlock(
        self,
        conversation: ConversationId | None,
        terminal_id: TerminalId,
        *,
        but: ConversationId | None = None,
    ) -> None:
        if conversation is None or conversation == but:
            return
        if self._conversations.get(conversation) == terminal_id:
            del self._conversations[conversation]

    def _end_processes(self, terminal: HostedTerminal) -> None:
        if terminal.id not in self._ending:
            self._ending.add(terminal.id)
            self._start_task(self._end_family(terminal))

    async def _end_family(self, terminal: HostedTerminal) -> None:
        """End what the terminal started; its root's death then finishes it."""
        roots = [t.root for t in self._hosted()]

        def find() -> set[processes.ProcessKey]:
            table = processes.read_table()
            return find_terminal_family(
                table,
                terminal.id,
                terminal.root,
                others=[root for root in roots if root != terminal.root],
                host=os.getpid(),
            )

        end = partial(processes.end_processes, find, last=[terminal.root])
        stuck = await asyncio.get_running_loop().run_in_executor(self._enders, end)
        if stuck:
            _log.warning("%d processes of a terminal cannot be ended", len(stuck))

    async def _finish(self, terminal: HostedTerminal, wait_status: int) -> None:
        # What the program left behind goes with it; its output still counts.
        await self._end_family(terminal)
        remove_leftover(self._folder / terminal.id)
        self._unlock(terminal.conversation_id, terminal.id)
        self._ending.discard(terminal.id)
        await terminal.finish(processes.exit_status(wait_status))
        self._prune()

    def _prune(self) -> None:
        # LOST ones are bounded by the number of records, and go after all others.
        ended = [t for t in self._terminals.values() if not t.running and not t.lost]
        for terminal in ended[: max(0, len(ended) - self._limits.ended)]:
            self._forget(terminal.id)
            self._start_task(self._recorder.remove(terminal.id))

    def _forget_past(self, terminal_id: TerminalId) -> None:
        """Forget a terminal of which nothing but its record was left."""
        if isinstance(self._terminals.get(terminal_id), PastTerminal):
            self._forget(terminal_id)

    def _forget(self, terminal_id: TerminalId) -> None:
        terminal = self._terminals.pop(terminal_id, None)
        if terminal is None:
            return  # somebody else removed it meanwhile
        terminal.close()
        for watcher in tuple(self._watchers):
            watcher(terminal_id, None)

    def _tell(self, terminal: AnyTerminal) -> None:
        if self._terminals.get(terminal.id) is not terminal:
            return  # a client that leaves a forgotten terminal is no news
        for watcher in tuple(self._watchers):
            watcher(terminal.id, terminal)

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
