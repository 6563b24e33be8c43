"""Every terminal of this host: starting them, their locks and limits, ending them."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from sidestage.errors import (
    HostUnavailable,
    OutsideSessionResumed,
    StartFailed,
    TerminalLimitReached,
    TerminalNotEnded,
    TerminalNotFound,
    TerminalNotRunning,
)
from sidestage.ids import ConversationId, TerminalId
from sidestage.terminals.model import CreateTerminal, SandboxReport
from terminal_host.host import processes
from terminal_host.host.ending import FamilyEnder
from terminal_host.host.keeper import SandboxKeeper, start_program
from terminal_host.host.leftovers import Leftover, remove_leftover, write_leftover
from terminal_host.host.live_screen import LiveScreen
from terminal_host.host.pace import Pace
from terminal_host.host.past_terminal import PastTerminal
from terminal_host.host.ports import Confiner
from terminal_host.host.pty import PtyProgram
from terminal_host.host.reaping import REAP_LIMIT, reap_children
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
        self._families: dict[TerminalId, FamilyEnder] = {}
        self._roots: dict[int, HostedTerminal] = {}
        """By pid, those whose program was not reaped yet."""
        self._reaping = False

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
        """End every process of the terminal; return when they are gone.

        Raises `TerminalNotEnded` if some stay; the host goes on trying.
        """
        terminal = self.get(terminal_id)
        family = self._families.get(terminal_id)
        if family is None or not isinstance(terminal, HostedTerminal):
            return
        await family.end()
        await asyncio.shield(terminal.done)
        self._let_go(terminal_id)

    async def remove(self, terminal_id: TerminalId) -> None:
        """End the terminal and forget it and its record.

        Raises `TerminalNotFound`, and `TerminalNotEnded`: then it is not forgotten.
        """
        try:
            await self.end(terminal_id)
        except TerminalNotFound:
            # Its record may be there all the same, and unreadable.
            await self._recorder.remove(terminal_id)
            raise
        self._forget(terminal_id)
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
        """Act on the children that have died, in the next turns. Call it on SIGCHLD."""
        if not self._reaping:
            self._reaping = True
            asyncio.get_running_loop().call_soon(self._reap_turn)

    def _reap_turn(self) -> None:
        self._reaping = False
        dead = reap_children()
        if len(dead) >= REAP_LIMIT:
            self.reap()
        for pid in dead.keys() & self._roots.keys():
            # Popped: from here on the number may mean another process.
            self._start_task(self._finish(self._roots.pop(pid), dead[pid]))

    async def close(self) -> None:
        """Record every screen; end every terminal, in parallel; stop the threads.

        The programs did not end by themselves, so nobody is told that they did: the
        next host lists them as LOST.
        """
        self.draining = True
        await self._recorder.close()
        self._watchers.clear()
        running = [t for t in self._hosted() if t.running]
        await asyncio.gather(*(self._end_or_leave(t) for t in running))
        for family in self._families.values():
            family.close()
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
            # Cancelled too: the conversation is free, and who waits for it is told.
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
        # a sandbox dies with the thread that started it, so only a keeper's may spawn.
        confined = await asyncio.to_thread(context.__enter__)
        try:
            # In one turn of the loop: nobody may reap it before it is known.
            program, keeper = start_program(request, confined)
            return self._adopt(request, program, keeper, confined.report)
        finally:
            await asyncio.to_thread(context.__exit__, None, None, None)

    def _adopt(
        self,
        request: CreateTerminal,
        program: PtyProgram,
        keeper: SandboxKeeper | None,
        report: SandboxReport,
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
        self._roots[program.pid] = terminal
        self._families[request.terminal_id] = FamilyEnder(
            request.terminal_id,
            stat.key,
            keeper=keeper,
            threads=self._enders,
            others=lambda: [each.root for each in self._hosted()],
            on_gone=partial(self._let_go, request.terminal_id),
        )
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

    async def _end_or_leave(self, terminal: HostedTerminal) -> None:
        with suppress(TerminalNotEnded):
            await self.end(terminal.id)

    async def _finish(self, terminal: HostedTerminal, wait_status: int) -> None:
        # What the program left behind goes with it; its output still counts.
        family = self._families.get(terminal.id)
        with suppress(TerminalNotEnded):  # then it goes on trying, and tells us
            if family is not None:
                await family.end()
            self._let_go(terminal.id)
        self._unlock(terminal.conversation_id, terminal.id)
        await terminal.finish(processes.exit_status(wait_status))
        self._prune()

    def _let_go(self, terminal_id: TerminalId) -> None:
        """Take note that nothing of the terminal runs any more."""
        family = self._families.pop(terminal_id, None)
        if family is not None:
            family.close()
            remove_leftover(self._folder / terminal_id)

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
