"""Ends all that a terminal started, tells what stays, and goes on trying."""

import asyncio
import logging
import os
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from sidestage.errors import TerminalNotEnded
from sidestage.ids import TerminalId
from terminal_host.host.families import find_terminal_family, make_orphan_test
from terminal_host.host.hunt import hunt_orphans
from terminal_host.host.keeper import SandboxKeeper
from terminal_host.host.processes import (
    ProcessKey,
    end_processes,
    kill_processes,
    read_table,
)

RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 60.0, 60.0)
"""Between tries to end what stayed: a process stuck in the kernel (on a disk or a
network mount that does not answer) dies when it comes back, or not in our time."""

_log = logging.getLogger(__name__)


class FamilyEnder:
    """Ends the processes of one terminal. Its owner closes it; for one event loop."""

    def __init__(
        self,
        terminal_id: TerminalId,
        root: ProcessKey,
        *,
        keeper: SandboxKeeper | None,
        threads: ThreadPoolExecutor,
        others: Callable[[], Collection[ProcessKey]],
        on_gone: Callable[[], None],
    ) -> None:
        self._terminal_id = terminal_id
        self._root = root
        self._keeper = keeper
        self._threads = threads
        self._others = others
        self._on_gone = on_gone
        self._ending: asyncio.Task[int] | None = None
        self._trying: asyncio.Task[None] | None = None
        self._closed = False

    async def end(self) -> None:
        """Hang up on all, then kill what stays.

        Raises `TerminalNotEnded` if some are left; it goes on killing them beside all
        else, and calls *on_gone* if that succeeds. Whoever calls while it is being done
        gets the same answer.
        """
        if self._ending is None or self._ending.done():
            work = partial(end_processes, last=[self._root])
            self._ending = asyncio.create_task(self._run(work))
        if left := await asyncio.shield(self._ending):
            idle = self._trying is None or self._trying.done()
            if idle and not self._closed:
                self._trying = asyncio.create_task(self._try_on(left))
            raise TerminalNotEnded(
                f"{left} processes of this terminal could not be ended. Sidestage goes "
                "on trying; close it again in a while."
            )

    def close(self) -> None:
        """Give up trying, and let the sandbox's thread go."""
        self._closed = True
        if self._trying is not None:
            self._trying.cancel()
        if self._keeper is not None:
            self._keeper.close()

    async def _try_on(self, left: int) -> None:
        _log.warning("%d processes of a terminal do not end; trying on", left)
        for seconds in RETRY_SECONDS:
            await asyncio.sleep(seconds)
            left = await self._run(kill_processes)
            if not left:
                _log.info("what was left of a terminal has ended")
                self._on_gone()
                return
        _log.error("%d processes of a terminal are left for good", left)

    async def _run(self, work: Callable[..., set[ProcessKey]]) -> int:
        others = [root for root in self._others() if root != self._root]
        find = partial(self._find, others)
        kill = partial(self._hunt, others) if not self._keeper else self._keeper.kill
        loop = asyncio.get_running_loop()
        call = partial(work, find, kill=kill)
        try:
            return len(await loop.run_in_executor(self._threads, call))
        except OSError:
            # No descriptor or memory is left to look with: something may well be there.
            _log.exception("the processes of a terminal cannot be looked at")
            return 1

    def _hunt(self, others: list[ProcessKey]) -> None:
        spared = {self._root.pid, *(root.pid for root in others)}
        is_ours = make_orphan_test(
            read_table(), self._terminal_id, self._root, others=others, host=os.getpid()
        )
        hunt_orphans(is_ours, spared)

    def _find(self, others: list[ProcessKey]) -> set[ProcessKey]:
        return find_terminal_family(
            read_table(),
            self._terminal_id,
            self._root,
            others=others,
            host=os.getpid(),
        )
