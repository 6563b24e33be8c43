"""The tables of handover offers: states, places and sealed bytes, never a text."""

import json
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Boolean, Column, LargeBinary, Row, Table, Text, delete, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from sidestage.envelopes.envelope import Envelope
from sidestage.handover.model import (
    Accepted,
    Continuation,
    Handoff,
    Offer,
    OfferBlock,
    OfferDelivery,
    OfferId,
    OfferState,
    QuestionSource,
)
from sidestage.ids import ConversationId, DeviceId, ProjectId, SessionId, TerminalId
from sidestage.storage.schema import UtcTime, metadata

CONTINUATIONS_LIMIT: Final = 10_000
"""Of older ones the lineage is forgotten: twenty answers a day for more than a year."""

offers = Table(
    "offers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("project_id", Text),
    Column("state", Text, nullable=False),
    Column("state_since", UtcTime, nullable=False),
    Column("delivery", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("record_uuid", Text, nullable=False),
    Column("record_order", Text, nullable=False),
    Column("question_hmac", LargeBinary, nullable=False),
    Column("continuation_id", Text),
    Column("blocked_by", Text),
    Column("last_failure", Text),
    Column("answer_device_id", Text),
    Column("answer_message_id", Text),
    Column("answer_envelope", Text),
    Column("answer_at", UtcTime),
    Column("answer_terminal_id", Text),
    Column("answer_conversation_id", Text),
    Column("answer_is_fresh", Boolean),
    Column("answer_sent_at", UtcTime),
)

offer_envelopes = Table(
    "offer_envelopes",
    metadata,
    Column("offer_id", Text, primary_key=True),
    Column("device_id", Text, primary_key=True),
    Column("envelope", Text, nullable=False),
)

handoffs = Table(
    "handoffs",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("at", UtcTime, nullable=False),
    Column("record_order", Text, nullable=False),
)

continuations = Table(
    "continuations",
    metadata,
    Column("conversation_id", Text, primary_key=True),
    Column("parent_id", Text, nullable=False),
    Column("at", UtcTime, nullable=False),
)


async def list_offers(db: AsyncConnection) -> tuple[Offer, ...]:
    """Return every offer with its envelopes, oldest first."""
    sealed: dict[str, dict[DeviceId, Envelope]] = {}
    for row in await db.execute(select(offer_envelopes)):
        of_offer = sealed.setdefault(row.offer_id, {})
        of_offer[DeviceId(row.device_id)] = _read_envelope(row.envelope)
    rows = await db.execute(select(offers).order_by(offers.c.created_at))
    return tuple(_offer(row).with_envelopes(sealed.get(row.id, {})) for row in rows)


async def put_offer(db: AsyncConnection, offer: Offer) -> None:
    """Write the offer's row, and exactly the envelopes it has."""
    await _put(db, offers, _offer_values(offer))
    await _delete_envelopes(db, offer.id)
    for device_id, envelope in offer.envelopes.items():
        values = {
            "offer_id": offer.id,
            "device_id": device_id,
            "envelope": _write_envelope(envelope),
        }
        await _put(db, offer_envelopes, values)


async def delete_offer(db: AsyncConnection, offer_id: OfferId) -> None:
    """Delete the offer and its envelopes."""
    await _delete_envelopes(db, offer_id)
    await db.execute(delete(offers).where(offers.c.id == offer_id))


async def list_handoffs(db: AsyncConnection) -> tuple[Handoff, ...]:
    """Return the sessions that are handed off."""
    rows = await db.execute(select(handoffs))
    return tuple(
        Handoff(SessionId(row.session_id), row.at, row.record_order) for row in rows
    )


async def put_handoff(db: AsyncConnection, handoff: Handoff) -> None:
    """Mark a session as handed off."""
    values = {
        "session_id": handoff.session_id,
        "at": handoff.at,
        "record_order": handoff.order,
    }
    await _put(db, handoffs, values)


async def delete_handoff(db: AsyncConnection, session_id: SessionId) -> None:
    """Note that a session is no longer handed off."""
    await db.execute(delete(handoffs).where(handoffs.c.session_id == session_id))


async def list_continuations(db: AsyncConnection) -> tuple[Continuation, ...]:
    """Return which conversations of ours continue which sessions."""
    rows = await db.execute(select(continuations))
    return tuple(
        Continuation(
            ConversationId(row.conversation_id), SessionId(row.parent_id), row.at
        )
        for row in rows
    )


async def put_continuation(db: AsyncConnection, continuation: Continuation) -> None:
    """Note which session a conversation continues."""
    values = {
        "conversation_id": continuation.conversation_id,
        "parent_id": continuation.parent_id,
        "at": continuation.at,
    }
    await _put(db, continuations, values)
    newest = (
        select(continuations.c.conversation_id)
        .order_by(continuations.c.at.desc())
        .limit(CONTINUATIONS_LIMIT)
    )
    table = continuations
    await db.execute(delete(table).where(table.c.conversation_id.not_in(newest)))


async def _put(db: AsyncConnection, table: Table, values: Mapping[str, Any]) -> None:
    statement = insert(table).values(values)
    keys = [column.name for column in table.primary_key]
    changed = {name: value for name, value in values.items() if name not in keys}
    await db.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed))


async def forget_device(db: AsyncConnection, device_id: DeviceId) -> None:
    """Delete what was sealed for a device that is being revoked."""
    table = offer_envelopes
    await db.execute(delete(table).where(table.c.device_id == device_id))


async def _delete_envelopes(db: AsyncConnection, offer_id: OfferId) -> None:
    table = offer_envelopes
    await db.execute(delete(table).where(table.c.offer_id == offer_id))


def _offer_values(offer: Offer) -> dict[str, Any]:
    return {
        "id": offer.id,
        "session_id": offer.session_id,
        "project_id": offer.project_id,
        "state": offer.state.value,
        "state_since": offer.state_since,
        "delivery": offer.delivery.value,
        "created_at": offer.created_at,
        "expires_at": offer.expires_at,
        "record_uuid": offer.source.record_uuid,
        "record_order": offer.source.order,
        "question_hmac": offer.source.digest,
        "continuation_id": offer.continuation_id,
        "blocked_by": offer.blocked_by and offer.blocked_by.value,
        "last_failure": offer.last_failure,
        **_answer_values(offer.accepted),
    }


def _answer_values(accepted: Accepted | None) -> dict[str, Any]:
    if accepted is None:
        names = (column.name for column in offers.columns)
        return {name: None for name in names if name.startswith("answer_")}
    envelope = accepted.envelope
    return {
        "answer_device_id": accepted.device_id,
        "answer_message_id": accepted.message_id,
        "answer_envelope": None if envelope is None else _write_envelope(envelope),
        "answer_at": accepted.at,
        "answer_terminal_id": accepted.terminal_id,
        "answer_conversation_id": accepted.conversation_id,
        "answer_is_fresh": accepted.is_fresh,
        "answer_sent_at": accepted.sent_at,
    }


def _offer(row: Row[Any]) -> Offer:
    return Offer(
        id=OfferId(row.id),
        session_id=SessionId(row.session_id),
        project_id=None if row.project_id is None else ProjectId(row.project_id),
        state=OfferState(row.state),
        state_since=row.state_since,
        delivery=OfferDelivery(row.delivery),
        created_at=row.created_at,
        expires_at=row.expires_at,
        source=QuestionSource(row.record_uuid, row.record_order, row.question_hmac),
        continuation_id=row.continuation_id and SessionId(row.continuation_id),
        blocked_by=row.blocked_by and OfferBlock(row.blocked_by),
        last_failure=row.last_failure,
        accepted=_accepted(row),
    )


def _accepted(row: Row[Any]) -> Accepted | None:
    if row.answer_device_id is None:
        return None
    text = row.answer_envelope
    return Accepted(
        envelope=None if text is None else _read_envelope(text),
        device_id=DeviceId(row.answer_device_id),
        message_id=row.answer_message_id,
        at=row.answer_at,
        terminal_id=TerminalId(row.answer_terminal_id),
        conversation_id=ConversationId(row.answer_conversation_id),
        is_fresh=row.answer_is_fresh,
        sent_at=row.answer_sent_at,
    )


def _write_envelope(envelope: Envelope) -> str:
    return json.dumps(envelope.to_fields())


def _read_envelope(text: str) -> Envelope:
    return Envelope.from_fields(json.loads(text))
