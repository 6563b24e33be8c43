"""`sidestage demo`: everything moves, and nothing of it stays."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.e2e.demo.running_demo import demo
from tests.waiting import wait_for

EVERY_STATE = {"RUNNING", "ASKING", "IDLE", "ENDED"}
MINUTE_SECONDS = 60.0
FEED = """subscription { outsideSessionFeed {
  kind more removedIds upserts { id state name waitingFor { kind } } } }"""


def processes_below(folder: Path) -> list[psutil.Process]:
    """Return every process that was started with a word that names *folder*."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in word for word in process.info["cmdline"] or ())
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_every_state_is_seen_within_a_minute_and_nothing_stays(
    tmp_path: Path, number: signal.Signals
) -> None:
    with demo(tmp_path) as running:
        with running.follow(FEED) as feed:
            feed.until(
                lambda: {state for _, state in feed.history} >= EVERY_STATE,
                seconds=MINUTE_SECONDS,
            )
            feed.until(lambda: kinds_asked(feed.rows) >= {"PERMISSION", "QUESTION"})
        assert (
            "demo"
            in running.query("{ server { capabilities } }")["server"]["capabilities"]
        )
        stage = running.stage
        assert processes_below(stage)
        assert running.stop(number) == 0
    wait_for(lambda: not processes_below(stage), "its processes end")
    assert not stage.exists()


def kinds_asked(rows: dict[str, dict[str, object]]) -> set[object]:
    """Return what the sessions wait for now."""
    waiting = [row["waitingFor"] for row in rows.values()]
    return {it["kind"] for it in waiting if isinstance(it, dict)}


def test_its_port_can_be_chosen_and_its_failure_is_told(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="stage-", dir="/tmp") as temporary:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "sidestage", "demo", "--port", "70000"],
            env={
                "HOME": str(tmp_path),
                "PATH": os.environ["PATH"],
                "TMPDIR": temporary,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode != 0
        assert "did not start" in done.stderr
        assert "Traceback" not in done.stderr
        assert not list(Path(temporary).iterdir())


def test_a_folder_that_is_too_deep_for_sockets_is_told_with_what_to_do(
    tmp_path: Path,
) -> None:
    """The server's own sentence told to name a state folder, which demo cannot."""
    deep = tmp_path / ("deep" * 30)
    deep.mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sidestage", "demo"],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TMPDIR": str(deep)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert "Set TMPDIR to a shorter one" in done.stderr
    assert not list(deep.iterdir())
