"""Lines 9 and 10: two requests at once, and a server that is not there."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.requests.bench import RequestBench
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.timeout(240)]

DIALOG = "Do you want to proceed"
NOTE = "not that one"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RequestBench]:
    with RequestBench.open(tmp_path_factory.mktemp("several")) as bench:
        yield bench


def test_two_at_once_are_answered_each_for_itself(bench: RequestBench) -> None:
    with bench.asking("stub:read2") as asked:
        both = asked.requests(2)
        by_file = {it["content"]["inputJson"]: it for it in both}
        [passwd] = [it for text, it in by_file.items() if "passwd" in text]
        [group] = [it for text, it in by_file.items() if "group" in text]
        bench.phone.answer(passwd, "deny", note=NOTE)
        asked.wait_result(NOTE)
        assert asked.until_withdrawn(passwd)["verdict"] == "DENY"
        assert asked.request["id"] == group["id"]
        bench.phone.answer(group, "allow")
        asked.wait_result("root:x:0")
        asked.terminal.wait_for("Both have been handled")


def test_of_two_the_one_answered_at_the_keyboard_is_withdrawn_alone(
    bench: RequestBench,
) -> None:
    with bench.asking("stub:read2") as asked:
        both = asked.requests(2)
        asked.terminal.wait_for("1 of 2")
        asked.press("1", lambda: len(asked.feed.rows) < 2)
        left = asked.request
        [gone] = [it for it in both if it["id"] != left["id"]]
        assert bench.phone.settled(gone["id"])["settledBy"] == "KEYBOARD"
        asked.terminal.wait_for("2 of 2")
        answer = bench.phone.answer(left, "deny", note=NOTE)
        assert answer["__typename"] == "AnswerRequestPayload", answer
        asked.wait_result(NOTE)


def test_escape_withdraws_both(bench: RequestBench) -> None:
    with bench.asking("stub:read2") as asked:
        both = asked.requests(2)
        asked.terminal.wait_for("1 of 2")
        asked.terminal.answer("\x1b", dialog="1 of 2")
        for request in both:
            assert asked.until_withdrawn(request)["settledBy"] == "KEYBOARD"


def test_one_command_after_the_other_makes_one_request_after_the_other(
    bench: RequestBench,
) -> None:
    with bench.asking("stub:bash2(touch one)") as asked:
        first = asked.request
        bench.phone.answer(first, "deny", note=NOTE)
        asked.feed.until(lambda: asked.feed.rows.keys() - {first["id"]})
        second = asked.request
        assert "second" in second["content"]["inputJson"]
        bench.phone.answer(second, "allow")
        asked.terminal.wait_for("Both done")
        assert bench.made("one")


def test_a_waiting_hook_comes_back_to_a_new_server(tmp_path: Path) -> None:
    with (
        RequestBench.open(tmp_path) as bench,
        bench.asking("stub:bash(touch after)") as asked,
    ):
        request = asked.request
        bench.server.restart(signal.SIGKILL)
        with bench.phone.follow() as feed:
            assert request["id"] in feed.rows
            feed.until(lambda: feed.rows[request["id"]]["state"] == "PENDING")
            answer = bench.phone.answer(request, "allow")
        assert answer["__typename"] == "AnswerRequestPayload", answer
        wait_for(lambda: bench.made("after"), "the tool runs")
        assert asked.terminal.wait_gone(DIALOG)


def test_what_was_answered_while_the_server_was_away_is_no_phantom(
    tmp_path: Path,
) -> None:
    with (
        RequestBench.open(tmp_path) as bench,
        bench.asking("stub:bash(touch away)") as asked,
    ):
        request = asked.request
        asked.terminal.wait_for(DIALOG)
        bench.server.stop()
        asked.terminal.answer("\x1b", dialog=DIALOG)
        asked.wait_result("doesn't want to proceed")
        bench.server.start()
        with bench.phone.follow() as feed:
            assert feed.rows == {}
        settled = bench.phone.settled(request["id"])
        assert settled["state"] == "WITHDRAWN"
        assert not bench.made("away")


def test_an_agent_that_is_killed_takes_its_request_along(
    bench: RequestBench,
) -> None:
    with bench.asking("stub:bash(touch killed)") as asked:
        request = asked.request
        os.kill(asked.terminal.pid, signal.SIGKILL)
        assert asked.until_withdrawn(request)["settledBy"] == "SESSION_ENDED"


def test_nobody_connected_means_the_agent_waits_at_the_keyboard_only(
    bench: RequestBench,
) -> None:
    with bench.claude.start("stub:bash(touch alone)", directory=bench.project) as it:
        it.wait_for(DIALOG)
        with bench.phone.follow() as feed:
            assert feed.rows == {}
        it.answer("1", dialog=DIALOG)
        wait_for(lambda: bench.made("alone"), "the tool runs")
