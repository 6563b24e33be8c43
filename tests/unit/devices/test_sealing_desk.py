from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sidestage.audit import AuditOutcome
from sidestage.devices.host_keys import HostKeys
from sidestage.devices.model import (
    ADMIN_SCOPES,
    DeviceState,
    Principal,
    PrincipalKind,
)
from sidestage.devices.sealing_desk import SealingDesk, to_ms
from sidestage.devices.seals import Seals
from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.envelopes.keys import PublicKey
from sidestage.envelopes.opening import Opened, Settled
from sidestage.envelopes.replay import SeenEnvelope
from sidestage.envelopes.sealing import Parties, seal_envelope, unseal_envelope
from sidestage.errors import DeviceKeyRequired, EnvelopeInvalid, EnvelopeReplayed
from tests.fakes.audit import FakeAudit
from tests.fakes.devices import FakeDevices, a_device, device_key
from tests.fakes.envelopes import ANSWER, HOST_ID
from tests.fakes.seen_envelopes import FakeSeenEnvelopes

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
OFFER = Subject("offer:1", "outside:1", to_ms(NOW + timedelta(hours=12)))
CONTENT = {"question": "Which?", "summary": "", "title": "t", "folder": "/p"}
DEVICE = a_device()
ACTOR = Principal(
    PrincipalKind.DEVICE, DEVICE.scopes, DEVICE.id, DEVICE.id, "1234", "::1"
)
ADMIN = Principal(PrincipalKind.ADMIN, ADMIN_SCOPES, "admin", None, "5678")


@dataclass
class Desk:
    seals: Seals
    keys: HostKeys
    devices: FakeDevices = field(default_factory=FakeDevices)
    seen: FakeSeenEnvelopes = field(default_factory=FakeSeenEnvelopes)
    audit: FakeAudit = field(default_factory=FakeAudit)

    def answer(self, subject: Subject = OFFER, number: int = 1) -> Envelope:
        device = a_device(number)
        return seal_envelope(
            ANSWER,
            purpose=Purpose.HANDOVER_ANSWER,
            parties=Parties(
                HOST_ID, self.keys.current.public, device.id, PublicKey(device.key)
            ),
            subject=subject,
            sender=device_key(number),
            sealed_at_ms=0,
        )

    async def open(
        self, envelope: Envelope, actor: Principal = ACTOR
    ) -> Opened | Settled:
        return await self.seals.open_answer(
            envelope, purpose=Purpose.HANDOVER_ANSWER, actor=actor, subject=OFFER
        )

    def refusals(self) -> list[tuple[str, str | None, str | None, str | None]]:
        return [
            (
                each.record.actor,
                each.record.code,
                each.record.detail,
                each.record.target_id,
            )
            for each in self.audit.entries
            if each.record.outcome is AuditOutcome.REFUSED
        ]


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    keys = HostKeys(tmp_path / "host-key", HOST_ID, clock=lambda: NOW)
    await keys.load()
    devices, seen, audit = FakeDevices(DEVICE), FakeSeenEnvelopes(), FakeAudit()
    seals = SealingDesk(keys, devices, seen, audit, clock=lambda: NOW)
    return Desk(seals, keys, devices, seen, audit)


def test_only_its_device_can_open_what_is_sealed_for_it(desk: Desk) -> None:
    envelope = desk.seals.seal(
        DEVICE, purpose=Purpose.OFFER, subject=OFFER, content=CONTENT
    )
    host = desk.keys.current.public
    opened = unseal_envelope(envelope, recipient=device_key(1), sender=host)
    assert opened == CONTENT
    with pytest.raises(EnvelopeInvalid):
        unseal_envelope(envelope, recipient=device_key(2), sender=host)


async def test_an_answer_of_the_caller_opens(desk: Desk) -> None:
    assert await desk.open(desk.answer()) == Opened(ANSWER, is_retry=False)
    assert desk.refusals() == []


async def test_an_answer_sealed_for_the_key_before_opens_in_its_grace(
    desk: Desk,
) -> None:
    envelope = desk.answer()
    await desk.keys.rotate(keep_previous=True)
    assert await desk.open(envelope) == Opened(ANSWER, is_retry=False)
    await desk.keys.rotate(keep_previous=True)
    with pytest.raises(EnvelopeInvalid):
        await desk.open(envelope)


async def test_a_known_answer_has_the_outcome_it_had(desk: Desk) -> None:
    envelope = desk.answer()
    await desk.seen.add(SeenEnvelope.of(envelope))
    assert await desk.open(envelope) == Opened(ANSWER, is_retry=True)
    await desk.seen.settle(DEVICE.id, envelope.header.message_id, "STARTED")
    assert await desk.open(envelope) == Settled("STARTED")


async def test_a_refusal_is_in_the_audit_log_with_its_fault(desk: Desk) -> None:
    other = replace(OFFER, session_id="outside:2")
    with pytest.raises(EnvelopeInvalid):
        await desk.open(desk.answer(other))
    fault = "purpose=handover-answer fault=SUBJECT"
    assert desk.refusals() == [(DEVICE.id, "ENVELOPE_INVALID", fault, "offer:1")]
    entry = desk.audit.entries[-1].record
    assert (entry.action, entry.address) == ("envelope.open", "::1")
    assert entry.message_id is not None


async def test_a_replay_is_refused_and_audited(desk: Desk) -> None:
    envelope = desk.answer()
    await desk.seen.add(replace(SeenEnvelope.of(envelope), digest=bytes(32)))
    with pytest.raises(EnvelopeReplayed):
        await desk.open(envelope)
    assert [code for _, code, _, _ in desk.refusals()] == ["ENVELOPE_REPLAYED"]


async def test_the_admin_token_cannot_answer(desk: Desk) -> None:
    with pytest.raises(DeviceKeyRequired):
        await desk.open(desk.answer(), ADMIN)
    assert [code for _, code, _, _ in desk.refusals()] == ["DEVICE_KEY_REQUIRED"]


async def test_a_device_that_is_not_in_the_list_cannot_answer(desk: Desk) -> None:
    desk.devices.feed.remove(DEVICE.id)
    with pytest.raises(DeviceKeyRequired):
        await desk.open(desk.answer())


async def test_a_revoked_device_cannot_answer(desk: Desk) -> None:
    desk.devices.feed.upsert(replace(DEVICE, state=DeviceState.REVOKED))
    with pytest.raises(EnvelopeInvalid):
        await desk.open(desk.answer())
    assert desk.refusals()[0][2] == "purpose=handover-answer fault=DEVICE"


async def test_one_device_cannot_send_what_another_sealed(desk: Desk) -> None:
    desk.devices.feed.upsert(a_device(2))
    with pytest.raises(EnvelopeInvalid):
        await desk.open(desk.answer(number=2))
    assert desk.refusals()[0][2] == "purpose=handover-answer fault=DEVICE"


async def test_a_kept_answer_opens_again_whatever_changed_since(desk: Desk) -> None:
    envelope = desk.answer(replace(OFFER, expires_at_ms=1))
    revoked = replace(DEVICE, state=DeviceState.REVOKED)
    await desk.keys.rotate(keep_previous=True)
    opened = desk.seals.reopen(
        envelope, purpose=Purpose.HANDOVER_ANSWER, device=revoked
    )
    assert opened == ANSWER
    with pytest.raises(EnvelopeInvalid):
        desk.seals.reopen(envelope, purpose=Purpose.HANDOVER_ANSWER, device=a_device(2))
    await desk.keys.rotate(keep_previous=False)
    with pytest.raises(EnvelopeInvalid):
        desk.seals.reopen(envelope, purpose=Purpose.HANDOVER_ANSWER, device=DEVICE)
