"""How many connections the network may hold, and which of them goes when all are taken.

Connecting needs no token, so whoever can reach the port could take every descriptor of
the process, and with them the control socket, the database and the terminals.
"""

import asyncio
import logging
import resource
import time
from collections.abc import Callable
from typing import Final

DESCRIPTORS_WANTED: Final = 65_536
"""Far more than all limits of ours together; the usual soft limit is 1,024."""
DESCRIPTORS_KEPT: Final = 512
"""For all but the network: the control socket, hooks, database, watched files, and a
connection to the host for each of 256 terminal clients."""
CONNECTIONS_LIMIT: Final = 4096
"""On the network: twice the sockets and streams that `Limits.connections` admits."""
CONNECTIONS_AT_LEAST: Final = 64
"""However few descriptors there are: less than this serves nobody."""
WARN_AGAIN_SECONDS: Final = 60.0
"""Between two lines in the log about a full house: a flood must not fill the disk."""

_log = logging.getLogger(__name__)


def descriptor_limit() -> int:
    """Return this process's soft limit of open files, which is what children get."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_descriptor_limit() -> int:
    """Raise this process's soft limit of open files; return what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    wanted = DESCRIPTORS_WANTED if hard == endless else min(hard, DESCRIPTORS_WANTED)
    if soft == endless:
        return DESCRIPTORS_WANTED
    if soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:  # macOS has another limit below the hard one
        _log.warning("At most %d files can be open: %s", soft, error)
        return soft
    return wanted


def connections_limit(descriptors: int) -> int:
    """Return how many of that many descriptors the network's connections may take."""
    return max(
        CONNECTIONS_AT_LEAST, min(CONNECTIONS_LIMIT, descriptors - DESCRIPTORS_KEPT)
    )


class Doorway:
    """The connections of the network by what they have shown.

    When all places are taken the oldest stranger goes, which has sent no whole request;
    then the one that has been idle longest; and if every one is at work, the newcomer.
    """

    def __init__(
        self, limit: int, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = limit
        self._monotonic = monotonic
        self._strangers: dict[asyncio.Transport, None] = {}
        self._idle: dict[asyncio.Transport, None] = {}
        self._at_work: set[asyncio.Transport] = set()
        self._quiet_until = float("-inf")

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._strangers) + len(self._idle) + len(self._at_work)

    def enter(self, newcomer: asyncio.Transport) -> None:
        """Count *newcomer*, as a stranger; end another, or it, if there is no place."""
        if len(self) >= self.limit:
            self._warn()
            victim = next(iter(self._strangers or self._idle), newcomer)
            self.leave(victim)
            victim.abort()
            if victim is newcomer:
                return
        self._strangers[newcomer] = None

    def at_work(self, transport: asyncio.Transport) -> None:
        """Note that a whole request came on *transport* and is being answered."""
        if self._forget(transport):
            self._at_work.add(transport)

    def idle(self, transport: asyncio.Transport) -> None:
        """Note that *transport* was answered; it may go when its place is wanted."""
        if self._forget(transport):
            self._idle[transport] = None

    def leave(self, transport: asyncio.Transport) -> None:
        """Give the place of *transport* back; one that left already has none."""
        self._forget(transport)

    def _forget(self, transport: asyncio.Transport) -> bool:
        before = len(self)
        self._strangers.pop(transport, None)
        self._idle.pop(transport, None)
        self._at_work.discard(transport)
        return len(self) < before

    def _warn(self) -> None:
        now = self._monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + WARN_AGAIN_SECONDS
            _log.warning(
                "All %d places for connections are taken; the oldest without a request "
                "goes.",
                self.limit,
            )
