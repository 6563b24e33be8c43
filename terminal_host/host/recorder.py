"""Writes the screens of terminals down soon after they change, beside the byte path."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar

from sidestage.ids import TerminalId
from sidestage.terminals.model import HostTerminal
from terminal_host.host.record_format import (
    META_LIMIT_BYTES,
    RecordMeta,
    RecordTooLarge,
    ScreenRecord,
)
from terminal_host.host.records import RecordStore
from terminal_host.host.tail_screen import Picture

RECORD_SECONDS: Final = 1.2
"""From a change to its writing: with the writing itself it must stay below 2 s."""
CLOSE_SECONDS: Final = 3.0
"""For the last records of a host that is told to stop; its programs need time too."""

Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


class Recorded(Protocol):
    """A terminal whose screen is recorded."""

    @property
    def id(self) -> TerminalId:
        """Return its id."""

    def describe(self) -> HostTerminal:
        """Return what there is to know of it."""

    async def picture(self, limit_bytes: int) -> tuple[Picture | None, int]:
        """Return the screen and the offset it stands for; None if it is too large."""


class Recorder:
    """Records terminals until it is closed. For one event loop.

    *is_current* tells whether a terminal is still one of the host's: a record that was
    under way when its terminal was closed must not come back.
    """

    def __init__(
        self, store: RecordStore, *, record_seconds: float = RECORD_SECONDS
    ) -> None:
        self.is_current: Callable[[Recorded], bool] = lambda _: True
        self.on_pruned: Callable[[TerminalId], None] = lambda _: None
        """Told of records that gave way to newer ones."""
        self._store = store
        self._seconds = record_seconds
        # One thread: saves and removals take place in the order they were asked for.
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="records")
        self._changed: dict[TerminalId, Recorded] = {}
        self._unwanted: set[TerminalId] = set()
        self._writing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._failing = False

    def changed(self, terminal: Recorded) -> None:
        """Take note that the screen of *terminal* is not the recorded one any more."""
        if not self._closing.is_set():
            self._changed[terminal.id] = terminal
            self._write_soon()

    async def find(self, terminal_id: TerminalId) -> ScreenRecord | None:
        """Return the record of a terminal, or None."""
        return await self._do(lambda: self._store.find(terminal_id))

    async def remove(self, terminal_id: TerminalId) -> None:
        """Delete the record; it is gone for good when this returns.

        A deletion that fails is logged and tried again.
        """
        await self._remove(terminal_id)
        if self._unwanted:
            self._write_soon()

    async def close(self) -> None:
        """Write what has changed, within `CLOSE_SECONDS`; record nothing more."""
        self._closing.set()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._writing is not None:
                    await asyncio.wait((self._writing,))
                await self._write_all()
        except TimeoutError:
            _log.warning("some screens were not recorded in time")
        self._disk.shutdown(wait=False, cancel_futures=True)

    def _write_soon(self) -> None:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())
            self._writing.add_done_callback(_log_failure)

    async def _write(self) -> None:
        while (self._changed or self._unwanted) and not self._closing.is_set():
            try:
                async with asyncio.timeout(self._seconds):
                    await self._closing.wait()
            except TimeoutError:
                await self._write_all()

    async def _write_all(self) -> None:
        changed, self._changed = self._changed, {}
        for terminal_id in tuple(self._unwanted):
            await self._remove(terminal_id)
        await asyncio.gather(*(self._save(terminal) for terminal in changed.values()))

    async def _save(self, terminal: Recorded) -> None:
        limit = self._store.limits.record_bytes - META_LIMIT_BYTES
        picture, offset = await terminal.picture(limit)
        if not self.is_current(terminal):
            return
        if picture is None:
            await self._remove(terminal.id)
            return
        record = ScreenRecord(
            meta=_meta(terminal.describe(), picture, offset),
            screen=picture.screen,
            continuation=picture.continuation,
        )
        self._unwanted.discard(terminal.id)
        try:
            pruned = await self._do(lambda: self._store.save(record))
        except RecordTooLarge:
            return  # an older record is deleted
        except OSError as error:
            # An idle program may never change again: it is for us to come back.
            self._changed.setdefault(terminal.id, terminal)
            self._failed(error)
            return
        self._succeeded()
        for terminal_id in pruned:
            self.on_pruned(terminal_id)

    async def _remove(self, terminal_id: TerminalId) -> None:
        try:
            await self._do(lambda: self._store.remove(terminal_id))
        except OSError as error:
            self._unwanted.add(terminal_id)
            self._failed(error)
        else:
            self._unwanted.discard(terminal_id)

    def _failed(self, error: OSError) -> None:
        if not self._failing:
            _log.error(
                "Screens cannot be recorded: %s. Terminals go on; it is tried again.",
                error,
            )
        self._failing = True

    def _succeeded(self) -> None:
        if self._failing:
            _log.info("screens are recorded again")
        self._failing = False

    async def _do(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._disk, call)


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()):
        _log.error("the recording of screens failed", exc_info=error)


def _meta(told: HostTerminal, picture: Picture, offset: int) -> RecordMeta:
    return RecordMeta(
        terminal_id=told.terminal_id,
        cols=picture.cols,
        rows=picture.rows,
        project_id=told.project_id,
        name=told.name,
        title=told.title,
        started_at=told.started_at,
        ended_at=told.ended_at,
        exit_status=told.exit_status,
        saved_at=datetime.now(UTC),
        offset=offset,
        last_output_at=told.last_output_at,
        last_input_at=told.last_input_at,
        bell_at=told.bell_at,
        sandbox=told.sandbox,
    )
