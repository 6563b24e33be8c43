"""Lines 12, 17 and 20: a question at a keyboard is answered from a device."""

from collections.abc import Iterator

import psutil
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
from tests.e2e.resume.bench import find_processes
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HandoverBench]:
    with HandoverBench.open_with_hooks(tmp_path_factory.mktemp("forks")) as bench:
        yield bench


@pytest.fixture(scope="module")
def device(bench: HandoverBench) -> PythonDevice:
    return bench.pair()


def test_a_sealed_answer_continues_a_fork_and_leaves_the_parent_as_it_is(
    bench: HandoverBench, device: PythonDevice
) -> None:
    with bench.asking() as asked:
        offer = asked.offer(device)
        assert offer["delivery"] == "FORK"
        told = device.open(offer["envelope"])
        assert told["question"].endswith(QUESTION)
        assert told["summary"] == "You: stub:question"
        assert told["folder"] == str(bench.project)
        asked.wait_turn_recorded()
        before = asked.transcript.read_bytes()

        answered = device.answer(offer, "the second one, with tests")
        assert answered["__typename"] == "AnswerHandoverPayload", answered
        done = wait_state(device, offer, "CONTINUED")

        child = done["continuation"]
        assert child["id"] != asked.session_id
        assert child["continuedFrom"]["id"] == asked.session_id
        assert done["session"]["handedOffAt"] is not None
        assert child["id"] in continuations(bench, asked.session_id)
        fork = transcript_of(bench, child["id"])
        assert prompts(fork)[-1] == "the second one, with tests"
        assert prompts(fork)[0] == "stub:question"
        wait_for(
            lambda: "Stub answer to: the second one" in fork.read_text(),
            "the agent answers",
        )
        assert asked.transcript.read_bytes() == before
        [process] = find_processes("--fork-session", "--session-id", fork.stem)
        assert not any("second one" in it for it in all_arguments())
        assert "--permission-mode" in process.cmdline()
        bench.server.close_terminal(done["terminal"]["id"])


@pytest.mark.parametrize(
    "answer",
    [
        "- a dash first",
        "# a hash first",
        "@README.md says so",
        "!touch made-by-a-shell",
        "one line\nanother line\n\nand a third",
        "some\n" * 8 + "lines",
        "too many to be seen\n" * 30 + "lines",
        "it ends in a backslash \\",
        "paste end \x1b[201~ inside",
        "Ångström 日本 🙂 <b>&amp;",
    ],
)
def test_an_answer_stands_in_the_transcript_as_it_was_written(
    bench: HandoverBench, device: PythonDevice, answer: str
) -> None:
    with bench.asking() as asked:
        offer = asked.offer(device)
        answered = device.answer(offer, answer)
        assert answered["__typename"] == "AnswerHandoverPayload", answered
        done = wait_state(device, offer, "CONTINUED")
        fork = transcript_of(bench, done["continuation"]["id"])
        typed = unwrap_paste(prompts(fork)[-1])
        assert typed.strip() == answer.replace("\x1b", "").strip()
        assert not (bench.project / "made-by-a-shell").exists()
        bench.server.close_terminal(done["terminal"]["id"])


def test_an_answer_that_is_a_command_is_refused_and_may_be_mended(
    bench: HandoverBench, device: PythonDevice
) -> None:
    with bench.asking() as asked:
        offer = asked.offer(device)
        refused = device.answer(offer, "/cost")
        assert refused["code"] == "ANSWER_STARTS_A_COMMAND"
        assert refused["__typename"] == "AnswerStartsACommand"
        assert device.answer(offer, "exit")["code"] == "ANSWER_STARTS_A_COMMAND"
        assert device.answer(offer, " ")["code"] == "INVALID_REQUEST"
        assert device.offer(offer["id"])["state"] == "PENDING"
        device.answer(offer, "My answer: /cost")
        done = wait_state(device, offer, "CONTINUED")
        fork = transcript_of(bench, done["continuation"]["id"])
        assert prompts(fork)[-1] == "My answer: /cost"
        bench.server.close_terminal(done["terminal"]["id"])


def test_a_prompt_at_the_keyboard_supersedes_the_offer(
    bench: HandoverBench, device: PythonDevice
) -> None:
    with bench.asking() as asked:
        offer = asked.offer(device)
        asked.terminal.send("the first one")
        asked.terminal.wait_for(r"❯\sthe first one")
        asked.terminal.send("\r")
        wait_state(device, offer, "SUPERSEDED")
        late = device.answer(offer, "too late")
        assert (late["code"], late["offerState"]) == ("OFFER_NOT_OPEN", "SUPERSEDED")


def test_an_offer_is_still_there_once_after_a_restart_and_works(
    bench: HandoverBench, device: PythonDevice
) -> None:
    with bench.asking() as asked:
        offer = asked.offer(device)
        envelope = device.seal(offer, "after the restart")
        bench.server.restart()
        [again] = [it for it in device.offers() if it["state"] == "PENDING"]
        assert again["id"] == offer["id"]
        assert device.open(again["envelope"])["question"].endswith(QUESTION)
        answered = device.send(offer, envelope)
        assert answered["__typename"] == "AnswerHandoverPayload", answered
        done = wait_state(device, offer, "CONTINUED")
        repeated = device.send(offer, envelope)
        assert repeated["offer"]["state"] == "CONTINUED"
        bench.server.close_terminal(done["terminal"]["id"])
        bench.server.restart()
        row = device.offer(offer["id"])
        assert row["session"]["handedOffAt"] is not None
        assert row["continuation"]["continuedFrom"]["id"] == asked.session_id


def all_arguments() -> list[str]:
    """Return the arguments of every process there is."""
    found: list[str] = []
    for process in psutil.process_iter():
        try:
            found += process.cmdline()
        except psutil.Error:
            continue
    return found


def continuations(bench: HandoverBench, session_id: str) -> list[str]:
    """Return the sessions that continue a session."""
    data = bench.server.query(
        """query($id: ID!) { node(id: $id) { ... on OutsideSession {
          continuations(first: 50) { nodes { id } } } } }""",
        {"id": session_id},
    )
    return [it["id"] for it in data["node"]["continuations"]["nodes"]]
