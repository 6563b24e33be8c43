"""Answers from devices: sealed, bound to what was shown, delivered once (6, 8, 9)."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from sidestage.devices.model import ContentMode, Scope
from sidestage.envelopes.envelope import Envelope, Purpose
from sidestage.envelopes.opening import Opened, Settled
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.envelopes.sealing import unseal_envelope
from sidestage.errors import (
    DeviceKeyRequired,
    EnvelopeInvalid,
    EnvelopeReplayed,
    InvalidInput,
    RequestChanged,
    RequestKeyboardOnly,
    RequestNotFound,
    RequestSettled,
    RequestTimedOut,
    SidestageError,
    SuggestionNotAllowed,
)
from sidestage.requests.model import (
    AgentRequest,
    RequestEnd,
    RequestId,
    RequestState,
    RequestVerdict,
)
from sidestage.sessions.hooks import HookKind
from sidestage.sessions.model import EvidenceSource, SessionState
from tests.fakes.devices import a_device, device_key
from tests.fakes.envelopes import HOST_KEY
from tests.fakes.hooks import FakeHold
from tests.fakes.requesting import ADMIN, SESSION, Requesting, actor_of
from tests.unit.requests.test_parsing import recorded

OUTLIVES = {"type": "addRules", "destination": "userSettings"}


async def refused(
    world: Requesting, envelope: Envelope, request: AgentRequest
) -> type[SidestageError]:
    """Return how the answer is refused; nothing may have been sent."""
    before = list(world.ledger.holds.items())
    with pytest.raises(SidestageError) as error:
        await world.send(envelope, request)
    assert list(world.ledger.holds.items()) == before
    return error.type


async def test_an_answer_reaches_the_hook_and_everybody_sees_it_settled() -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        request = world.waiting()
        over = await world.send(world.seal(request), request)
    assert hold.answers == [{"behavior": "allow"}]
    assert over.state is RequestState.ANSWERED
    assert over.settled_by is RequestEnd.DEVICE
    assert over.verdict is RequestVerdict.ALLOW
    assert world.store.rows[request.id] == over == world.last()
    assert world.ledger.open_of(SESSION) == ()
    assert world.push.said == [("waiting", request.id), ("settled", request.id)]
    assert world.audited() == [("BEGUN", None), ("DONE", None)]


async def test_the_audit_names_device_request_and_message_but_no_content() -> None:
    world = Requesting()
    async with world.running():
        await world.ask(tool_input={"command": "echo CANARY"})
        request = world.waiting()
        envelope = world.seal(request, "deny", note="CANARY")
        await world.send(envelope, request)
    for entry in world.store.audit.entries:
        record = entry.record
        assert record.actor == world.phone.id
        assert record.target_id == request.id
        assert record.message_id == envelope.header.message_id
        assert "CANARY" not in repr(record)


async def test_the_note_of_a_denial_reaches_the_model() -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        request = world.waiting()
        await world.send(world.seal(request, "deny", note="Use git rm."), request)
    assert hold.answers == [{"behavior": "deny", "message": "Use git rm."}]


async def test_a_question_is_answered_from_the_stored_input() -> None:
    world = Requesting()
    async with world.running():
        value = recorded("AskUserQuestion")["tool_input"]
        hold = await world.ask("AskUserQuestion", value)
        request = world.waiting()
        await world.send(world.seal(request, "answer", [{"options": [0]}]), request)
    answers = {"Which database should the service use?": "SQLite"}
    assert hold.answers == [
        {"behavior": "allow", "updatedInput": {**value, "answers": answers}}
    ]


async def test_of_two_requests_each_answer_goes_to_its_own_hook() -> None:
    world = Requesting()
    async with world.running():
        one = await world.ask("Read", {"file_path": "/a"}, call_id="toolu_1")
        two = await world.ask("Read", {"file_path": "/b"}, call_id="toolu_2")
        first, second = world.ledger.open_of(SESSION)
        await world.send(world.seal(second, "deny", note="not b"), second)
        assert one.answers == []
        assert two.answers == [{"behavior": "deny", "message": "not b"}]
        assert world.waiting() == first
        await world.send(world.seal(first), first)
        assert one.answers == [{"behavior": "allow"}]


async def test_the_same_envelope_again_gets_its_outcome_and_sends_nothing() -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        request = world.waiting()
        envelope = world.seal(request)
        over = await world.send(envelope, request)
        assert await world.send(envelope, request) == over
    assert len(hold.answers) == 1
    assert world.audited() == [("BEGUN", None), ("DONE", None)]


async def test_two_copies_of_one_envelope_at_once_are_one_answer() -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        request = world.waiting()
        envelope = world.seal(request)
        both = await asyncio.gather(
            world.send(envelope, request), world.send(envelope, request)
        )
    assert both[0] == both[1]
    assert len(hold.answers) == 1


async def test_a_known_message_id_with_other_bytes_is_a_replay() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        envelope = world.seal(request)
        await world.send(envelope, request)
        other = world.seal(request, "deny")
        header = replace(other.header, message_id=envelope.header.message_id)
        assert await refused(world, replace(other, header=header), request) is (
            EnvelopeReplayed
        )


async def test_a_replay_is_found_in_the_transaction_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two answers at once with one message id only one may count."""
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        envelope = world.seal(request)
        opened = world.desk.seals.open_answer

        async def open_late(*args: Any, **options: Any) -> Opened | Settled:
            result = await opened(*args, **options)
            other = replace(SeenEnvelope.of(envelope), digest=b"another")
            await world.store.seen.add(other)
            return result

        monkeypatch.setattr(world.desk.seals, "open_answer", open_late)
        assert await refused(world, envelope, request) is EnvelopeReplayed
        assert world.waiting() == request


async def test_the_second_device_is_told_that_it_is_settled() -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        request = world.waiting()
        await world.send(world.seal(request), request)
        late = world.seal(request, "deny", device=world.tablet)
        with pytest.raises(RequestSettled):
            await world.send(late, request, actor=actor_of(world.tablet))
    assert len(hold.answers) == 1
    assert world.audited()[-1] == ("REFUSED", "REQUEST_SETTLED")


class SlowHold(FakeHold):
    """A hook whose connection takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def answer(self, decision: object) -> bool:
        self.asked.set()
        await self.go_on.wait()
        return await super().answer(decision)  # type: ignore[arg-type]  # as it came


async def test_while_an_answer_is_on_its_way_no_other_counts() -> None:
    world = Requesting()
    async with world.running():
        hold = SlowHold()
        await world.ask(hold=hold)
        request = world.waiting()
        first = asyncio.create_task(world.send(world.seal(request), request))
        await hold.asked.wait()
        assert world.waiting().state is RequestState.ANSWERING
        late = world.seal(request, "deny", device=world.tablet)
        with pytest.raises(RequestSettled):
            await world.send(late, request, actor=actor_of(world.tablet))
        # Its own effect is not somebody else's answer.
        await world.hear(HookKind.TOOL_DONE, tool_name="Bash", tool_use_id="toolu_1")
        hold.go_on.set()
        assert (await first).state is RequestState.ANSWERED
    assert hold.answers == [{"behavior": "allow"}]


async def test_a_client_that_leaves_cuts_no_answer_in_half() -> None:
    world = Requesting()
    async with world.running():
        hold = SlowHold()
        await world.ask(hold=hold)
        request = world.waiting()
        sending = asyncio.create_task(world.send(world.seal(request), request))
        await hold.asked.wait()
        sending.cancel()
        hold.go_on.set()
        await world.desk.close()
        assert world.last().state is RequestState.ANSWERED
        assert world.audited() == [("BEGUN", None), ("DONE", None)]


async def test_an_answer_that_did_not_arrive_is_not_called_answered() -> None:
    world = Requesting()
    async with world.running():
        hold = SlowHold()
        await world.ask(hold=hold)
        request = world.waiting()
        envelope = world.seal(request)
        sending = asyncio.create_task(world.send(envelope, request))
        await hold.asked.wait()
        await FakeHold.answer(hold, None)  # the hook goes away
        hold.answers.clear()
        hold.go_on.set()
        with pytest.raises(RequestKeyboardOnly):
            await sending
        assert hold.answers == []
        assert world.waiting().state is RequestState.KEYBOARD_ONLY
        assert world.waiting().verdict is None
        with pytest.raises(RequestKeyboardOnly):
            await world.send(envelope, request)
    assert world.audited() == [("BEGUN", None), ("FAILED", "REQUEST_KEYBOARD_ONLY")]


async def test_a_request_whose_hook_is_gone_is_the_keyboards() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        world.set_open_calls("toolu_1")
    again = world.restarted()
    async with again.running():
        request = again.waiting()
        assert await refused(again, again.seal(request), request) is RequestKeyboardOnly


async def test_an_answer_that_a_crash_cut_off_is_delivered_when_its_hook_returns() -> (
    None
):
    world = Requesting()
    async with world.running():
        hold = SlowHold()
        await world.ask(hold=hold)
        request = world.waiting()
        envelope = world.seal(request)
        sending = asyncio.create_task(world.send(envelope, request))
        await hold.asked.wait()
        world.set_open_calls("toolu_1")
        again = world.restarted()  # the first one never goes on
        async with again.running():
            assert again.waiting().state is RequestState.KEYBOARD_ONLY
            assert await refused(again, envelope, request) is RequestKeyboardOnly
            returned = FakeHold(hold.digest, hold.claim)
            await again.ask(hold=returned, call_id=None)
            over = await again.send(envelope, request)
            assert over.state is RequestState.ANSWERED
            assert returned.answers == [{"behavior": "allow"}]
        hold.go_on.set()
        await sending


async def test_what_a_crash_may_have_delivered_is_settled_without_a_claim() -> None:
    world = Requesting()
    async with world.running():
        hold = SlowHold()
        await world.ask(hold=hold)
        request = world.waiting()
        sending = asyncio.create_task(world.send(world.seal(request), request))
        await hold.asked.wait()
        world.set_open_calls("toolu_1")
        again = world.restarted()
        async with again.running():
            again.set_state(SessionState.ENDED, EvidenceSource.PROCESS)
            await again.watch.check((SESSION,))
            assert again.last().settled_by is RequestEnd.UNKNOWN
        hold.go_on.set()
        await sending


async def test_an_answer_that_cannot_be_written_down_is_not_sent() -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        request = world.waiting()
        world.store.is_broken = True
        with pytest.raises(OSError, match="space"):
            await world.send(world.seal(request), request)
        world.store.is_broken = False
        assert hold.answers == []
        assert world.waiting() == request
        await world.send(world.seal(request), request)
    assert hold.answers == [{"behavior": "allow"}]


# What is refused.


async def test_an_answer_to_what_was_not_shown_is_refused() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        assert await refused(world, world.seal(request, shown="0" * 64), request) is (
            RequestChanged
        )
        assert world.audited() == [("REFUSED", "REQUEST_CHANGED")]
        assert world.waiting() == request


async def test_a_malformed_answer_is_refused() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        assert await refused(world, world.seal(request, "perhaps"), request) is (
            InvalidInput
        )


async def test_a_lasting_permission_takes_admin() -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask(permission_suggestions=[OUTLIVES])
        request = world.waiting()
        assert await refused(world, world.seal(request, "allow", [0]), request) is (
            SuggestionNotAllowed
        )
        admin = actor_of(world.phone, Scope.ADMIN)
        await world.send(world.seal(request, "allow", [0]), request, actor=admin)
    assert hold.answers == [{"behavior": "allow", "updatedPermissions": [OUTLIVES]}]


async def test_the_admin_token_has_no_key_to_answer_with() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        with pytest.raises(DeviceKeyRequired):
            await world.send(world.seal(request), request, actor=ADMIN)


async def test_another_devices_envelope_is_refused() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        stolen = world.seal(request, device=world.tablet)
        assert await refused(world, stolen, request) is EnvelopeInvalid


@pytest.mark.parametrize(
    "other",
    [{"subject_id": "request:0"}, {"session_id": "outside:0"}, {"expires_at_ms": 1}],
)
async def test_an_envelope_about_something_else_is_refused(
    other: dict[str, Any],
) -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        envelope = world.seal(request, subject=replace(request.subject, **other))
        assert await refused(world, envelope, request) is EnvelopeInvalid


async def test_an_answer_for_another_request_than_it_names_is_refused() -> None:
    world = Requesting()
    async with world.running():
        await world.ask("Read", {"file_path": "/a"}, call_id="toolu_1")
        await world.ask("Read", {"file_path": "/b"}, call_id="toolu_2")
        first, second = world.ledger.open_of(SESSION)
        assert await refused(world, world.seal(second), first) is EnvelopeInvalid
        assert len(world.ledger.open_of(SESSION)) == 2


async def test_an_unknown_request_is_not_found() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        unknown = replace(request, id=RequestId("request:" + "0" * 32))
        assert await refused(world, world.seal(unknown), unknown) is RequestNotFound


async def test_a_request_settled_at_the_keyboard_takes_no_answer() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        await world.hear(HookKind.STOPPED)
        assert await refused(world, world.seal(request), request) is RequestSettled


async def test_a_request_whose_time_is_over_says_so() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        world.now = request.expires_at
        assert await refused(world, world.seal(request), request) is RequestTimedOut


async def test_a_request_that_timed_out_says_so_by_a_slower_clock_too() -> None:
    world = Requesting()
    async with world.running():
        hold = await world.ask()
        request = world.waiting()
        await world.ledger.unbind(request.id, hold, timed_out=True)
        assert await refused(world, world.seal(request), request) is RequestTimedOut


async def test_a_session_that_is_no_longer_adopted_takes_no_answer() -> None:
    world = Requesting()
    async with world.running():
        await world.ask()
        request = world.waiting()
        world.adoption.excluded.add(world.row.directory)
        assert await refused(world, world.seal(request), request) is RequestSettled


# What is sealed for devices that may not read clear texts.


async def test_a_sealed_device_gets_what_it_has_to_show() -> None:
    world = Requesting()
    sealed = a_device(
        1,
        content=ContentMode.SEALED,
        scopes=frozenset({Scope.VIEW, Scope.ANSWER}),
    )
    world.devices.feed.upsert(sealed)
    async with world.running():
        await world.ask(permission_suggestions=[OUTLIVES])
        request = world.waiting()
        envelope = world.desk.seal(request, reader=actor_of(sealed))
        assert envelope is not None
        assert envelope.header.purpose is Purpose.REQUEST
        content = unseal_envelope(
            envelope, recipient=device_key(1), sender=HOST_KEY.public
        )
        assert content["toolName"] == "Bash"
        assert content["inputJson"] == request.input_json
        assert content["digest"] == request.digest
        assert [json.loads(item) for item in content["suggestions"]] == [OUTLIVES]
        over = await world.send(
            world.seal(request, shown=content["digest"]),
            request,
            actor=actor_of(sealed),
        )
    assert over.state is RequestState.ANSWERED


async def test_who_reads_in_clear_or_may_not_answer_gets_nothing_sealed() -> None:
    world = Requesting()
    viewer = a_device(2, scopes=frozenset({Scope.VIEW}))
    world.devices.feed.upsert(viewer)
    async with world.running():
        await world.ask()
        request = world.waiting()
        for reader in (actor_of(world.phone), actor_of(viewer), ADMIN):
            assert world.desk.seal(request, reader=reader) is None


async def test_what_is_too_long_for_an_envelope_is_left_to_the_keyboard() -> None:
    world = Requesting()
    sealed = a_device(1, scopes=frozenset({Scope.VIEW, Scope.ANSWER}))
    world.devices.feed.upsert(sealed)
    async with world.running():
        await world.ask(tool_input={"command": '"' * 40_000})
        assert world.desk.seal(world.waiting(), reader=actor_of(sealed)) is None
