"""Lines 16a, 17 and 21: questions in terminals of ours, prompts, and take-overs."""

from collections.abc import Iterator

import pytest

from sidestage.handover.pastes import unwrap_paste
from tests.e2e.handover.bench import (
    QUESTION,
    HandoverBench,
    prompts,
    transcript_of,
    wait_state,
)
from tests.e2e.handover.device import PythonDevice
from tests.e2e.running_server import Json
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(240)]

SEND = """mutation Send($input: SendPromptInput!) { sendPrompt(input: $input) {
  __typename ... on SendPromptPayload { terminal { id } }
  ... on UserError { code message } } }"""
TAKE = """mutation Take($input: TakeOverSessionInput!) {
  takeOverSession(input: $input) { __typename
  ... on TakeOverSessionPayload { terminal { id session { id } } handedOff
    ticket { secret socketPath } }
  ... on UserError { code message } } }"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HandoverBench]:
    root = tmp_path_factory.mktemp("typed")
    with HandoverBench.open_with_hooks(root, faulty=True) as bench:
        yield bench


@pytest.fixture(scope="module")
def device(bench: HandoverBench) -> PythonDevice:
    return bench.pair()


@pytest.fixture(scope="module")
def own(bench: HandoverBench) -> Iterator[Json]:
    """A session that was resumed in a terminal of ours."""
    session = bench.begin_and_exit("first words")
    started = bench.server.resume(session.id)
    terminal_id = started["terminal"]["id"]
    bench.wait_row(session.id, lambda row: row["state"] == "IDLE")
    yield {"id": session.id, "terminal": terminal_id}
    bench.server.close_terminal(terminal_id)


def send(bench: HandoverBench, terminal_id: str, text: str) -> Json:
    given = {"terminalId": terminal_id, "text": text}
    answer: Json = bench.server.query(SEND, {"input": given})["sendPrompt"]
    return answer


def send_once_idle(bench: HandoverBench, terminal_id: str, text: str) -> None:
    """Send a prompt; ask again while the agent still runs its hooks."""
    wait_for(
        lambda: send(bench, terminal_id, text)["__typename"] == "SendPromptPayload",
        f"{text!r} is taken",
    )


def ask(bench: HandoverBench, device: PythonDevice, own: Json) -> Json:
    """Let the session in the terminal ask; return its offer."""
    send_once_idle(bench, own["terminal"], "stub:question")
    return device.wait_offer(
        lambda offer: (
            offer["state"] == "PENDING" and offer["session"]["id"] == own["id"]
        )
    )


@pytest.mark.parametrize(
    "answer",
    [
        "the second one",
        "- a dash",
        "# a hash",
        "@README.md",
        "!touch made-by-a-shell",
        "one\ntwo\nthree",
        "many\n" * 30 + "lines",
        "paste end \x1b[201~ inside",
    ],
)
def test_a_question_in_a_terminal_of_ours_is_answered_there(
    bench: HandoverBench, device: PythonDevice, own: Json, answer: str
) -> None:
    offer = ask(bench, device, own)
    assert offer["delivery"] == "TYPE"
    assert device.open(offer["envelope"])["question"].endswith(QUESTION)
    answered = device.answer(offer, answer)
    assert answered["__typename"] == "AnswerHandoverPayload", answered
    done = wait_state(device, offer, "CONTINUED")
    assert done["continuation"]["id"] == own["id"]
    assert done["terminal"]["id"] == own["terminal"]
    typed = unwrap_paste(prompts(transcript_of(bench, own["id"]))[-1])
    assert typed.strip() == answer.replace("\x1b", "").strip()
    assert not (bench.project / "made-by-a-shell").exists()
    assert len(bench.terminals()) == 1


def test_a_dialog_that_opens_between_the_check_and_enter_is_not_approved(
    bench: HandoverBench, device: PythonDevice, own: Json
) -> None:
    """A background agent asks for leave while the answer stands in the box."""
    offer = ask(bench, device, own)
    with bench.hold_at("pasted") as hold:
        device.answer(offer, "an answer, not a yes")
        hold.wait_reached()
        with bench.server.attach(bench.server.issue_ticket(own["terminal"])) as client:
            # As a background agent's would: the registry says it waits.
            client.type("\x15")
            client.type("stub:bash(touch made-by-enter)\r")
            bench.wait_row(own["id"], lambda row: row["state"] == "ASKING")
            hold.release()
            now = device.wait_offer(
                lambda it: it["id"] == offer["id"] and it["state"] != "PENDING"
            )
            assert now["state"] in ("ANSWERING", "SUPERSEDED")
            wait_state(device, offer, "SUPERSEDED")
            client.wait_for("Do you want to proceed")
            assert bench.row(own["id"])["state"] == "ASKING"
            assert not (bench.project / "made-by-enter").exists()
            client.type("\x1b")
            bench.wait_row(own["id"], lambda row: row["state"] == "IDLE")
    assert not (bench.project / "made-by-enter").exists()
    assert "an answer, not a yes" not in prompts(transcript_of(bench, own["id"]))


def test_prompts_need_an_idle_agent(bench: HandoverBench, own: Json) -> None:
    send_once_idle(bench, own["terminal"], "stub:slow(5)")
    bench.wait_row(own["id"], lambda row: row["state"] == "RUNNING")
    assert send(bench, own["terminal"], "too soon")["code"] == "AGENT_NOT_IDLE"
    bench.wait_row(own["id"], lambda row: row["state"] == "IDLE")
    assert "too soon" not in prompts(transcript_of(bench, own["id"]))


def test_a_live_idle_session_is_taken_over_and_handed_off(bench: HandoverBench) -> None:
    with bench.asking("hello there") as asked:
        given = {"sessionId": asked.session_id, "idempotencyKey": "take-1"}
        taken = bench.server.query(TAKE, {"input": given})["takeOverSession"]
        assert taken["__typename"] == "TakeOverSessionPayload", taken
        assert taken["handedOff"] is True
        again = bench.server.query(TAKE, {"input": given})["takeOverSession"]
        assert again["terminal"]["id"] == taken["terminal"]["id"]
        before = asked.transcript.read_bytes()
        terminal_id = taken["terminal"]["id"]
        with bench.server.attach(taken["ticket"]) as client:
            client.wait_for("Stub answer to: hello there")
        send_once_idle(bench, terminal_id, "go on")
        data = bench.server.query(
            "query($id: ID!) { node(id: $id) { ... on OutsideSession { handedOffAt "
            "continuations(first: 5) { nodes { id } } } } }",
            {"id": asked.session_id},
        )["node"]
        assert data["handedOffAt"] is not None
        assert len(data["continuations"]["nodes"]) == 1
        assert asked.transcript.read_bytes() == before
        bench.server.close_terminal(terminal_id)


def test_a_session_that_works_is_not_taken_over(bench: HandoverBench) -> None:
    with bench.asking("stub:slow(20) ?") as asked:
        given = {"sessionId": asked.session_id}
        refused = bench.server.query(TAKE, {"input": given})["takeOverSession"]
        assert refused["code"] == "AGENT_NOT_IDLE"
