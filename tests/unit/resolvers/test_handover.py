"""Offers, answers and take-overs over the real HTTP application."""

from typing import Any

import pytest

from sidestage import errors
from sidestage.devices.model import Principal, PrincipalKind, Scope
from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.envelopes.sealing import seal_envelope
from sidestage.handover.model import OfferBlock, OfferState
from sidestage.ids import DeviceId, TerminalId
from tests.fakes.envelopes import HOST_KEY, OFFER, PARTIES, seal_answer
from tests.fakes.handovers import an_offer
from tests.fakes.parts import World, make_world
from tests.fakes.tokens import ADMIN, OPERATOR, VIEWER
from tests.fakes.values import session_id

OFFERS = """{ handoverOffers(first: 5) { nodes { __typename id state delivery createdAt
  expiresAt blockedBy lastFailure { code message } session { id } terminal { id }
  continuation { id } envelope { subjectId ciphertext } } } }"""
ANSWER = """mutation($input: AnswerHandoverInput!) { answerHandover(input: $input) {
  __typename ... on AnswerHandoverPayload { offer { id state } }
  ... on OfferNotOpen { offerState currentOffer { id } }
  ... on UserError { code message } } }"""
DISMISS = """mutation { dismissHandover(input: {offerId: "offer:1"}) { __typename
  ... on DismissHandoverPayload { offer { state } }
  ... on UserError { code } } }"""
TAKE = """mutation($input: TakeOverSessionInput!) { takeOverSession(input: $input) {
  __typename ... on TakeOverSessionPayload { terminal { cols rows } handedOff
    ticket { mode } } ... on UserError { code } } }"""
SEND = """mutation($input: SendPromptInput!) { sendPrompt(input: $input) {
  __typename ... on SendPromptPayload { terminal { id } } ... on UserError { code } } }
"""
DEVICE = "device-token"


@pytest.fixture
def world() -> World:
    made = make_world()
    for token, device in ((DEVICE, "device:1"), ("other-token", "device:2")):
        made.tokens.principals[token] = Principal(
            PrincipalKind.DEVICE,
            frozenset({Scope.VIEW, Scope.ANSWER}),
            device,
            DeviceId(device),
            f"token:{device}",
        )
    return made


def sealed(subject: Subject = OFFER) -> Envelope:
    return seal_envelope(
        {"question": "Which?", "summary": "", "title": "t", "folder": "/p"},
        purpose=Purpose.OFFER,
        parties=PARTIES,
        subject=subject,
        sender=HOST_KEY,
        sealed_at_ms=0,
    )


async def nodes(world: World, token: str) -> list[dict[str, Any]]:
    async with world.client(token) as client:
        found: list[dict[str, Any]] = (await client.data(OFFERS))["handoverOffers"][
            "nodes"
        ]
        return found


async def test_each_device_sees_its_own_envelope_and_nobody_else_any(
    world: World,
) -> None:
    offer = an_offer().with_envelopes({DeviceId("device:1"): sealed()})
    world.handovers.feed.upsert(offer)
    [own] = await nodes(world, DEVICE)
    assert own["envelope"]["subjectId"] == "offer:1"
    for token in ("other-token", ADMIN, VIEWER):
        [other] = await nodes(world, token)
        assert other["envelope"] is None
        assert {**other, "envelope": own["envelope"]} == own


async def test_an_offer_tells_where_it_stands(world: World) -> None:
    world.handovers.feed.upsert(
        an_offer(
            state=OfferState.CONTINUED,
            continuation_id=session_id(2),
            blocked_by=OfferBlock.DIALOG,
            last_failure="AGENT_NOT_FOUND",
        )
    )
    [offer] = await nodes(world, ADMIN)
    assert offer["__typename"] == "HandoverOffer"
    assert offer["session"] == {"id": session_id(1)}
    assert offer["continuation"] == {"id": session_id(2)}
    assert offer["blockedBy"] == "DIALOG"
    assert offer["lastFailure"]["code"] == "AGENT_NOT_FOUND"
    assert offer["lastFailure"]["message"]
    async with world.client() as client:
        found = await client.data('{ node(id: "offer:1") { __typename id } }')
    assert found["node"] == {"__typename": "HandoverOffer", "id": "offer:1"}


async def test_a_session_shows_its_open_offer(world: World) -> None:
    query = "{ outsideSessions(first: 5) { nodes { id handoverOffer { id } } } }"
    async with world.client() as client:
        rows = (await client.data(query))["outsideSessions"]["nodes"]
    shown = {row["id"]: row["handoverOffer"] for row in rows}
    assert shown[session_id(1)] == {"id": "offer:1"}
    assert shown[session_id(2)] is None


async def answer(world: World, token: str, **changes: Any) -> dict[str, Any]:
    given = {"offerId": "offer:1", "envelope": seal_answer().to_fields(), **changes}
    async with world.client(token) as client:
        data = await client.data(ANSWER, {"input": given})
        result: dict[str, Any] = data["answerHandover"]
        return result


async def test_a_sealed_answer_reaches_the_handover_as_it_was_sealed(
    world: World,
) -> None:
    envelope = seal_answer()
    result = await answer(world, DEVICE, envelope=envelope.to_fields())
    assert result["offer"] == {"id": "offer:1", "state": "ANSWERING"}
    [(offer_id, came, actor)] = world.handovers.answered
    assert (offer_id, came, actor.device_id) == ("offer:1", envelope, "device:1")


@pytest.mark.parametrize(
    ("failure", "member"),
    [
        (errors.OfferNotFound("no"), "OfferNotFound"),
        (errors.AnswerStartsACommand("no"), "AnswerStartsACommand"),
        (errors.DeviceKeyRequired("no"), "DeviceKeyRequired"),
        (errors.EnvelopeInvalid("no", fault="SEAL"), "EnvelopeInvalid"),
        (errors.EnvelopeReplayed("no"), "EnvelopeReplayed"),
        (errors.AgentNotIdle("no"), "AgentNotIdle"),
        (errors.HostUnavailable("no"), "HostUnavailable"),
        (errors.StartFailed("no"), "StartFailed"),
    ],
)
async def test_a_refused_answer_is_a_typed_error(
    world: World, failure: errors.SidestageError, member: str
) -> None:
    world.handovers.failure = failure
    result = await answer(world, DEVICE)
    assert result == {"__typename": member, "code": failure.code, "message": "no"}


async def test_the_loser_is_told_the_offer_as_it_is(world: World) -> None:
    world.handovers.failure = errors.OfferNotOpen(
        "late", state="CONTINUED", offer_id="offer:1"
    )
    result = await answer(world, DEVICE)
    assert result["offerState"] == "CONTINUED"
    assert result["currentOffer"] == {"id": "offer:1"}


async def test_a_malformed_envelope_is_refused_and_audited(world: World) -> None:
    fields = {**seal_answer().to_fields(), "purpose": "lunch"}
    result = await answer(world, DEVICE, envelope=fields)
    assert result["__typename"] == "EnvelopeInvalid"
    assert world.audit.entries[-1].record.action == "envelope.open"
    assert world.handovers.answered == []


async def test_a_caller_without_a_key_is_told_that_a_key_is_missing(
    world: World,
) -> None:
    """Line 15: the scope alone would say less."""
    world.handovers.failure = errors.DeviceKeyRequired("A device's key, please.")
    assert (await answer(world, ADMIN))["code"] == "DEVICE_KEY_REQUIRED"


@pytest.mark.parametrize(
    ("query", "variables", "token"),
    [
        (DISMISS, {}, VIEWER),
        (DISMISS, {}, ADMIN),
        (TAKE, {"input": {"sessionId": session_id(1)}}, DEVICE),
        (SEND, {"input": {"terminalId": "terminal:1", "text": "x"}}, DEVICE),
    ],
)
async def test_each_mutation_needs_its_scope(
    world: World, query: str, variables: dict[str, Any], token: str
) -> None:
    async with world.client(token) as client:
        assert await client.code(query, variables) == "PERMISSION_DENIED"


async def test_an_offer_is_put_away(world: World) -> None:
    async with world.client(DEVICE) as client:
        result = (await client.data(DISMISS))["dismissHandover"]
    assert result["offer"] == {"state": "DISMISSED"}


async def test_a_session_is_taken_over_with_a_ticket(world: World) -> None:
    given = {"sessionId": session_id(1), "cols": 90, "rows": 31}
    async with world.client() as client:
        result = (await client.data(TAKE, {"input": given}))["takeOverSession"]
        assert result["terminal"] == {"cols": 90, "rows": 31}
        assert result["handedOff"] is True
        assert result["ticket"] == {"mode": "CONTROL"}
        bad = await client.data(TAKE, {"input": {"sessionId": "outside:zz"}})
        assert bad["takeOverSession"]["code"] == "INVALID_REQUEST"
        bad = await client.data(TAKE, {"input": {**given, "cols": 0}})
        assert bad["takeOverSession"]["code"] == "INVALID_REQUEST"


async def test_a_prompt_is_passed_on_as_it_is(world: World) -> None:
    given = {"terminalId": TerminalId("terminal:1"), "text": "!ls\n\tx"}
    world.tokens.principals[OPERATOR] = Principal(
        PrincipalKind.DEVICE,
        frozenset({Scope.VIEW, Scope.READ, Scope.TERMINAL}),
        "device:o",
        DeviceId("device:o"),
        "token:operator",
    )
    async with world.client(OPERATOR) as client:
        result = (await client.data(SEND, {"input": given}))["sendPrompt"]
        assert result["terminal"] == {"id": "terminal:1"}
        assert world.handovers.sent == ["!ls\n\tx"]
        long = {**given, "text": "x" * 20_001}
        result = (await client.data(SEND, {"input": long}))["sendPrompt"]
        assert result["code"] == "INVALID_REQUEST"
