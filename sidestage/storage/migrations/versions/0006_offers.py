"""Handover offers, their envelopes and their continuations."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "offers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("project_id", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("state_since", sa.BigInteger, nullable=False),
        sa.Column("delivery", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("record_uuid", sa.Text, nullable=False),
        sa.Column("record_order", sa.Text, nullable=False),
        sa.Column("question_hmac", sa.LargeBinary, nullable=False),
        sa.Column("continuation_id", sa.Text),
        sa.Column("blocked_by", sa.Text),
        sa.Column("last_failure", sa.Text),
        sa.Column("answer_device_id", sa.Text),
        sa.Column("answer_message_id", sa.Text),
        sa.Column("answer_envelope", sa.Text),
        sa.Column("answer_at", sa.BigInteger),
        sa.Column("answer_terminal_id", sa.Text),
        sa.Column("answer_conversation_id", sa.Text),
        sa.Column("answer_is_fresh", sa.Boolean),
        sa.Column("answer_sent_at", sa.BigInteger),
    )
    op.create_table(
        "offer_envelopes",
        sa.Column("offer_id", sa.Text, primary_key=True),
        sa.Column("device_id", sa.Text, primary_key=True),
        sa.Column("envelope", sa.Text, nullable=False),
    )
    op.create_table(
        "handoffs",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("record_order", sa.Text, nullable=False),
    )
    op.create_table(
        "continuations",
        sa.Column("conversation_id", sa.Text, primary_key=True),
        sa.Column("parent_id", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Drop them."""
    for table in ("continuations", "handoffs", "offer_envelopes", "offers"):
        op.drop_table(table)
