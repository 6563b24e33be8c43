"""Line 8: questions and plans, answered from a device verbatim, once."""

import json
from collections.abc import Iterator

import pytest

from tests.e2e.requests.bench import RequestBench

pytestmark = [pytest.mark.claude, pytest.mark.timeout(240)]

PLAN_MODE = ("--permission-mode", "plan")
FREE_TEXT = "None of these: a “flat” file,\nand \\n stays as it is — 日本"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RequestBench]:
    with RequestBench.open(tmp_path_factory.mktemp("questions")) as bench:
        yield bench


def test_a_question_arrives_complete_and_its_answer_verbatim(
    bench: RequestBench,
) -> None:
    with bench.asking("stub:askuser") as asked:
        request = asked.request
        assert request["kind"] == "QUESTION"
        assert request["session"]["waitingFor"]["kind"] == "QUESTION"
        [question] = request["content"]["questions"]
        assert question["text"] == "Which database should the service use?"
        assert not question["multiSelect"]
        labels = [option["label"] for option in question["options"]]
        assert labels == ["SQLite", "PostgreSQL", "DuckDB"]
        answer = bench.phone.answer(request, "answer", [{"options": [1]}])
        assert answer["__typename"] == "AnswerRequestPayload", answer
        asked.wait_result("PostgreSQL")
        asked.terminal.wait_for("Thank you, I will use your answer")
        assert asked.until_withdrawn(request)["verdict"] == "ANSWER"
        [result] = asked.results()
        assert result.count("PostgreSQL") == 1


def test_free_text_and_several_options_answer_two_questions(
    bench: RequestBench,
) -> None:
    with bench.asking("stub:askuser2") as asked:
        request = asked.request
        first, second = request["content"]["questions"]
        assert (first["multiSelect"], second["multiSelect"]) == (False, True)
        selections = [{"text": FREE_TEXT}, {"options": [0, 2]}]
        answer = bench.phone.answer(request, "answer", selections)
        assert answer["__typename"] == "AnswerRequestPayload", answer
        asked.wait_result("Lint, Tests")
        [result] = asked.results()
        assert FREE_TEXT in json.loads(result)


def test_a_question_can_be_declined_with_a_note(bench: RequestBench) -> None:
    with bench.asking("stub:askuser") as asked:
        bench.phone.answer(asked.request, "deny", note="You decide, please.")
        asked.wait_result("You decide, please.")


def test_an_approved_plan_is_carried_out(bench: RequestBench) -> None:
    with bench.asking("stub:plan", *PLAN_MODE) as asked:
        request = asked.request
        assert request["kind"] == "PLAN"
        assert request["session"]["waitingFor"]["kind"] == "PLAN"
        assert request["content"]["plan"].startswith("# Plan")
        answer = bench.phone.answer(request, "allow")
        assert answer["__typename"] == "AnswerRequestPayload", answer
        asked.wait_result("User has approved your plan")
        asked.terminal.wait_for("The plan has been handled")
        assert asked.until_withdrawn(request)["state"] == "ANSWERED"


def test_feedback_on_a_plan_reaches_the_model_which_stays_in_plan_mode(
    bench: RequestBench,
) -> None:
    with bench.asking("stub:plan", *PLAN_MODE) as asked:
        bench.phone.answer(asked.request, "deny", note="Only two steps, please.")
        asked.wait_result("Only two steps, please.")
        asked.terminal.wait_for("plan mode on")


def test_a_plan_approved_at_the_keyboard_is_withdrawn(bench: RequestBench) -> None:
    with bench.asking("stub:plan", *PLAN_MODE) as asked:
        request = asked.request
        asked.terminal.wait_for("Would you like to proceed|Ready to code")
        asked.terminal.answer("2", dialog="Would you like to proceed|Ready to code")
        assert asked.until_withdrawn(request)["settledBy"] == "KEYBOARD"


def test_a_question_answered_at_the_keyboard_is_withdrawn(
    bench: RequestBench,
) -> None:
    with bench.asking("stub:askuser") as asked:
        request = asked.request
        asked.terminal.wait_for("Which database")
        asked.terminal.answer("1", dialog=r"❯ 1\. SQLite")
        assert asked.until_withdrawn(request)["settledBy"] == "KEYBOARD"
        asked.wait_result("SQLite")
