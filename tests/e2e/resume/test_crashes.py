"""Line 16, second half: the server is killed at each step of a resume.

After the restart there is one terminal or none, and host and list agree on it.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sidestage.terminals.model import HostTerminal
from terminal_host.gateway.host_client import open_host
from tests.e2e.real_claude import Json
from tests.e2e.resume.bench import Conversation, ResumeBench, resumed_processes
from tests.e2e.resume.faulty_server import STEPS
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResumeBench]:
    with ResumeBench.open(tmp_path_factory.mktemp("crash"), faulty=True) as bench:
        yield bench


@pytest.mark.parametrize("step", STEPS)
def test_after_a_crash_one_terminal_or_none_is_known_to_both(
    bench: ResumeBench, step: str
) -> None:
    """Killed before the host was asked: none. After it had started: one."""
    session = bench.say_headless(f"before {step}")
    kill_during_resume(bench, session, step)
    bench.server.start()
    known = settled(bench)
    if step in {"before-stored", "stored"}:
        assert known == []
    if step in {"host-started", "row-written"}:
        assert len(known) == 1
    assert len(resumed_processes(session)) == len(known)
    # What private files there are belong to a terminal.
    wait_for(
        lambda: private_folders(bench) == set(known), "no private files are left over"
    )

    # The client asks again with its key, and gets that terminal or starts one.
    again = bench.server.resume(session.id, key=step)
    assert again["__typename"] == "ResumeOutsideSessionPayload", again
    terminal_id = again["terminal"]["id"]
    assert again["terminal"]["name"] == f"before {step} (resumed)"
    assert known in ([], [terminal_id])
    wait_for(lambda: len(resumed_processes(session)) == 1, "one process runs")
    bench.wait_row(session.id, lambda row: is_linked(row, terminal_id))
    assert done_resumes(bench, session) == 1
    with bench.server.attach(again["ticket"]) as client:
        client.wait_for(f"Stub answer to: before {step}")
    bench.server.close_terminal(terminal_id)
    bench.wait_ended(session)
    assert settled(bench) == []
    wait_for(lambda: private_folders(bench) == set(), "private files are gone")


def kill_during_resume(bench: ResumeBench, session: Conversation, step: str) -> None:
    bench.kill_at(step)
    with pytest.raises(httpx.TransportError):
        bench.server.resume(session.id, key=step)
    assert bench.server.stop() < 0


def settled(bench: ResumeBench) -> list[str]:
    """Return the terminals' ids once host and list agree on them."""
    wait_for(
        lambda: listed_ids(bench) == hosted_ids(bench), "the host and the list agree"
    )
    return listed_ids(bench)


def listed_ids(bench: ResumeBench) -> list[str]:
    terminals = bench.terminals()
    assert {it["state"] for it in terminals} <= {"RUNNING"}
    return sorted(it["id"] for it in terminals)


def hosted_ids(bench: ResumeBench) -> list[str]:
    return sorted(it.terminal_id for it in asyncio.run(hosted(bench.server.state_dir)))


async def hosted(state_dir: Path) -> tuple[HostTerminal, ...]:
    async with open_host(state_dir, start=False) as host:
        return await host.list_terminals()


def private_folders(bench: ResumeBench) -> set[str]:
    return {path.name for path in (bench.server.state_dir / "terminals").glob("*")}


def is_linked(row: Json, terminal_id: str) -> bool:
    return row["terminal"] is not None and row["terminal"]["id"] == terminal_id


def done_resumes(bench: ResumeBench, session: Conversation) -> int:
    data = bench.server.query(
        "{ auditLog(first: 50) { nodes { action outcome targetId } } }"
    )
    wanted = {"action": "session.resume", "outcome": "DONE", "targetId": session.id}
    return list(data["auditLog"]["nodes"]).count(wanted)
