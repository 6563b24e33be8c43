"""Line 6: someone resumes the session at a keyboard while a client would.

The windows of the race, in their order: before the keyboard's `exec` (nobody can see
it), after it and before its registry file, held there by a trust dialog, after the
file; then a keyboard start just after ours.
"""

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.pty_program import PtyProgram
from tests.e2e.real_claude import READY, Json
from tests.e2e.resume.bench import (
    FEED,
    SECOND,
    Conversation,
    ResumeBench,
    find_processes,
    resumed_processes,
)
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(180)]

STOP_LIMIT_ATTEMPTS = 5
STARTING = "An agent is just starting in this folder. Try again in a moment."


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ResumeBench]:
    with ResumeBench.open(tmp_path, faulty=True) as bench:
        yield bench


@pytest.fixture
def session(bench: ResumeBench) -> Conversation:
    return bench.say_headless("first words")


def test_an_ended_row_turns_live_by_push_and_is_refused(
    bench: ResumeBench, session: Conversation
) -> None:
    """After the registry file: the row is live, so check 2 refuses."""
    with bench.server.follow(FEED) as feed:
        feed.until(lambda: session.id in feed.rows)
        assert feed.rows[session.id]["resume"]["available"] is True
        with bench.keyboard("--resume", session.conversation_id):
            feed.until(
                lambda: feed.rows[session.id]["state"] == "IDLE", seconds=3 * SECOND
            )
            assert feed.rows[session.id]["resume"]["available"] is False
            answer = bench.server.resume(session.id)
            assert answer["code"] == "OUTSIDE_SESSION_LIVE", answer
            assert len(resumed_processes(session)) == 1


def test_a_process_that_has_no_registry_file_yet_is_waited_for(
    bench: ResumeBench, session: Conversation
) -> None:
    """After the `exec`, before the file: a stopped process holds the window open."""
    with stopped_at_its_start(bench, "--resume", session.conversation_id) as keyboard:
        assert_busy(bench.server.resume(session.id))
        os.kill(keyboard.pid, signal.SIGCONT)
        keyboard.wait_for(READY)
        bench.wait_row(session.id, lambda row: row["state"] == "IDLE")
        assert bench.terminals() == []


def test_an_agent_in_the_folder_that_names_no_id_is_waited_for_too(
    bench: ResumeBench, session: Conversation
) -> None:
    """`claude -c` names no id, and may be about to go on with this very session."""
    with stopped_at_its_start(bench, "-c"):
        assert_busy(bench.server.resume(session.id))


def test_an_agent_held_by_a_trust_dialog_is_waited_for(
    bench: ResumeBench, session: Conversation
) -> None:
    """The dialog comes before the registry file, for as long as nobody answers."""
    forget_trust(bench)
    with bench.keyboard("--resume", session.conversation_id) as keyboard:
        keyboard.wait_for("trust this folder")
        assert_busy(bench.server.resume(session.id))
        assert bench.terminals() == []
    bench.claude.trust(bench.project)
    bench.wait_ended(session)
    started = bench.server.resume(session.id)
    assert started["__typename"] == "ResumeOutsideSessionPayload", started


def test_a_keyboard_that_was_about_to_exec_wins_and_ours_ends_unused(
    bench: ResumeBench, session: Conversation
) -> None:
    """Before the `exec` nobody can see it: both start, and ours yields, untouched."""
    with about_to_exec(bench, session) as keyboard:
        started = bench.server.resume(session.id)
        assert started["__typename"] == "ResumeOutsideSessionPayload", started
        wait_for(lambda: resumed_processes(session), "ours runs")
        before = session.transcript.read_bytes()
        keyboard.send("go\r")
        [terminal] = wait_for(lambda: ended(bench), "ours is ended")
        assert terminal["id"] == started["terminal"]["id"]
        assert terminal["endReason"] == "CONVERSATION_TAKEN"
        keyboard.wait_for("Stub answer to: first words")
        assert_only_the_keyboard_is_left(bench, session, keyboard)
        assert b"and on" not in session.transcript.read_bytes()[len(before) :]
        keyboard.send("and on\r")
        keyboard.wait_for("Stub answer to: and on")


@pytest.mark.parametrize("step", ["stored", "host-started"])
def test_a_keyboard_start_during_ours_makes_the_answer_a_typed_error(
    bench: ResumeBench, session: Conversation, step: str
) -> None:
    """Between the checks and the answer: ours is ended, and the client is told why."""
    with bench.hold_at(step) as hold, ThreadPoolExecutor() as threads:
        asked = threads.submit(bench.server.resume, session.id)
        hold.wait_reached()
        with bench.keyboard("--resume", session.conversation_id) as keyboard:
            keyboard.wait_for(READY)
            bench.wait_idle()
            hold.release()
            answer = asked.result()
            assert answer["__typename"] == "ConversationTaken", answer
            assert answer["code"] == "CONVERSATION_TAKEN"
            assert_only_the_keyboard_is_left(bench, session, keyboard)


def test_once_something_was_typed_both_stay_and_the_row_says_so(
    bench: ResumeBench, session: Conversation
) -> None:
    """After our first input ours is not ended any more: the row shows the conflict."""
    started = bench.server.resume(session.id)
    terminal_id = started["terminal"]["id"]
    with (
        bench.server.attach(started["ticket"]) as client,
        bench.server.follow(FEED) as feed,
    ):
        client.wait_for("Stub answer to: first words")
        client.type("ours")
        client.wait_for("ours")
        with bench.keyboard("--resume", session.conversation_id) as keyboard:
            keyboard.wait_for(READY)
            feed.until(
                lambda: feed.rows.get(session.id, {}).get("conflict"),
                seconds=3 * SECOND,
            )
            assert feed.rows[session.id]["terminal"]["id"] == terminal_id
            [terminal] = bench.terminals()
            assert terminal["state"] == "RUNNING"
            assert len(resumed_processes(session)) == 2
        feed.until(lambda: feed.rows[session.id]["conflict"] is None)


def assert_busy(answer: Json) -> None:
    assert answer["code"] == "OUTSIDE_RESUME_BUSY", answer
    assert answer["message"] == STARTING


def assert_only_the_keyboard_is_left(
    bench: ResumeBench, session: Conversation, keyboard: PtyProgram
) -> None:
    pids = {process.pid for process in resumed_processes(session)}
    assert pids == {keyboard.pid}
    bench.wait_row(
        session.id,
        lambda row: (
            (row["state"], row["conflict"], row["terminal"]) == ("IDLE", None, None)
        ),
    )


def ended(bench: ResumeBench) -> list[Json]:
    return [it for it in bench.terminals() if it["state"] == "EXITED"]


@contextmanager
def stopped_at_its_start(bench: ResumeBench, *arguments: str) -> Iterator[PtyProgram]:
    """Run the CLI, and stop it before its registry file, which comes after 0.3 s."""
    for _ in range(STOP_LIMIT_ATTEMPTS):
        with bench.keyboard(*arguments) as keyboard:
            wait_for(lambda: find_processes(*arguments), "the program is executed")
            os.kill(keyboard.pid, signal.SIGSTOP)
            if not bench.claude.registry():
                yield keyboard
                return
        wait_for(lambda: not find_processes(*arguments), "the late one is gone")
    raise AssertionError("The CLI registered each time before it could be stopped.")


def forget_trust(bench: ResumeBench) -> None:
    config = bench.claude.read_config()
    config["projects"] = {}
    bench.claude.config_file.write_text(json.dumps(config))


def about_to_exec(bench: ResumeBench, session: Conversation) -> PtyProgram:
    """Return a shell that becomes `claude --resume` once a line is typed."""
    script = 'read go; exec "$0" --permission-mode manual --resume "$1"'
    program, id_ = str(bench.claude.program), session.conversation_id
    return PtyProgram(
        ["sh", "-c", script, program, id_],
        directory=bench.project,
        environment=bench.claude.environment(),
    )
