"""Runs the terminal host: `python -m terminal_host.host --state-dir DIR`."""

import argparse
import asyncio
import fcntl
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from sidestage.ids import TerminalId
from terminal_host.host.engines import ENGINE_NAME
from terminal_host.host.leftovers import end_leftovers
from terminal_host.host.memory import return_freed_memory
from terminal_host.host.ports import Confiner
from terminal_host.host.processes import become_subreaper
from terminal_host.host.record_format import RECORD_LIMIT_BYTES, RecordMeta
from terminal_host.host.recorder import RECORD_SECONDS, Recorder
from terminal_host.host.records import (
    FOLDER_NAME,
    RECORDS_LIMIT,
    RecordLimits,
    RecordStore,
)
from terminal_host.host.sandbox import BubblewrapConfiner
from terminal_host.host.server import HostServer, open_server
from terminal_host.host.terminal import HELD_LIMIT_BYTES
from terminal_host.host.terminals import (
    ENDED_LIMIT,
    RUNNING_LIMIT,
    HostedTerminals,
    HostLimits,
)
from terminal_host.screen import make_engine
from terminal_host.wire import (
    BESIDE_SOCKET_NAME,
    PROTOCOL_VERSION,
    SOCKET_NAME,
    SOCKET_PATH_LIMIT_BYTES,
)

LOCK_NAME: Final = "host.lock"
VERSION_LOCK_NAME: Final = f"host-v{PROTOCOL_VERSION}.lock"
IDLE_SECONDS: Final = 60.0
"""Without a terminal and without a client, a host is of no use to anybody."""
STOP_SECONDS: Final = 8.0
"""A stop is bounded: service managers kill after 10 s or more."""

_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE)
_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the host until it is told to stop or idle; return the exit status."""
    options = _parse(arguments)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    if options.ready_fd is not None:
        os.set_inheritable(options.ready_fd, False)  # noqa: FBT003  # os's own way
    name = BESIDE_SOCKET_NAME if options.beside else SOCKET_NAME
    path = options.state_dir / name
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT_BYTES:
        print(
            f"The socket's path {path} is longer than {SOCKET_PATH_LIMIT_BYTES} bytes. "
            "Choose a shorter state folder.",
            file=sys.stderr,
        )
        return 2
    if options.descriptors is not None:
        _limit_descriptors(options.descriptors)
    os.chdir("/")  # a long-lived process keeps no folder in use
    with _lock(options.state_dir, beside=options.beside) as held:
        if not held:
            _log.info("another host runs for this state folder")
            return 0
        become_subreaper()
        return_freed_memory()
        end_leftovers(options.state_dir / "terminals", spared=options.spare)
        limits = RecordLimits(
            record_bytes=options.record_bytes, records=options.records_limit
        )
        store = RecordStore(options.state_dir / FOLDER_NAME, limits)
        asyncio.run(
            _serve(
                options,
                path,
                BubblewrapConfiner(allow_root=options.allow_root),
                store,
                _open_records(store, spared=options.spare),
            )
        )
    return 0


def _limit_descriptors(soft: int) -> None:
    """Set our soft limit of open files, and with it that of every terminal.

    `serve` raises its own; programs that use select(2) end above 1,024 open files.
    """
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    except (OSError, ValueError) as error:
        _log.warning("At most %d files can be open: %s", before, error)


def _open_records(
    store: RecordStore, *, spared: Collection[TerminalId]
) -> tuple[RecordMeta, ...]:
    """Return what earlier hosts recorded; without it the start goes on all the same."""
    try:
        return tuple(meta for meta in store.open() if meta.terminal_id not in spared)
    except OSError as error:
        _log.error("The records of screens cannot be read: %s", error)
        return ()


async def _serve(
    options: argparse.Namespace,
    path: Path,
    confiner: Confiner,
    store: RecordStore,
    past: tuple[RecordMeta, ...],
) -> None:
    stopping = asyncio.Event()
    terminals = HostedTerminals(
        options.state_dir / "terminals",
        confiner,
        make_engine,
        recorder=Recorder(store, record_seconds=options.record_seconds),
        limits=HostLimits(
            running=options.running_limit,
            ended=options.ended_limit,
            held_bytes=options.held_bytes,
        ),
    )
    terminals.restore(past)
    _handle_signals(terminals.reap, stopping.set)
    server = HostServer(terminals, engine=ENGINE_NAME, stop=stopping.set)
    async with open_server(path, server):
        _log.info("ready, engine %s", ENGINE_NAME)
        if options.ready_fd is not None:
            os.close(options.ready_fd)  # whoever started us waits for its end
        idle = asyncio.create_task(
            _wait_for_idle(server, terminals, options.idle_seconds, stopping)
        )
        await stopping.wait()
        idle.cancel()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await terminals.close()
        except TimeoutError:
            _log.warning("some terminals did not end in time")
    _log.info("stopped")


async def _wait_for_idle(
    server: HostServer,
    terminals: HostedTerminals,
    idle_seconds: float,
    stopping: asyncio.Event,
) -> None:
    """Stop once nobody is connected and nothing runs for *idle_seconds*."""
    while True:
        server.idle_changed.clear()
        try:
            async with asyncio.timeout(idle_seconds):
                await server.idle_changed.wait()
        except TimeoutError:
            running = any(terminal.running for terminal in terminals.values())
            if not server.connections and not running:
                _log.info("idle")
                stopping.set()
                return


def _handle_signals(reap: Callable[[], None], stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, reap)
    loop.add_signal_handler(signal.SIGTERM, stop)
    for number in _IGNORED:
        # Caught, not ignored: an ignored signal would be inherited by every program.
        loop.add_signal_handler(number, lambda: None)
    # The loop learns of signals by a byte each. When a terminal's programs die by the
    # thousand the bytes are too many: no message for each, as one is enough to wake it.
    bytes_to = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(bytes_to, warn_on_full_buffer=False)
    # SIGTERM must come through although its byte found no room.
    signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(stop))


@contextmanager
def _lock(state_dir: Path, *, beside: bool) -> Iterator[bool]:
    """Yield whether this process may be the folder's host, until the block ends.

    There is one of each version, and *beside* it an older one at most: whoever is not
    beside another holds the lock of all versions, too.
    """
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as stack:
        names = (VERSION_LOCK_NAME,) if beside else (LOCK_NAME, VERSION_LOCK_NAME)
        files = [stack.enter_context((state_dir / name).open("a")) for name in names]
        try:
            for file in files:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="terminal_host.host", description=__doc__)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--idle-seconds", type=float, default=IDLE_SECONDS)
    parser.add_argument("--running-limit", type=int, default=RUNNING_LIMIT)
    parser.add_argument("--ended-limit", type=int, default=ENDED_LIMIT)
    parser.add_argument("--held-bytes", type=int, default=HELD_LIMIT_BYTES)
    parser.add_argument("--records-limit", type=int, default=RECORDS_LIMIT)
    parser.add_argument("--record-seconds", type=float, default=RECORD_SECONDS)
    parser.add_argument("--record-bytes", type=int, default=RECORD_LIMIT_BYTES)
    parser.add_argument("--descriptors", type=int, default=None)
    parser.add_argument("--allow-root", action="store_true")
    parser.add_argument("--ready-fd", type=int, default=None)
    # A host of an older version keeps these terminals, and the usual socket.
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--spare", action="append", default=[], metavar="TERMINAL")
    options = parser.parse_args(arguments)
    options.state_dir = options.state_dir.absolute()
    return options


if __name__ == "__main__":
    sys.exit(main())
