"""Lines 6, 7, 8, 9 and 11: leave to use a tool, from a device and at the keyboard."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.requests.bench import RequestBench
from tests.e2e.requests.phone import ANSWER, AnsweringPhone
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.timeout(240)]

DIALOG = "Do you want to proceed"
HEADLESS_SECONDS = 60


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RequestBench]:
    with RequestBench.open(tmp_path_factory.mktemp("permissions")) as bench:
        yield bench


def test_allowed_from_a_device_the_tool_runs_and_the_dialog_closes(
    bench: RequestBench,
) -> None:
    with bench.asking("stub:bash(touch allowed)") as asked:
        request = asked.request
        assert (request["kind"], request["state"]) == ("PERMISSION", "PENDING")
        assert request["session"]["state"] == "ASKING"
        assert request["session"]["waitingFor"]["kind"] == "PERMISSION"
        assert request["content"]["toolName"] == "Bash"
        assert '"command":"touch allowed"' in request["content"]["inputJson"]
        assert len(request["content"]["suggestions"]) > 0
        asked.terminal.wait_for(DIALOG)
        assert not bench.made("allowed")

        answer = bench.phone.answer(request, "allow")

        assert answer["__typename"] == "AnswerRequestPayload", answer
        wait_for(lambda: bench.made("allowed"), "the tool runs")
        assert asked.terminal.wait_gone(DIALOG)
        assert asked.until_withdrawn(request) == {
            "state": "ANSWERED",
            "settledBy": "DEVICE",
            "verdict": "ALLOW",
            "hasTimedOut": False,
        }
        again = bench.phone.answer(request, "deny")
        assert again["code"] == "REQUEST_SETTLED"


def test_denied_with_a_note_the_model_gets_the_note(bench: RequestBench) -> None:
    with bench.asking("stub:bash(touch denied)") as asked:
        request = asked.request
        bench.phone.answer(request, "deny", note="Ask “Grace” first: naïve!")
        asked.wait_result("Ask “Grace” first: naïve!")
        asked.terminal.wait_for("The command has been handled")
        assert asked.until_withdrawn(request)["verdict"] == "DENY"
        assert not bench.made("denied")


@pytest.mark.parametrize(
    ("key", "name"), [("1", "by-one"), ("4", "by-four"), ("\x1b", "by-escape")]
)
def test_answered_at_the_keyboard_it_is_withdrawn(
    bench: RequestBench, key: str, name: str
) -> None:
    with bench.asking(f"stub:bash(touch {name})") as asked:
        request = asked.request
        asked.terminal.wait_for(DIALOG)
        asked.terminal.answer(key, dialog=DIALOG)
        settled = asked.until_withdrawn(request)
        assert (settled["state"], settled["settledBy"]) == ("WITHDRAWN", "KEYBOARD")
        late = bench.phone.answer(request, "allow")
        assert late["code"] == "REQUEST_SETTLED"
        if key == "1":
            wait_for(lambda: bench.made(name), "the tool runs")
        else:
            assert not bench.made(name)


def test_a_suggestion_of_the_dialog_can_be_chosen(bench: RequestBench) -> None:
    with bench.asking("stub:write(chosen.md)") as asked:
        request = asked.request
        offered = request["content"]["suggestions"]
        [index] = [
            number for number, it in enumerate(offered) if "acceptEdits" in it["json"]
        ]
        answer = bench.phone.answer(request, "allow", [index])
        assert answer["__typename"] == "AnswerRequestPayload", answer
        wait_for(lambda: bench.made("chosen.md"), "the file is written")
        asked.terminal.wait_for("accept edits on")


def test_what_is_not_bound_to_what_was_shown_sends_nothing(
    bench: RequestBench,
) -> None:
    other = AnsweringPhone.pair(bench.server)
    viewer = AnsweringPhone.pair(bench.server, scopes=("VIEW", "READ"))
    with bench.asking("stub:bash(touch refused)") as asked:
        request = asked.request
        changed = bench.phone.seal(request, "allow", shown="0" * 64)
        assert bench.phone.send(request, changed)["code"] == "REQUEST_CHANGED"
        stolen = other.seal(request, "allow")
        assert bench.phone.send(request, stolen)["code"] == "ENVELOPE_INVALID"
        elsewhere = request | {"sessionId": "outside:" + "0" * 32}
        forged = bench.phone.seal(elsewhere, "allow")
        assert bench.phone.send(request, forged)["code"] == "ENVELOPE_INVALID"
        unknown = request | {"id": "request:" + "0" * 32}
        assert bench.phone.answer(unknown, "allow")["code"] == "REQUEST_NOT_FOUND"
        good = bench.phone.seal(request, "allow")
        given = {"input": {"requestId": request["id"], "envelope": good}}
        by_admin = bench.server.query(ANSWER, given)["answerRequest"]
        assert by_admin["code"] == "DEVICE_KEY_REQUIRED"
        by_viewer = viewer.post_raw(ANSWER, given)
        assert by_viewer["errors"][0]["extensions"]["code"] == "PERMISSION_DENIED"
        assert asked.terminal.wait_for(DIALOG)
        assert not bench.made("refused")
        assert asked.request["state"] == "PENDING"
        # None of it spoiled the good one, nor its retry.
        first, again = bench.phone.send(request, good), bench.phone.send(request, good)
        assert first == again
        wait_for(lambda: bench.made("refused"), "the tool runs")


def test_a_device_without_clear_texts_answers_what_was_sealed_for_it(
    bench: RequestBench,
) -> None:
    sealed = AnsweringPhone.pair(
        bench.server, scopes=("VIEW", "ANSWER"), content="SEALED"
    )
    with (
        bench.asking("stub:bash(touch sealed-canary)") as asked,
        sealed.follow() as feed,
    ):
        feed.until(lambda: feed.rows)
        request = feed.rows[asked.request["id"]]
        assert "canary" not in repr(feed.messages)
        assert "sealed-canary" in sealed.open(request["envelope"])["inputJson"]
        answer = sealed.answer(request, "allow")
        assert answer["__typename"] == "AnswerRequestPayload", answer
        wait_for(lambda: bench.made("sealed-canary"), "the tool runs")


def test_a_run_without_a_dialog_is_not_held(bench: RequestBench) -> None:
    with bench.phone.follow() as feed:
        run_headless(bench, "stub:bash(touch headless)")
        assert feed.rows == {}
    assert not bench.made("headless")


def test_switched_on_a_run_without_a_dialog_waits_for_a_device(
    tmp_path: Path,
) -> None:
    with (
        RequestBench.open(tmp_path, SIDESTAGE_HOLD_HEADLESS="1") as bench,
        bench.phone.follow() as feed,
        start_headless(bench, "stub:bash(touch headless)") as process,
    ):
        feed.until(lambda: feed.rows)
        [request] = feed.rows.values()
        answer = bench.phone.answer(request, "allow")
        assert answer["__typename"] == "AnswerRequestPayload", answer
        assert process.wait(HEADLESS_SECONDS) == 0
        assert bench.made("headless")


def start_headless(bench: RequestBench, prompt: str) -> "subprocess.Popen[bytes]":
    """Start the CLI as a program drives it."""
    return subprocess.Popen(
        [str(bench.claude.program), "-p", prompt],
        cwd=bench.project,
        env=bench.claude.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def run_headless(bench: RequestBench, prompt: str) -> None:
    """Let a program drive the CLI to the end of a turn."""
    with start_headless(bench, prompt) as process:
        assert process.wait(HEADLESS_SECONDS) == 0
