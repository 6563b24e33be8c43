"""The audit log, as GraphQL shows it."""

from datetime import datetime
from typing import Final

import strawberry

from resolvers.content import plain
from resolvers.context import Context, Info
from resolvers.node import Node
from resolvers.paging import (
    After,
    Before,
    Connection,
    First,
    Last,
    Order,
    Page,
    PageRequest,
)
from resolvers.scalars import BigInt
from sidestage import audit as model
from sidestage.audit import AuditOutcome
from sidestage.errors import BadUserInput


def _id(root: strawberry.Parent[model.AuditEntry]) -> str:
    return f"audit:{root.seq}"


def _actor(root: strawberry.Parent[model.AuditEntry]) -> str:
    return root.record.actor


def _action(root: strawberry.Parent[model.AuditEntry]) -> str:
    return root.record.action


def _target_id(root: strawberry.Parent[model.AuditEntry]) -> str | None:
    return root.record.target_id


def _outcome(root: strawberry.Parent[model.AuditEntry]) -> AuditOutcome:
    return root.record.outcome


def _address(root: strawberry.Parent[model.AuditEntry]) -> str | None:
    return root.record.address


def _code(root: strawberry.Parent[model.AuditEntry]) -> str | None:
    return root.record.code


def _detail(root: strawberry.Parent[model.AuditEntry]) -> str | None:
    return root.record.detail


@strawberry.type(
    description=(
        "Something someone did, written down for good. Each entry's hash covers the "
        "one before it, so that a change of the log shows."
    )
)
class AuditEntry(Node):
    """Something someone did, written down for good."""

    id: strawberry.ID = plain("The entry's id; give it to `node`.", resolver=_id)
    seq: BigInt = plain("Its number; without gaps but for what retention removed.")
    at: datetime = plain("When it was written.")
    actor: str = plain(
        "Who did it: `admin`, `local:<pid>`, a device's id, `hook`, `system` or "
        "`anonymous`.",
        resolver=_actor,
    )
    action: str = plain("What was done, such as `session.resume`.", resolver=_action)
    target_id: str | None = plain("The id of what it was done to.", resolver=_target_id)
    outcome: AuditOutcome = plain("How it ended.", resolver=_outcome)
    address: str | None = plain("Where the caller connected from.", resolver=_address)
    code: str | None = plain("The error's code, if it was refused.", resolver=_code)
    detail: str | None = plain("A short note without content.", resolver=_detail)
    hash: str = plain("The hash of this entry and all before it, in hex.")

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is an audit entry."""
        return isinstance(value, model.AuditEntry)


SEQ_DIGITS = 19
"""A 64-bit number in decimal; padded, so that it sorts as text."""
ORDER: Final[Order[model.AuditEntry]] = Order(
    "audit",
    lambda entry: (f"{entry.seq:0{SEQ_DIGITS}}", f"audit:{entry.seq}"),
    descending=True,
)


def _seq(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    key, _ = ORDER.read_cursor(cursor)
    if not (key.isascii() and key.isdigit() and len(key) == SEQ_DIGITS):
        raise BadUserInput("That is not a cursor of this list.")
    return min(int(key), 2**63 - 1)


async def list_audit_entries(
    info: Info,
    first: First = strawberry.UNSET,
    after: After = strawberry.UNSET,
    last: Last = strawberry.UNSET,
    before: Before = strawberry.UNSET,
) -> Page[model.AuditEntry]:
    """Return a page of the log, newest entry first."""
    request = PageRequest.of(first, after, last, before)
    newer, older = _seq(request.before), _seq(request.after)
    if request.backwards:
        return await _towards_the_newest(info.context, request.size, newer, older)
    # One more than the page tells whether the list goes on.
    rows = await info.context.parts.audit.list_entries(
        limit=request.size + 1, before_seq=older
    )
    if newer is not None:
        rows = tuple(row for row in rows if row.seq > newer)
    return Page(
        rows[: request.size],
        ORDER.write_cursor,
        has_next_page=len(rows) > request.size,
        has_previous_page=older is not None,
    )


async def _towards_the_newest(
    context: Context, size: int, newer: int | None, older: int | None
) -> Page[model.AuditEntry]:
    """Return the *size* oldest entries that are newer than *newer*."""
    rows = await context.parts.audit.list_entries(limit=size + 1, after_seq=newer or 0)
    if older is not None:
        rows = tuple(row for row in rows if row.seq < older)
    return Page(
        rows[-size:],
        ORDER.write_cursor,
        has_next_page=newer is not None,
        has_previous_page=len(rows) > size,
    )


AuditEntryConnection = Connection[AuditEntry]
