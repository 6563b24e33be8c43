"""Events of the host on their way to one watcher, merged while it is busy."""

import asyncio

from sidestage.terminals.model import HostEvent, HostEventKind

_LINK = (HostEventKind.CONNECTED, HostEventKind.DISCONNECTED)


class EventQueue:
    """Holds at most one event a terminal and one about the connection.

    So it needs no limit: a watcher that falls behind sees each terminal's newest state.
    """

    def __init__(self) -> None:
        self._events: dict[str, HostEvent] = {}
        self._something = asyncio.Event()

    def put(self, event: HostEvent) -> None:
        """Add *event* behind the others; what it overtakes is forgotten."""
        if event.kind is HostEventKind.CONNECTED:
            self._events.clear()  # the list it carries is newer than all of them
        key = "" if event.kind in _LINK else event.terminals[0].terminal_id
        self._events.pop(key, None)
        self._events[key] = event
        self._something.set()

    async def take(self) -> list[HostEvent]:
        """Return what there is, at least one event."""
        await self._something.wait()
        self._something.clear()
        events, self._events = list(self._events.values()), {}
        return events
