"""Requests of agents."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "requests",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("terminal_id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("tool_name", sa.Text, nullable=False),
        sa.Column("input_json", sa.Text, nullable=False),
        sa.Column("offered", sa.Text, nullable=False),
        sa.Column("plan", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("state_since", sa.BigInteger, nullable=False),
        sa.Column("has_timed_out", sa.Boolean, nullable=False),
        sa.Column("settled_by", sa.Text),
        sa.Column("verdict", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("pid", sa.Integer),
        sa.Column("start_ticks", sa.Text),
        sa.Column("tool_use_id", sa.Text),
        sa.Column("prompt_id", sa.Text),
        sa.Column("claim", sa.LargeBinary, nullable=False),
        sa.Column("event_digest", sa.LargeBinary, nullable=False),
        sa.Column("is_headless", sa.Boolean, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("requests")
