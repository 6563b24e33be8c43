"""Line 18: the server is killed at each step of an answer.

At most one continuation, and no answer is lost.
"""

from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from tests.e2e.handover.bench import HandoverBench, prompts, transcript_of, wait_state
from tests.e2e.handover.device import PythonDevice
from tests.e2e.handover.faulty_server import STEPS
from tests.e2e.resume.bench import find_processes
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HandoverBench]:
    root = tmp_path_factory.mktemp("kills")
    with HandoverBench.open_with_hooks(root, faulty=True) as bench:
        yield bench


@pytest.fixture(scope="module")
def device(bench: HandoverBench) -> PythonDevice:
    return bench.pair()


@pytest.mark.parametrize("step", STEPS)
def test_an_answer_arrives_once_wherever_the_server_was_killed(
    bench: HandoverBench, device: PythonDevice, step: str
) -> None:
    with bench.asking() as asked:
        offer = asked.offer(device)
        answer = f"answered before {step}"
        envelope = device.seal(offer, answer)
        bench.kill_at(step)
        with suppress(httpx.TransportError):
            device.send(offer, envelope)
        wait_for(lambda: not bench.server.is_running, "the server is dead")
        assert bench.server.stop() < 0
        bench.server.start()

        now = device.offer(offer["id"])
        assert now["state"] in ("PENDING", "ANSWERING", "CONTINUED")
        assert (now["state"] == "PENDING") is (step == "before-accepted")
        # The device sends the same envelope again, as it does after a lost answer.
        again = device.send(offer, envelope)
        assert again["__typename"] == "AnswerHandoverPayload", again
        done = wait_state(device, offer, "CONTINUED")
        fork = transcript_of(bench, done["continuation"]["id"])
        assert prompts(fork) == ["stub:question", answer]
        assert len(find_processes("--fork-session")) == 1
        assert len(bench.terminals()) == 1
        bench.server.close_terminal(done["terminal"]["id"])
        wait_for(lambda: not find_processes("--fork-session"), "the fork is gone")
