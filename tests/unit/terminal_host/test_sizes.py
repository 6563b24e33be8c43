"""Who decides the size, and what a watcher that is busy misses."""

from dataclasses import dataclass, field, replace

from sidestage.ids import TerminalId
from sidestage.terminals.model import HostEvent, HostEventKind
from terminal_host.gateway.host_events import EventQueue
from terminal_host.gateway.sizes import Size, SizeOwners
from tests.unit.terminal_host.test_host_messages import TERMINAL

HERE = TerminalId("terminal:here")


@dataclass(eq=False)
class Client:
    size: Size | None = None
    told: int = 0

    def ownership_changed(self) -> None:
        self.told += 1


@dataclass
class Host:
    sizes: list[Size] = field(default_factory=list)

    def resize(self, terminal_id: TerminalId, size: Size) -> None:
        assert terminal_id == HERE
        self.sizes.append(size)


def test_attaching_and_resizing_decide_nothing() -> None:
    host, client = Host(), Client((40, 20))
    owners = SizeOwners(host.resize)
    owners.resized(HERE, client, (41, 21))
    assert host.sizes == []
    assert not owners.owns(HERE, client)


def test_typing_takes_the_size_once() -> None:
    host, client = Host(), Client((40, 20))
    owners = SizeOwners(host.resize)
    for _ in range(3):
        owners.typed(HERE, client)
    assert host.sizes == [(40, 20)]
    owners.resized(HERE, client, (50, 20))
    assert host.sizes[1:] == [(50, 20)]


def test_whoever_never_said_a_size_owns_none_by_typing() -> None:
    host, client = Host(), Client()
    owners = SizeOwners(host.resize)
    owners.typed(HERE, client)
    assert host.sizes == []
    owners.claimed(HERE, client, (10, 10))
    assert host.sizes == [(10, 10)]


def test_the_last_who_typed_owns_it_and_both_are_told() -> None:
    host, desk, phone = Host(), Client((120, 40)), Client((40, 20))
    owners = SizeOwners(host.resize)
    owners.typed(HERE, desk)
    owners.typed(HERE, phone)
    owners.resized(HERE, desk, (121, 40))
    assert host.sizes == [(120, 40), (40, 20)]
    assert (desk.told, phone.told) == (2, 1)
    owners.typed(HERE, desk)
    assert host.sizes[2:] == [(121, 40)]


def test_a_size_that_somebody_else_set_is_set_back_by_the_next_key() -> None:
    host, client = Host(), Client((40, 20))
    owners = SizeOwners(host.resize)
    owners.typed(HERE, client)
    owners.noted(HERE, (40, 20))
    owners.typed(HERE, client)
    owners.noted(HERE, (200, 50))
    owners.typed(HERE, client)
    assert host.sizes == [(40, 20), (40, 20)]


def test_when_the_owner_leaves_the_size_stays() -> None:
    host, client, other = Host(), Client((40, 20)), Client((10, 10))
    owners = SizeOwners(host.resize)
    owners.typed(HERE, client)
    owners.left(HERE, other)
    assert owners.owns(HERE, client)
    owners.left(HERE, client)
    assert not owners.owns(HERE, client)
    assert host.sizes == [(40, 20)]


def event(kind: HostEventKind, *, cols: int = 80) -> HostEvent:
    if kind is HostEventKind.DISCONNECTED:
        return HostEvent(kind)
    return HostEvent(kind, (replace(TERMINAL, cols=cols),))


async def test_a_busy_watcher_sees_the_newest_of_each_terminal() -> None:
    queue = EventQueue()
    for cols in range(1, 400):
        queue.put(event(HostEventKind.CHANGED, cols=cols))
    assert [e.terminals[0].cols for e in await queue.take()] == [399]


async def test_a_new_list_replaces_the_changes_before_it() -> None:
    queue = EventQueue()
    queue.put(event(HostEventKind.CHANGED))
    queue.put(event(HostEventKind.DISCONNECTED))
    queue.put(event(HostEventKind.CONNECTED))
    assert [e.kind for e in await queue.take()] == [HostEventKind.CONNECTED]
    queue.put(event(HostEventKind.CONNECTED))
    queue.put(event(HostEventKind.REMOVED))
    kinds = [e.kind for e in await queue.take()]
    assert kinds == [HostEventKind.CONNECTED, HostEventKind.REMOVED]


async def test_a_loss_comes_behind_what_was_told_before() -> None:
    queue = EventQueue()
    queue.put(event(HostEventKind.CHANGED))
    queue.put(event(HostEventKind.DISCONNECTED))
    kinds = [e.kind for e in await queue.take()]
    assert kinds == [HostEventKind.CHANGED, HostEventKind.DISCONNECTED]
