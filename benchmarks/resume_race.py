"""Lets ten clients resume one session at once, a hundred times; then one long hold.

    SIDESTAGE_TEST_CLAUDE=.tools/node_modules/.bin/claude \
        python -m benchmarks.resume_race --rounds 100 --hold-seconds 60

Runs the real Claude Code against the stub model, as an ordinary user. In each round one
client must win and one process run; the winner is closed again. In the hold the start
stands still before the host is called, for as long as said: then it must still open.
Prints how often each answer came; exits with 1 at the first round that is wrong.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.resume.bench import Conversation, ResumeBench, resumed_processes
from tests.e2e.resume.crowd import race_once


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--hold-seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with ResumeBench.open(root, faulty=True) as bench:
            bench.server.patience_seconds += options.hold_seconds
            session = bench.say_headless("first words")
            race(bench, session, options.rounds)
            hold(bench, session, options.hold_seconds)
    return 0


def race(bench: ResumeBench, session: Conversation, rounds: int) -> None:
    began = time.monotonic()
    answers: Counter[str] = Counter()
    for _ in range(rounds):
        answers += race_once(bench, session)
    print(f"{rounds} rounds in {time.monotonic() - began:.1f} s, one process in each")
    for name, count in sorted(answers.items()):
        print(f"{count:5}  {name}")


def hold(bench: ResumeBench, session: Conversation, seconds: float) -> None:
    with bench.hold_at("stored") as held, ThreadPoolExecutor() as threads:
        began = time.monotonic()
        asked = threads.submit(bench.server.resume, session.id)
        held.wait_reached()
        threading.Event().wait(seconds)
        busy = bench.server.resume(session.id)
        held.release()
        answer = asked.result()
    assert busy["code"] == "OUTSIDE_RESUME_BUSY", busy
    assert answer["__typename"] == "ResumeOutsideSessionPayload", answer
    with bench.server.attach(answer["ticket"]) as client:
        client.wait_for("Stub answer to: first words")
    assert len(resumed_processes(session)) == 1
    print(f"a start held for {seconds:g} s opened {time.monotonic() - began:.1f} s on")


if __name__ == "__main__":
    sys.exit(main())
