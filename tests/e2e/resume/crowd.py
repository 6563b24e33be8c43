"""Many clients that resume one session at the same moment."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.e2e.real_claude import Json
from tests.e2e.resume.bench import Conversation, ResumeBench, resumed_processes
from tests.waiting import wait_for

CLIENTS = 10
LOSERS = ("OUTSIDE_RESUME_BUSY", "OUTSIDE_SESSION_RESUMED")


def resume_at_once(
    bench: ResumeBench, session: Conversation, *, clients: int = CLIENTS
) -> list[Json]:
    """Let *clients* resume the session at once; return every answer."""
    together = threading.Barrier(clients)

    def ask(_: int) -> Json:
        together.wait()
        return bench.server.resume(session.id)

    with ThreadPoolExecutor(clients) as threads:
        return list(threads.map(ask, range(clients)))


def race_once(bench: ResumeBench, session: Conversation) -> "Counter[str]":
    """Let ten clients race; check that one process runs, close it again.

    Returns how often each answer came.
    """
    answers = resume_at_once(bench, session)
    won = [it for it in answers if it["__typename"] == "ResumeOutsideSessionPayload"]
    lost = [it for it in answers if it not in won]
    assert len(won) == 1, answers
    assert {it["code"] for it in lost} <= set(LOSERS), answers
    terminal_id = won[0]["terminal"]["id"]
    for answer in lost:
        if answer["code"] == "OUTSIDE_SESSION_RESUMED":
            assert answer["openTerminal"]["id"] == terminal_id
    assert [it["id"] for it in bench.terminals()] == [terminal_id]
    wait_for(lambda: resumed_processes(session), "the agent runs", seconds=60)
    bench.wait_row(session.id, lambda row: row["state"] == "IDLE")
    assert len(resumed_processes(session)) == 1
    bench.server.close_terminal(terminal_id)
    assert resumed_processes(session) == []
    bench.wait_ended(session)
    return Counter(it["__typename"] for it in answers)
