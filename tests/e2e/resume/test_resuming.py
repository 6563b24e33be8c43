"""A session that was ended by hand goes on in a terminal, and ends with it."""

import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.e2e.real_claude import READY
from tests.e2e.resume.bench import (
    FEED,
    SECOND,
    Conversation,
    ResumeBench,
    resumed_processes,
    say,
)
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(180)]


def test_a_session_ended_by_hand_is_offered_for_resume_by_push(tmp_path: Path) -> None:
    """Line 1: `/exit` turns the row ENDED within a second, resume available."""
    with ResumeBench.open(tmp_path) as bench, bench.server.follow(FEED) as feed:
        with bench.keyboard("first words") as terminal:
            terminal.wait_for("Stub answer")
            bench.wait_idle()
            feed.until(lambda: [it["state"] for it in feed.rows.values()] == ["IDLE"])
            terminal.send("/exit\r")
            assert terminal.wait_end() == 0
        [session_id] = feed.rows
        feed.until(lambda: feed.rows[session_id]["state"] == "ENDED", seconds=SECOND)
        assert feed.rows[session_id]["resume"] == {"available": True, "refusal": None}


def test_a_resumed_session_goes_on_in_its_own_transcript(tmp_path: Path) -> None:
    """Lines 2, 3, 11 and 15: one sandboxed process, the same file, closed again."""
    with ResumeBench.open(tmp_path) as bench:
        session = bench.begin_and_exit()
        started = bench.server.resume(session.id, cols=93, rows=31)
        assert started["__typename"] == "ResumeOutsideSessionPayload", started
        terminal_id = started["terminal"]["id"]
        assert started["terminal"]["name"] == "first words (resumed)"
        [process] = wait_for(lambda: resumed_processes(session), "the agent runs")
        assert_it_runs_as_asked(bench, process)
        assert_it_is_sandboxed_and_audited(bench, session, process)
        before = session.transcript.read_bytes()
        with bench.server.attach(started["ticket"], cols=93, rows=31) as client:
            client.wait_for("first words")
            client.wait_for("Stub answer to: first words")
            row = bench.wait_row(session.id, lambda row: row["state"] == "IDLE")
            assert row["terminal"]["id"] == terminal_id
            say(client, session, "and on")
            client.wait_for("Stub answer to: and on")
        wait_for(
            lambda: b"Stub answer to: and on" in session.transcript.read_bytes(),
            "the reply stands in the same transcript",
        )
        assert session.transcript.read_bytes().startswith(before)
        assert bench.claude.transcripts() == [session.transcript]
        assert resumed_processes(session) == [process]
        close_and_resume_again(bench, session, terminal_id, process)


def assert_it_runs_as_asked(bench: ResumeBench, process: psutil.Process) -> None:
    assert Path(process.cwd()) == bench.project
    # Job control works, so it leads the foreground of a terminal of that size.
    assert process.terminal() is not None
    terminal = Path(str(process.terminal()))
    with terminal.open("rb") as tty:
        assert tuple(termios.tcgetwinsize(tty.fileno())) == (31, 93)


def assert_it_is_sandboxed_and_audited(
    bench: ResumeBench, session: Conversation, process: psutil.Process
) -> None:
    assert any(parent.name() == "bwrap" for parent in process.parents())
    data = bench.server.query(
        "{ auditLog(first: 20) { nodes { action outcome targetId detail } } }"
    )
    entries = data["auditLog"]["nodes"]
    starts = [it for it in entries if it["action"] == "session.resume"]
    assert [it["outcome"] for it in starts] == ["DONE", "BEGUN"]  # the newest first
    assert {it["targetId"] for it in starts} == {session.id}
    entry = starts[0]
    assert "sandbox=bubblewrap" in entry["detail"]


def close_and_resume_again(
    bench: ResumeBench,
    session: Conversation,
    terminal_id: str,
    process: psutil.Process,
) -> None:
    closed = bench.server.close_terminal(terminal_id)
    assert closed["__typename"] == "CloseTerminalPayload", closed
    assert not process.is_running()
    bench.wait_ended(session)
    row = bench.row(session.id)
    assert (row["terminal"], row["resume"]["available"]) == (None, True)
    # What its private files were is gone too.
    wait_for(lambda: private_folders(bench) == [], "the private files are removed")
    again = bench.server.resume(session.id)
    assert again["__typename"] == "ResumeOutsideSessionPayload", again
    assert again["terminal"]["id"] != terminal_id
    with bench.server.attach(again["ticket"]) as client:
        client.wait_for("Stub answer to: and on")


def private_folders(bench: ResumeBench) -> list[Path]:
    return list((bench.server.state_dir / "terminals").glob("*"))


def test_nothing_of_ours_touches_the_original_or_its_transcript(tmp_path: Path) -> None:
    """Line 15: the original is never signalled; the resumed `claude` alone writes."""
    with ResumeBench.open(tmp_path, faulty=True) as bench:
        with bench.keyboard("first words") as terminal:
            terminal.wait_for("Stub answer")
            bench.wait_idle()
            [transcript] = bench.claude.transcripts()
            session_id = bench.row_id(transcript.stem)
            for _ in range(3):
                refused = bench.server.resume(session_id)
                assert refused["code"] == "OUTSIDE_SESSION_LIVE", refused
            # It answers as before, and ends by itself: no signal reached it.
            terminal.wait_for(READY)
            terminal.send("still here\r")
            terminal.wait_for("Stub answer to: still here")
            terminal.send("/exit\r")
            assert terminal.wait_end() == 0
        session = bench.conversation_of(transcript)
        before = written(transcript)
        with bench.hold_at("stored") as hold, ThreadPoolExecutor() as threads:
            asked = threads.submit(bench.server.resume, session.id)
            hold.wait_reached()
            # Everything of ours has happened but the start itself.
            assert written(transcript) == before
            hold.release()
            started = asked.result()
        with bench.server.attach(started["ticket"]) as client:
            client.wait_for("Stub answer to: still here")
        bench.server.close_terminal(started["terminal"]["id"])
        after = written(transcript)
        bench.wait_ended(session)
        bench.server.restart()
        bench.wait_ended(session)
        assert written(transcript) == after


def written(file: Path) -> tuple[int, int, int, bytes]:
    """Return what shows that a file was written: inode, time, size, content."""
    status = file.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size, file.read_bytes()
