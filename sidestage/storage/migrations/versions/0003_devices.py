"""Devices, the envelopes kept for them, the pairings they came by, seen envelopes."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "devices",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("paired_at", sa.BigInteger, nullable=False),
        sa.Column("last_seen_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("pairing_id", sa.Text, nullable=False, unique=True),
        sa.Column("request_sha256", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "kept_envelopes",
        sa.Column("device_id", sa.Text, primary_key=True),
        sa.Column("purpose", sa.Text, primary_key=True),
        sa.Column("envelope", sa.Text, nullable=False),
        sa.Column("token_id", sa.Text),
    )
    op.create_table(
        "seen_envelopes",
        sa.Column("device_id", sa.Text, primary_key=True),
        sa.Column("message_id", sa.Text, primary_key=True),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("keep_until_ms", sa.BigInteger, nullable=False),
        sa.Column("outcome", sa.Text),
    )
    op.create_index(
        "ix_seen_envelopes_keep_until_ms", "seen_envelopes", ["keep_until_ms"]
    )
    op.add_column("tokens", sa.Column("replaced_at", sa.BigInteger))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("tokens", "replaced_at")
    op.drop_index("ix_seen_envelopes_keep_until_ms", "seen_envelopes")
    for name in ("seen_envelopes", "kept_envelopes", "devices"):
        op.drop_table(name)
