"""Line 16, first half: ten clients at once, and never two processes.

A hundred rounds are run by `benchmarks/resume_race.py`.
"""

from pathlib import Path

import pytest

from tests.e2e.resume.bench import ResumeBench
from tests.e2e.resume.crowd import race_once

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(180)]

ROUNDS = 5


def test_of_ten_clients_at_once_one_gets_the_only_process(tmp_path: Path) -> None:
    """Five rounds, each closed again; the losers are told why, or which terminal."""
    with ResumeBench.open(tmp_path) as bench:
        session = bench.say_headless("first words")
        before = session.transcript.read_bytes()
        for _ in range(ROUNDS):
            race_once(bench, session)
        assert session.transcript.read_bytes().startswith(before)
        assert bench.claude.transcripts() == [session.transcript]
