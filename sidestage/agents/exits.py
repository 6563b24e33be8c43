"""The end of a process as an event: SIGKILL too is told at once (pidfd_open(2))."""

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import Final

from sidestage.agents.processes import ProcessTable
from sidestage.sessions.model import Process

PIDFD_LIMIT: Final = 256
"""Descriptors held; processes beyond it are noticed by the regular look instead."""


class ProcessExits:
    """Tells of the end of watched processes. Made in a running loop's thread."""

    def __init__(self, table: ProcessTable, on_exit: Callable[[Process], None]) -> None:
        self._table = table
        self._on_exit = on_exit
        self._descriptors: dict[Process, int] = {}

    def watch_only(self, processes: Iterable[Process]) -> None:
        """Watch exactly *processes* from now on; one that is gone is told soon."""
        wanted = set(processes)
        for process in set(self._descriptors) - wanted:
            self._forget(process)
        for process in wanted - set(self._descriptors):
            if len(self._descriptors) < PIDFD_LIMIT:
                self._watch(process)

    def close(self) -> None:
        """Stop watching every process."""
        for process in tuple(self._descriptors):
            self._forget(process)

    def _watch(self, process: Process) -> None:
        loop = asyncio.get_running_loop()
        try:
            descriptor = self._table.open_exit(process.pid)
        except ProcessLookupError:
            loop.call_soon(self._on_exit, process)
            return
        except OSError:
            return  # no descriptors left, or an old kernel: the regular look tells
        self._descriptors[process] = descriptor
        loop.add_reader(descriptor, self._ended, process)

    def _ended(self, process: Process) -> None:
        self._forget(process)
        self._on_exit(process)

    def _forget(self, process: Process) -> None:
        descriptor = self._descriptors.pop(process)
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
