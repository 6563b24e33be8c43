"""Line 10: a start that hangs, seen by a second client.

A hold of the full 60 seconds is measured by `benchmarks/resume_race.py`.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.real_claude import Json
from tests.e2e.resume.bench import ResumeBench, resumed_processes
from tests.e2e.running_server import RESUME
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(180)]


def test_a_second_client_of_a_held_start_is_told_or_shares_it(tmp_path: Path) -> None:
    """One start; without the key "already being resumed", with it the same terminal."""
    with ResumeBench.open(tmp_path, faulty=True) as bench:
        session = bench.say_headless("first words")
        with bench.hold_at("stored") as hold, ThreadPoolExecutor() as threads:
            first = threads.submit(bench.server.resume, session.id, key="once")
            hold.wait_reached()
            busy = bench.server.resume(session.id)
            assert busy["code"] == "OUTSIDE_RESUME_BUSY", busy
            assert busy["message"] == "This session is already being resumed."
            other = bench.server.resume(session.id, key="another")
            assert other["code"] == "OUTSIDE_RESUME_BUSY", other
            reused = bench.server.resume(session.id, key="once", cols=99)
            assert reused["code"] == "IDEMPOTENCY_KEY_REUSED", reused
            same = threads.submit(bench.server.resume, session.id, key="once")
            # The row of the list tells nothing wrong meanwhile.
            row = bench.row(session.id)
            assert row["state"] == "UNKNOWN"
            assert row["resume"]["available"] is False
            assert resumed_processes(session) == []
            assert not first.done()
            assert not same.done()
            hold.release()
            assert_one_terminal(bench, first, same)
        with bench.server.attach(first.result()["ticket"]) as client:
            client.wait_for("Stub answer to: first words")
        assert len(wait_for(lambda: resumed_processes(session), "it runs")) == 1
        # Also afterwards, and also for a server that was started anew.
        bench.server.restart()
        later = bench.server.resume(session.id, key="once")
        assert later["terminal"]["id"] == first.result()["terminal"]["id"]
        with bench.server.attach(later["ticket"]) as client:
            client.wait_for("Stub answer to: first words")


def assert_one_terminal(
    bench: ResumeBench, first: "Future[Json]", same: "Future[Json]"
) -> None:
    one, two = first.result(), same.result()
    assert one["__typename"] == two["__typename"] == "ResumeOutsideSessionPayload"
    assert one["terminal"]["id"] == two["terminal"]["id"]
    assert one["ticket"]["secret"] != two["ticket"]["secret"]
    assert [it["id"] for it in bench.terminals()] == [one["terminal"]["id"]]


def test_a_client_that_hangs_up_finds_its_start_by_the_key(tmp_path: Path) -> None:
    """A phone that lost its network during the start asks again."""
    with ResumeBench.open(tmp_path, faulty=True) as bench:
        session = bench.say_headless("first words")
        with bench.hold_at("stored") as hold, ThreadPoolExecutor() as threads:
            given = {"sessionId": session.id, "cols": 100, "rows": 40}
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(
                    f"{bench.server.url}/graphql",
                    json={
                        "query": RESUME,
                        "variables": {"input": {**given, "idempotencyKey": "once"}},
                    },
                    headers={"Authorization": f"Bearer {bench.server.token}"},
                    timeout=1.0,
                )
            hold.wait_reached()
            again = threads.submit(bench.server.resume, session.id, key="once")
            hold.release()
            answer = again.result()
        assert answer["__typename"] == "ResumeOutsideSessionPayload", answer
        assert len(bench.terminals()) == 1
