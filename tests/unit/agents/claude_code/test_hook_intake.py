"""Whose an event is: what the peer proves, and nothing more."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sidestage.agents.claude_code import hook_intake
from sidestage.agents.claude_code.discovery import Discovery
from sidestage.agents.claude_code.hook_intake import (
    EVENTS_PER_SECOND,
    HookIntake,
    HookPeer,
)
from sidestage.agents.claude_code.hook_spool import parse_spooled, replay
from sidestage.ids import TerminalId
from sidestage.sessions.hook_delivery import HookDelivery
from sidestage.sessions.model import EvidenceSource, Process, SessionState
from tests.fakes.agent_records import CONVERSATION, registry
from tests.fakes.hooks import FakeHold, FakeListener
from tests.fakes.processes import DOMAIN, FakeProcesses
from tests.unit.agents.claude_code.conftest import Opener, row_id, silent

AGENT = Process(7, "70")
OTHER = "11111111-2222-3333-4444-555555555555"
TERMINAL = TerminalId("terminal:1")
LONG_AGO = {"statusUpdatedAt": 1796066338671, "updatedAt": 1796066338671}
CHILD = HookPeer(ancestors=(Process(90, "900"), Process(80, "800"), AGENT))


class Bench:
    """An intake over the discovery of a scratch home with one idle agent."""

    def __init__(self, home: Path, discovery: Discovery) -> None:
        self.home = home
        self.discovery = discovery
        self.listener = FakeListener()
        self.delivery = HookDelivery()
        self.delivery.add_listener(self.listener)
        self.intake = HookIntake(discovery.sessions, self.delivery)

    def count(self, name: str) -> int:
        return self.intake.counters()[f"hook_{name}"]


def hook(name: str = "UserPromptSubmit", conversation: str = CONVERSATION) -> bytes:
    return json.dumps({"session_id": conversation, "hook_event_name": name}).encode()


def write(folder: Path, entry: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{entry['pid']}.json").write_text(json.dumps(entry))


@pytest.fixture
def processes() -> FakeProcesses:
    return FakeProcesses(ticks={7: "70", 8: "80", 9: "90"})


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_intake, "ATTRIBUTION_SECONDS", 0.05)


@pytest.fixture
async def bench(
    tmp_path: Path, discovery: Opener, processes: FakeProcesses
) -> AsyncIterator[Bench]:
    entry = registry(7, "70", DOMAIN, status="idle") | LONG_AGO
    write(tmp_path / "sessions", entry)
    async with discovery(tmp_path, table=processes, notifier=silent) as opened:
        bench = Bench(tmp_path, opened)
        yield bench
        await bench.delivery.close()


async def test_a_child_of_the_registered_agent_speaks_for_its_session(
    bench: Bench,
) -> None:
    await bench.intake.take(hook(), CHILD)
    [event] = await bench.listener.wait_for(1)
    assert event.session_id == row_id()
    assert event.run == AGENT
    assert event.terminal_id is None
    row = bench.discovery.sessions.find(row_id())
    assert row is not None
    assert row.state is SessionState.RUNNING
    assert row.state_evidence is not None
    assert row.state_evidence.source is EvidenceSource.HOOK
    assert bench.count("events_taken") == 1


@pytest.mark.parametrize(
    "peer",
    [
        HookPeer(),
        HookPeer(ancestors=(Process(90, "900"), Process(1, "1"))),
        # The agent's pid, but of another run: the agent ended, its pid went on.
        HookPeer(ancestors=(Process(90, "900"), Process(7, "71"))),
    ],
    ids=["gone", "detached", "reused"],
)
async def test_who_is_no_child_of_the_agent_is_not_believed(
    bench: Bench, peer: HookPeer
) -> None:
    hold = FakeHold()
    await bench.intake.take(hook("PermissionRequest"), peer, hold)
    assert bench.listener.events == []
    assert hold.answers == [None]
    assert bench.count("events_unattributed") == 1


async def test_an_agents_child_cannot_speak_for_another_session(bench: Bench) -> None:
    write(
        bench.home / "sessions",
        registry(8, "80", DOMAIN, conversation=OTHER, status="idle"),
    )
    await bench.discovery.sessions.read_registry()
    await bench.intake.take(hook(conversation=OTHER), CHILD)
    # Nor can an agent that runs inside of the session's agent.
    nested = HookPeer(ancestors=(Process(90, "900"), Process(8, "80"), AGENT))
    await bench.intake.take(hook(), nested)
    assert bench.listener.events == []
    assert bench.count("events_unattributed") == 2


async def test_an_agent_that_just_registers_is_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first hook of an agent runs before its registry file exists."""
    monkeypatch.setattr(hook_intake, "ATTRIBUTION_SECONDS", 5)
    write(
        bench.home / "sessions",
        registry(9, "90", DOMAIN, conversation=OTHER, status="idle"),
    )
    peer = HookPeer(ancestors=(Process(90, "900"), Process(9, "90")))
    await bench.intake.take(hook("SessionStart", OTHER), peer)
    [event] = await bench.listener.wait_for(1)
    assert event.run == Process(9, "90")


async def test_the_end_of_a_session_that_the_agent_left_is_still_its_own(
    bench: Bench,
) -> None:
    """`/clear` registers the next conversation before the old one's hook runs."""
    write(
        bench.home / "sessions",
        registry(7, "70", DOMAIN, conversation=OTHER, status="idle"),
    )
    await bench.discovery.sessions.read_registry()
    await bench.intake.take(hook("SessionEnd"), CHILD)
    [event] = await bench.listener.wait_for(1)
    assert event.session_id == row_id()


async def test_a_terminals_socket_speaks_for_that_terminals_session_only(
    bench: Bench,
) -> None:
    private = bench.home / "private"
    write(private, registry(8, "80", DOMAIN, conversation=OTHER, status="idle"))
    bench.discovery.add_terminal(TERMINAL, private)
    await bench.discovery.sessions.read_registry()
    peer = HookPeer(terminal_id=TERMINAL)
    await bench.intake.take(hook(), peer)
    assert bench.listener.events == []
    await bench.intake.take(hook(conversation=OTHER), peer)
    [event] = await bench.listener.wait_for(1)
    assert (event.terminal_id, event.run) == (TERMINAL, Process(8, "80"))


async def test_a_sandboxs_own_registry_proves_nothing_on_the_shared_socket(
    bench: Bench,
) -> None:
    private = bench.home / "private"
    write(private, registry(8, "80", DOMAIN, conversation=OTHER, status="idle"))
    bench.discovery.add_terminal(TERMINAL, private)
    await bench.discovery.sessions.read_registry()
    peer = HookPeer(ancestors=(Process(8, "80"),))
    await bench.intake.take(hook(conversation=OTHER), peer)
    assert bench.listener.events == []


async def test_no_event_ends_a_session(bench: Bench) -> None:
    await bench.intake.take(hook("SessionEnd"), CHILD)
    await bench.listener.wait_for(1)
    row = bench.discovery.sessions.find(row_id())
    assert row is not None
    assert row.state is SessionState.IDLE


async def test_a_permission_request_comes_with_the_hook_that_waits(
    bench: Bench,
) -> None:
    hold = FakeHold()
    await bench.intake.take(hook("PermissionRequest"), CHILD, hold)
    await bench.listener.wait_for(1)
    assert bench.listener.holds == [hold]
    assert hold.answers == []


async def test_what_is_no_request_or_cannot_be_shown_whole_is_not_held(
    bench: Bench,
) -> None:
    stop, large = FakeHold(), FakeHold()
    await bench.intake.take(hook("Stop"), CHILD, stop)
    big = json.loads(hook("PermissionRequest")) | {"tool_input": "x" * 70_000}
    await bench.intake.take(json.dumps(big).encode(), CHILD, large)
    events = await bench.listener.wait_for(2)
    assert bench.listener.holds == []
    assert stop.answers == large.answers == [None]
    assert "tool_input" not in events[1].payload
    assert bench.count("payloads_cut") == 1


async def test_events_over_the_rate_are_dropped_and_counted(
    bench: Bench,
) -> None:
    now = datetime.now(UTC)
    intake = HookIntake(bench.discovery.sessions, bench.delivery, clock=lambda: now)
    for _ in range(EVENTS_PER_SECOND + 3):
        await intake.take(hook(), CHILD)
    assert intake.counters()["hook_events_over_rate"] == 3
    assert intake.counters()["hook_events_taken"] == EVENTS_PER_SECOND


async def test_torn_bytes_are_counted(bench: Bench) -> None:
    await bench.intake.take(hook()[:-1], CHILD)
    assert bench.count("events_bad") == 1


async def test_the_registry_overrules_a_hook_that_it_does_not_confirm(
    bench: Bench,
) -> None:
    """A Stop hook that another hook takes back left the session idle for ever."""
    past = HookIntake(
        bench.discovery.sessions,
        bench.delivery,
        clock=lambda: datetime.now(UTC) - timedelta(seconds=5),
    )
    now = int(datetime.now(UTC).timestamp() * 1000)
    entry = registry(7, "70", DOMAIN, status="busy")
    times = {"statusUpdatedAt": now - 9_000, "updatedAt": now - 9_000}
    write(bench.home / "sessions", entry | times)
    await bench.discovery.sessions.read_registry()
    await past.take(hook("Stop"), CHILD)
    row = bench.discovery.sessions.find(row_id())
    assert row is not None
    assert row.state is SessionState.IDLE
    await bench.discovery.sessions.read_registry()
    row = bench.discovery.sessions.find(row_id())
    assert row is not None
    assert row.state is SessionState.RUNNING


# The spool.


def spool(folder: Path, number: int, data: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:020d}-{7:010d}-00000000.event"
    path.write_bytes(data)
    return path


async def test_the_spool_is_applied_in_order_once_and_emptied(bench: Bench) -> None:
    folder = bench.home / "spool"
    header = b'{"v":1,"at":1796065033465}\n'
    spool(folder, 3, header + hook("Stop"))
    spool(folder, 1, header + hook("SessionStart"))
    spool(folder, 2, header + hook("UserPromptSubmit"))
    spool(folder, 4, header + hook(conversation=OTHER))
    spool(folder, 5, header + hook()[:-3])
    spool(folder, 6, b'{"v":1')
    await replay(folder, bench.intake)
    await replay(folder, bench.intake)
    names = [it.payload["hook_event_name"] for it in bench.listener.events]
    assert names == ["SessionStart", "UserPromptSubmit", "Stop"]
    assert all(it.was_spooled and it.run is None for it in bench.listener.events)
    assert list(folder.iterdir()) == []
    assert bench.count("spool_torn") == 2
    assert bench.count("events_unattributed") == 1


async def test_links_pipes_and_foreign_names_in_the_spool_are_no_events(
    bench: Bench,
) -> None:
    folder = bench.home / "spool"
    real = spool(folder, 1, b'{"v":1,"at":1}\n' + hook()).rename(bench.home / "x")
    (folder / f"{2:020d}-{7:010d}-00000000.event").symlink_to(real)
    (folder / ".half").write_bytes(b"")
    await replay(folder, bench.intake)
    await replay(bench.home / "absent", bench.intake)
    assert bench.listener.events == []
    assert [it.name for it in folder.iterdir()] == [".half"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}\nx",
        b'{"v":2,"at":1}\nx',
        b'{"v":1,"at":1}\n',
        b'{"v":1,"at":"1"}\nx',
        b'{"v":1,"at":%d}\nx' % 10**17,
    ],
)
def test_a_file_that_is_no_event_is_none(data: bytes) -> None:
    assert parse_spooled(data) is None
